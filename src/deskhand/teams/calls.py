"""What the calls of a team come to: the rows that are committed with them, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from ..config.config import Settings
from ..store.base import Store
from ..store.queries import (
    find_subagent,
    shut_down_teammate,
    stop_subagent,
    tasks_of_subagent,
    teammates_of,
)
from ..subagents.delegation import Member, NewTask, make_follow_up, make_title
from ..subagents.queries import TaskName, TaskPlace, add_task, mark_told
from ..subagents.tasks import Subagents
from ..tools.base import Context, Done, call_label, make_result
from ..tools.label_marks import needs_mark
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Text
from ..types.subagents import SubagentTask, TaskRequest, is_subagent_session, task_name
from ..types.teams import ASKS, EVERYBODY_IN_TEAM, LEAD, Mail, MailKind, Teammate, Verdict
from . import queries
from .mail import (
    check_name,
    check_text,
    clean_role,
    render_identity,
    render_mail,
    render_request,
    render_team,
)

MAX_SHOWN = 20
"""So many of the latest messages of an inbox are shown."""


class TeamCalls:
    """Makes what the tools of a team do. `on_change` is called when a call is about to be
    committed of which the service has to know."""

    def __init__(
        self,
        subagents: Subagents,
        store: Store,
        settings: Callable[[], Settings],
        on_change: Callable[[], None],
    ) -> None:
        self._subagents = subagents
        self._store = store
        self._settings = settings
        self._on_change = on_change

    @property
    def most_teammates(self) -> int:
        """How many may be in one team; 0 where there are no sub-agents at all."""
        config = self._settings().config.subagents
        return config.teammates if config.depth else 0

    # The lead

    async def spawn(
        self, name: str, role: str, prompt: str, *, agent: str, plan_first: bool, context: Context
    ) -> Done:
        """Take a teammate in, or call one back that has shut down. Raises ToolError."""
        _check_is_lead(context)
        name = check_name(name)
        # A role that somebody from outside may have written would be shown without its label.
        role = "" if needs_mark(context.label) else clean_role(role)
        team = teammates_of(self._store, context.session)
        active = [mate for mate in team if mate.state == "active"]
        if any(mate.name == name for mate in active):
            raise ToolError(f"{name} is in the team already: write to it with message_teammate")
        if len(active) >= self.most_teammates:
            names = ", ".join(mate.name for mate in active)
            raise ToolError(
                f"a team has at most {self.most_teammates} teammates, and there are: {names}. Ask "
                "one to shut down first"
            )
        member = Member(name, render_identity(name, role), plan_first)
        earlier = next((mate for mate in team if mate.name == name), None)
        if earlier is None:
            wish = NewTask(prompt, agent, waits=False, member=member)
            id_, row = await self._subagents.plan_task(wish, context)
        else:
            id_, row = await self._plan_return(earlier, prompt, agent, member, context)
        mate = Teammate(context.session, name, role, id_, "active", context.clock.now())
        what = "has begun" if earlier is None else "is back, and knows what it knew"
        said = f"[teammate {name} {what}; its answers and messages come by themselves]"
        return self._done(said, (queries.add_teammate(mate), row), context)

    async def _plan_return(
        self, mate: Teammate, prompt: str, agent: str, member: Member, context: Context
    ) -> tuple[str, Change]:
        last = await self._last_task(mate)
        if agent and agent != last.request.agents[-1]:
            raise ToolError(
                f"{mate.name} is the agent {last.request.agents[-1]!r}: leave `agent` out, or take "
                "another name"
            )
        await self._subagents.check_room(context)
        request = make_follow_up(prompt, context, self._settings(), last.request)
        path = (*request.path[:-1], make_title(prompt, mate.name))
        request = replace(request, identity=member.identity, plans=member.plans, path=path)
        name = TaskName(mate.id, last.round + 1)
        self._subagents.expect_task(task_name(name.id, name.round))
        place = TaskPlace(last.parent, last.session)
        row = add_task(name, place, request, context.clock.now())
        return mate.id, replace(row, must=True)

    async def ask_to_shut_down(self, name: str, reason: str, context: Context) -> Done:
        """Raises ToolError."""
        _check_is_lead(context)
        mate = self._find_mate(name, context)
        text = f"Reason: {reason}" if reason.strip() else ""
        mail = await self._make_mail("shutdown_request", mate, text, context)
        said = f"[request {mail.id}: {mate.name} is asked to shut down; its answer comes by itself]"
        return self._done(said, (queries.add_mail(mail),), context)

    async def review_plan(
        self, request_id: str, approve: bool, feedback: str, context: Context
    ) -> Done:
        """Raises ToolError."""
        _check_is_lead(context)
        asked = await self._find_open(request_id, "plan_approval_request", context)
        mate = self._find_mate(asked.sender, context)
        verdict: Verdict = "approved" if approve else "rejected"
        text = f"Your plan is {verdict}." + (f"\n{feedback}" if feedback.strip() else "")
        mail = await self._make_mail("plan_approval_response", mate, text, context, asked.id)
        rows = (queries.answer_mail(asked, verdict), queries.add_mail(mail))
        return self._done(f"[the plan of {mate.name} is {verdict}]", rows, context)

    # Everybody

    async def write(self, to: str, content: str, context: Context) -> Done:
        """Raises ToolError."""
        me = self._name_of(context)
        text = check_text(content)
        to = to.strip().lower()
        if to == EVERYBODY_IN_TEAM:
            others = [mate for mate in self._active(context) if mate.name != me]
            if not others and me == LEAD:
                raise ToolError("there are no teammates: take one in with spawn_teammate")
            made = [await self._make_mail("broadcast", mate, text, context) for mate in others]
            if me != LEAD:
                made.append(await self._make_mail("broadcast", None, text, context))
        elif to == me:
            raise ToolError("you cannot write to yourself")
        else:
            mate = None if to == LEAD else self._find_mate(to, context)
            made = [await self._make_mail("message", mate, text, context)]
        names = ", ".join(mail.recipient for mail in made)
        return self._done(f"[on its way to {names}]", [queries.add_mail(m) for m in made], context)

    async def show_plan(self, content: str, context: Context) -> Done:
        """Raises ToolError. The turn ends: nothing is to be done before there is an answer."""
        me = self._require_membership(context)
        mail = await self._make_mail("plan_approval_request", None, check_text(content), context)
        said = f"[request {mail.id}: the lead is shown this plan]\n{mail.text}"
        works = [task for task in await tasks_of_subagent(self._store, me.id) if task.is_live]
        rows = (queries.add_mail(mail), *map(mark_told, works))  # the plan is what is told of them
        return replace(self._done(said, rows, context), end_turn=True)

    async def answer_shutdown(
        self, request_id: str, approve: bool | None, content: str, context: Context
    ) -> Done:
        """Raises ToolError."""
        me = self._require_membership(context)
        if approve is None:
            raise ToolError("a shutdown_response needs approve: true or false")
        asked = await self._find_open(request_id, "shutdown_request", context)
        verdict: Verdict = "approved" if approve else "rejected"
        text = f"{verdict}{': ' if content.strip() else ''}{content.strip()}"
        mail = await self._make_mail("shutdown_response", None, text, context, asked.id)
        rows = [queries.answer_mail(asked, verdict), queries.add_mail(mail)]
        if approve:
            rows += [shut_down_teammate(me), stop_subagent(me.id, "it has shut down")]
        done = self._done(f"[the lead is told: {text}]", rows, context)
        return replace(done, end_turn=approve)

    async def read_inbox(self, context: Context) -> Done:
        me = self._name_of(context)
        mail = await queries.inbox_of(self._store, context.board, me, MAX_SHOWN)
        if not mail:
            return make_result("Nothing was written to you.", call_label(context))
        text = "\n\n".join(render_mail(each) for each in reversed(mail))
        return make_result(text, _label_of(context, (each.label for each in mail)))

    async def list_team(self, context: Context) -> Done:
        team = teammates_of(self._store, context.board)
        if not team:
            return make_result("There are no teammates.", call_label(context))
        last = [await self._last_task(mate) for mate in team]
        doing = [task.title.partition(": ")[2] if task.is_live else "" for task in last]
        labels = (task.request.label for task in last)
        return make_result(render_team(team, doing), _label_of(context, labels))

    async def check_request(self, request_id: str, context: Context) -> Done:
        """Raises ToolError."""
        asked = await self._find_request(request_id, context)
        answer = await queries.find_answer(self._store, asked)
        labels = [asked.label, *([answer.label] if answer is not None else [])]
        return make_result(render_request(asked, answer), _label_of(context, labels))

    @staticmethod
    def go_idle(summary: str, context: Context) -> Done:
        """The turn ends with this summary."""
        said = Text(summary.strip() or "There is nothing to do.", call_label(context))
        return Done((said,), end_turn=True)

    # What they share

    def _name_of(self, context: Context) -> str:
        return context.membership.name if context.membership is not None else LEAD

    def _require_membership(self, context: Context) -> Teammate:
        if context.membership is None:
            raise ToolError("only a teammate can send that: you lead the team")
        return self._find_mate(context.membership.name, context)

    def _active(self, context: Context) -> list[Teammate]:
        team = teammates_of(self._store, context.board)
        return [mate for mate in team if mate.state == "active"]

    def _find_mate(self, name: str, context: Context) -> Teammate:
        """Raises ToolError."""
        name = name.strip().lower()
        team = teammates_of(self._store, context.board)
        found = next((mate for mate in team if mate.name == name), None)
        if found is not None and found.state == "active":
            return found
        if found is not None:
            back = ": call it back with spawn_teammate" if context.membership is None else ""
            raise ToolError(f"{name} has shut down{back}")
        there = ", ".join(mate.name for mate in team if mate.state == "active") or "none"
        raise ToolError(f"there is no teammate {name[:40]!r}; there are: {there}")

    async def _last_task(self, mate: Teammate) -> SubagentTask:
        tasks = await tasks_of_subagent(self._store, mate.id)
        if not tasks:
            raise ToolError(f"nothing is left of {mate.name}: take somebody in under another name")
        return tasks[-1]

    async def _make_mail(
        self,
        kind: MailKind,
        mate: Teammate | None,
        text: str,
        context: Context,
        about: str = "",
    ) -> Mail:
        """A mail to this teammate, or to the lead."""
        to = LEAD if mate is None else mate.name
        request = None if mate is None else await self._make_request(mate, text, context)
        id_ = sha256(f"{context.key}:{to}".encode()).hexdigest()[:12]
        label = join_labels((LOCAL, context.label))
        now = context.clock.now()
        me = self._name_of(context)
        return Mail(id_, context.board, me, to, kind, text, label, now, request, about)

    async def _make_request(self, mate: Teammate, text: str, context: Context) -> TaskRequest:
        """How the teammate is given it. Who is no lead changes nothing of how it works."""
        last = (await self._last_task(mate)).request
        parent = find_subagent(self._store, context.session)
        request = make_follow_up(text or "-", context, self._settings(), last, parent)
        if context.membership is None:
            return request
        kept = {"audience": last.audience, "address": last.address, "call_id": last.call_id}
        return replace(request, **kept)

    async def _find_request(self, request_id: str, context: Context) -> Mail:
        found = await queries.find_mail(self._store, context.board, request_id.strip())
        if found is None or found.kind not in ASKS:
            raise ToolError(f"there is no request {request_id[:40]!r} in this team")
        return found

    async def _find_open(self, request_id: str, kind: MailKind, context: Context) -> Mail:
        """The request of this kind that whoever calls has to answer. Raises ToolError."""
        asked = await self._find_request(request_id, context)
        if asked.kind != kind or asked.recipient != self._name_of(context):
            raise ToolError(f"request {asked.id} is not for you to answer so")
        if asked.answer:
            raise ToolError(f"request {asked.id} was answered before: {asked.answer}")
        return asked

    def _done(self, said: str, rows: Sequence[Change], context: Context) -> Done:
        self._on_change()
        return Done((Text(said, call_label(context)),), changes=tuple(rows))


def _check_is_lead(context: Context) -> None:
    if is_subagent_session(context.session):
        raise ToolError("only the conversation of people leads a team")
    if not context.options.teams:
        raise ToolError(
            "there are no teams in this conversation: a person turns them on, /teams on"
        )


def _label_of(context: Context, labels: Iterable[Label]) -> Label:
    """The label of a result that quotes what has these."""
    return join_labels((call_label(context), *labels))
