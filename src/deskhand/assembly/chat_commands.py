"""What the chat commands do, in words and options: `types.commands` lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path

from ..agent.handoff import describe_departure
from ..agent.state import State
from ..models.base import Model
from ..models.token_estimate import estimate_tokens
from ..models.window import KEPT_STEPS
from ..policy.approval import may_approve
from ..policy.information_flow import source_host
from ..types.commands import COMMANDS, WELCOME
from ..types.errors import ModelError
from ..types.events import AnyEvent, CommandRun, OptionsSet
from ..types.goals import DEEP_WORK_COMPACTED, GOAL_OFF
from ..types.identity import Command, Configure, Principal, Waiting, is_own_session, principal_label
from ..types.marked_texts import mark_text
from ..types.messages import Message, Text
from ..types.options import FOCUS_ALL, FOCUS_CHARS, SYSTEM_PROMPT_CHARS, TITLE_CHARS, SessionOptions
from ..types.turn import HANDOFF, STOP_TURN_ONLY, make_message_received
from .prompt_presets import list_presets

REQUEST_COMMANDS = frozenset({"deep", "goal"})
"""Commands whose words are the next message too."""
MIN_MESSAGES = KEPT_STEPS
"""Fewer messages than this are not summed up."""
_DEEP_IS_OFF = mark_text("Deep work is off.")
_BY_RULES = mark_text("I ask as the rules say.")
_OWN_MODEL = mark_text("the agent's own")
_READ_FROM = mark_text("Read from outside: {sources_text}.")
OptionsCheck = Callable[[Principal, str, SessionOptions], str]
"""What speaks against this person's setting these options of this session; '' for nothing."""


def _help(state: State, args: str) -> str:
    line = mark_text("/{name}  {help_text}")
    return "\n".join(
        line.format(name=command.name, help_text=command.help) for command in COMMANDS.values()
    )


def _stop(state: State, args: str) -> str | tuple[SessionOptions, str]:
    if state.turn is not None:
        return ""  # the end of the turn says it
    if args == STOP_TURN_ONLY:
        return mark_text("There is nothing to stop.")
    if state.options.compact:
        return mark_text("Stopped: the conversation was not shortened.")
    closed = mark_text(
        "Nothing was running, so I closed this conversation. Write /start or a message to start "
        "a new one."
    )
    if state.options.mode != "deep_work":
        return closed
    return SessionOptions(mode="normal", plan_mode=False), f"{closed} {_DEEP_IS_OFF}"


def _start(state: State, args: str) -> str:
    if not state.messages and not args:
        return WELCOME
    return mark_text("This is a new conversation: I no longer see earlier messages.")


def _status(state: State, args: str) -> str:
    doing = mark_text("Nothing is running.")
    if state.turn is not None:
        waits = next(
            (call.ask.question for call in state.calls.values() if call.ask is not None), ""
        )
        doing = mark_text("Working: step {step_number}.").format(step_number=state.turn.steps + 1)
        if waits:
            doing = mark_text("Waiting for you: {question}").format(question=waits)
    model = mark_text("Model: {model_text}. {count_number} messages in view.").format(
        model_text=state.model or mark_text("none called yet"), count_number=len(state.messages)
    )
    spent = mark_text("Used so far: {input_number} tokens read, {output_number} written.").format(
        input_number=state.usage.input_tokens, output_number=state.usage.output_tokens
    )
    return f"{doing}\n{model}\n{spent}"


def _model(state: State, args: str) -> str | tuple[SessionOptions, str]:
    if not args:
        return mark_text(
            "The model here is {model_text}. Change it with /model provider/name, reset it with "
            "/model default."
        ).format(model_text=state.options.model or _OWN_MODEL)
    told = mark_text("Model from the next call on: {model_text}.")
    if args == "default":
        return SessionOptions(model=""), told.format(model_text=_OWN_MODEL)
    return SessionOptions(model=args), told.format(model_text=args)


def _title(state: State, args: str) -> str | tuple[SessionOptions, str]:
    title = " ".join(args.split())[:TITLE_CHARS]
    if not title:
        return mark_text("Write /title NAME.")
    told = mark_text("This conversation is called “{title}”.")
    return SessionOptions(title=title), told.format(title=title)


def _approval(state: State, args: str) -> str | tuple[SessionOptions, str]:
    if args not in ("on", "off"):
        asks = (
            mark_text("I ask before every tool that does more than read.")
            if state.options.approval
            else _BY_RULES
        )
        change = mark_text("Change it with /approval on or /approval off.")
        return f"{asks} {change}"
    asks = (
        mark_text("From now on I ask before every tool that does more than read.")
        if args == "on"
        else _BY_RULES
    )
    return SessionOptions(approval=args == "on"), asks


def _trust(state: State, args: str) -> str | tuple[SessionOptions, str]:
    trusted = state.options.trust or ()
    if not args:
        read = ", ".join(state.label.sources) if state.label.integrity == "untrusted" else ""
        known = mark_text("Nothing from outside is trusted here.")
        if trusted:
            known = mark_text("Trusted here: {hosts}.").format(hosts=", ".join(trusted))
        seen = _READ_FROM.format(sources_text=read or mark_text("nothing"))
        usage = mark_text("Write /trust HOST, or /trust off.")
        return f"{seen}\n{known} {usage}"
    if args == "off":
        told = mark_text("From now on nothing from outside is trusted here.")
        return SessionOptions(trust=()), told
    named = (
        source_host(args if "://" in args else f"https://{args}")
        if not args.startswith("file ")
        else args
    )
    if not named:
        return mark_text("{host} is not a host: write /trust example.org.").format(host=repr(args))
    told = mark_text(
        "In this conversation I treat content from {host} as if it came from you. /trust off ends "
        "that."
    )
    return SessionOptions(trust=tuple(dict.fromkeys((*trusted, named)))), told.format(host=named)


def _plan(state: State, args: str) -> str | tuple[SessionOptions, str]:
    if args not in ("on", "off"):
        now = (
            mark_text("I only read and make a plan.")
            if state.options.plan_mode
            else mark_text("I do what is asked, without a plan first.")
        )
        change = mark_text("Change it with /plan on or /plan off.")
        return f"{now} {change}"
    told = (
        mark_text("From now on I only read, until you approve my plan.")
        if args == "on"
        else mark_text("I continue without a plan.")
    )
    return SessionOptions(plan_mode=args == "on"), told


def _voice(state: State, args: str) -> str | tuple[SessionOptions, str]:
    told = {
        "on": mark_text(
            "From now on every answer comes as a voice message too, where this place takes one."
        ),
        "off": mark_text("From now on I answer in writing only."),
        "auto": mark_text("I answer by voice too when you speak to me."),
    }
    if args not in told:
        return mark_text(
            "/voice is {mode_name}. Change it with /voice on, /voice off or /voice auto."
        ).format(mode_name=state.options.voice or "auto")
    chosen = {"on": "on", "off": "off"}.get(args, "")
    return SessionOptions(voice=chosen), told[args]  # type: ignore[arg-type]


def _context(state: State, args: str) -> str:
    roles = [shown.message.role for shown in state.messages]
    said, mine, results = (roles.count(role) for role in ("user", "assistant", "tool"))
    lines = [
        mark_text(
            "In view: {to_number} messages to me, {from_number} from me, {results_number} tool "
            "results."
        ).format(to_number=said, from_number=mine, results_number=results)
    ]
    used = state.context_tokens or sum(estimate_tokens(shown.message) for shown in state.messages)
    takes = (
        mark_text("They take about {tokens_number} tokens.")
        if state.context_tokens
        else mark_text("They take about {tokens_number} tokens, estimated.")
    )
    lines.append(takes.format(tokens_number=f"{used:,}"))
    if state.compacted_at:
        lines.append(
            mark_text(
                "Earlier messages are summarised or shortened. To show all of them to me again: "
                "/uncompact."
            )
        )
    if state.masked_up_to:
        lines.append(mark_text("Long results of earlier calls are shortened to one line each."))
    if state.label.integrity == "untrusted":
        sources = ", ".join(state.label.sources) or mark_text("unnamed sources")
        lines.append(_READ_FROM.format(sources_text=sources))
    return "\n".join([*lines, mark_text("/compact makes room.")])


def _compact(state: State, args: str) -> str | tuple[SessionOptions, str]:
    if len(state.messages) < MIN_MESSAGES:
        return mark_text("There is not enough to summarise yet.")
    told = (
        mark_text("I summarise earlier messages when this is done.")
        if state.calls
        else mark_text("I summarise earlier messages.")
    )
    return SessionOptions(compact=args[:FOCUS_CHARS] or FOCUS_ALL), told


def _deep(state: State, args: str) -> str | tuple[SessionOptions, str]:
    on = state.options.mode == "deep_work"
    if not args:
        now = (
            mark_text("Deep work is on: I continue by myself while tasks are open.")
            if on
            else _DEEP_IS_OFF
        )
        usage = mark_text("Write /deep REQUEST to start, /deep on or /deep off.")
        return f"{now} {usage}"
    if args == GOAL_OFF:
        stay = mark_text("The tasks stay as they are.")
        return SessionOptions(mode="normal", plan_mode=False), f"{_DEEP_IS_OFF} {stay}"
    told = mark_text(
        "Deep work is on: I plan first and show you the plan; after you approve it, I continue "
        "until all is done."
    )
    if args != "on" and state.turn is not None:
        return mark_text(
            "I am still working here. Write /stop first, or /deep on to continue this as deep work."
        )
    return SessionOptions(mode="deep_work", plan_mode=True), told


def _goal(state: State, args: str) -> str:
    if not args:
        return mark_text(
            "Write /goal TEXT to set a goal for this conversation, /goal off to end it."
        )
    if args.lower() == GOAL_OFF:
        return mark_text("This conversation no longer has a goal.")
    return mark_text(
        "The goal is set. After each turn it is checked, and I continue until it is reached."
    )


def _restart(state: State, args: str) -> str:
    return mark_text("I am restarting and will write here when I am back.")


CommandReply = str | tuple[SessionOptions, str]
CommandHandlers = Mapping[str, Callable[[State, Waiting, str], CommandReply]]
"""Commands that somebody answers who knows more than the conversation: by name, from it, who asks
where, and the arguments."""

HANDLERS: dict[str, Callable[[State, str], str | tuple[SessionOptions, str]]] = {
    "help": _help,
    "stop": _stop,
    "start": _start,
    "status": _status,
    "model": _model,
    "title": _title,
    "approval": _approval,
    "trust": _trust,
    "plan": _plan,
    "voice": _voice,
    "context": _context,
    "compact": _compact,
    "deep": _deep,
    "goal": _goal,
    "restart": _restart,
}
"""Pure: each gives what the person reads, or what is to be set and what they read then. What else a
command changes, the fold changes on `CommandRun`."""


class ChatCommands:
    """Implements `agent.protocols.Commands`. `check` says why somebody may not set options,
    `describe_activity` what goes on in a session beside its turns, and `live` are the commands that
    are answered elsewhere."""

    def __init__(
        self,
        check: OptionsCheck,
        describe_activity: Callable[[str], str] = lambda session: "",
        live: CommandHandlers | None = None,
    ) -> None:
        self._check = check
        self._describe_activity = describe_activity
        self._live = live or {}

    def run(self, state: State, row: Waiting) -> list[AnyEvent] | None:
        """The events of a command or of options to be set, as far as words go; None for what is
        neither, [] for what needs the log. An unknown name or a missing role is answered, never
        ignored."""
        body = row.inbound.body
        if isinstance(body, Configure) and row.principal.kind == "system":
            return [OptionsSet(row.inbox_id, row.principal, body.options)]
        if isinstance(body, Configure):
            return self._set_options(state, row, body.options)
        if not isinstance(body, Command):
            return None
        if row.principal.kind == "system":
            return _run_own_note(row, body)
        return self._run_command(state, row, body)

    def _run_command(self, state: State, row: Waiting, command: Command) -> list[AnyEvent]:
        name = command.name
        args = command.args
        if refused := _why_not_theirs(row.principal, command):
            return [CommandRun(row.inbox_id, row.principal, name, args, refused, refused=True)]
        if COMMANDS[name].needs_log:
            return []

        if name == HANDOFF:
            said = describe_departure(state, row, args.strip(), command.to)
            return [CommandRun(row.inbox_id, row.principal, name, args, said, to=command.to)]
        done = _call_handler(state, row, name, args.strip(), self._live)
        options, reply = (None, done) if isinstance(done, str) else done
        if name == "status" or (name in REQUEST_COMMANDS and not args.strip()):
            activity = self._describe_activity(state.session)
            reply = "\n".join(line for line in (reply, activity) if line)
        if options is not None:
            return self._set_options(state, row, options, command, reply)
        ran = CommandRun(row.inbox_id, row.principal, name, args, reply)
        return [ran, *begin_request(state, row, name, args)]

    def _set_options(
        self,
        state: State,
        row: Waiting,
        options: SessionOptions,
        command: Command | None = None,
        reply: str = "",
    ) -> list[AnyEvent]:
        """Set them, unless something speaks against it. Without a `command` a surface asks."""
        name, args = (command.name, command.args) if command is not None else ("configure", "")
        if refused := _why_refused(self._check, state, row, options):
            return [CommandRun(row.inbox_id, row.principal, name, args, refused, refused=True)]
        events: list[AnyEvent] = [OptionsSet(row.inbox_id, row.principal, options)]
        if reply:
            events.append(CommandRun(row.inbox_id, row.principal, name, args, reply))
        return [*events, *begin_request(state, row, name, args)]


def _run_own_note(row: Waiting, command: Command) -> list[AnyEvent]:
    """A note of Deskhand itself: it says what it says."""
    note = CommandRun(row.inbox_id, row.principal, command.name, "", command.args)
    if command.name != DEEP_WORK_COMPACTED:
        return [note]
    compacting = SessionOptions(compact=FOCUS_ALL)
    return [OptionsSet(row.inbox_id, row.principal, compacting), note]


def _why_not_theirs(principal: Principal, command: Command) -> str:
    """Why this person may not give this command; '' where they may."""
    known = COMMANDS.get(command.name)
    if known is None:
        return _explain_unknown(command)
    if not known.role:
        return ""
    # A job acts for an owner, and is none.
    if principal.kind == "person" and known.role in principal.roles:
        return ""
    return mark_text("{command_name} is for {role_name}s.").format(
        command_name=f"{command.prefix}{command.name}", role_name=known.role
    )


def _explain_unknown(command: Command) -> str:
    """What somebody reads who wrote a command that there is not."""
    prefix = command.prefix
    name = command.name
    near = get_close_matches(name[:64], COMMANDS, 1)
    said = [mark_text("I do not know {command}.").format(command=f"{prefix}{name}")]
    if near:
        meant = mark_text("Did you mean {name}?")
        said.append(meant.format(name=f"{prefix}{near[0]}"))
    said.append(mark_text("{prefix_name}help lists what I know.").format(prefix_name=prefix))
    if prefix == "!":
        said.append(
            mark_text(
                "The model did not see your message. If you did not mean a command, write a space "
                "after the !: ! {name} …"
            ).format(name=name)
        )
    return " ".join(said)


def begin_request(state: State, row: Waiting, name: str, args: str) -> list[AnyEvent]:
    """The request in `/deep REQUEST` and `/goal TEXT` is also the next message, where nothing else
    is going on."""
    wanted = args.strip()
    if (
        name not in REQUEST_COMMANDS
        or state.turn is not None
        or wanted.lower() in ("", "on", GOAL_OFF)
    ):
        return []
    return [
        make_message_received(
            row,
            Message("user", (Text(wanted, principal_label(row.principal)),)),
            state.participants,
        )
    ]


def _call_handler(
    state: State, row: Waiting, name: str, args: str, live: CommandHandlers
) -> str | tuple[SessionOptions, str]:
    if name in HANDLERS:
        return HANDLERS[name](state, args)
    if name not in live:
        return mark_text("This command is not available here.")
    return live[name](state, row, args)


def _why_refused(check: OptionsCheck, state: State, row: Waiting, options: SessionOptions) -> str:
    if row.principal.kind != "person":
        return mark_text("Only a person may change the settings of a conversation.")
    if options.trust and not may_approve(row.principal):
        return mark_text("Only an owner or an approver may trust content from outside.")
    if state.options.approval and options.approval is False and not may_approve(row.principal):
        return mark_text("Only an owner or an approver may turn off asking before every tool.")
    return check(row.principal, state.session, options)


def why_owner_only(
    principal: Principal, session: str, options: SessionOptions, models: Collection[str]
) -> str:
    """What of these options is for owners, in a sentence; '' for nothing. Who pays chooses the
    models, of which others may take what the configuration names; and what an agent is told is set
    by nobody for others."""
    if "owner" in principal.roles:
        return ""
    if options.model and options.model not in models:
        return mark_text(
            "Only owners may choose the model {model}. Models that everybody may choose here: "
            "{models_text}."
        ).format(
            model=repr(options.model), models_text=", ".join(sorted(models)) or mark_text("none")
        )
    if (options.system_prompt is not None or options.preset is not None) and not is_own_session(
        principal, session
    ):
        return mark_text(
            "The system prompt and the preset can be set in your own conversation on the page, "
            "or by an owner."
        )
    return ""


def why_unusable(options: SessionOptions, model: Callable[[str], Model], prompts: Path) -> str:
    """What speaks against these options, in a sentence; '' for nothing. `model` opens
    `provider/name`, `prompts` is the folder of presets."""
    if options.model:
        provider, _, name = options.model.partition("/")
        if not (provider and name):
            return mark_text(
                "{model} is not a model: write provider/name, as listed by `deskhand model list`."
            ).format(model=repr(options.model))
        try:
            model(options.model)
        except ModelError as error:
            return str(error)
    names = [preset.name for preset in list_presets(prompts)] if options.preset else []
    if options.preset and options.preset not in names:
        return mark_text("There is no preset {preset}; choose one of: {names}.").format(
            preset=repr(options.preset), names=", ".join(names)
        )
    if options.title and len(options.title) > TITLE_CHARS:
        return mark_text("A title has at most {most_number} characters.").format(
            most_number=TITLE_CHARS
        )
    if options.system_prompt and (size := len(options.system_prompt)) > SYSTEM_PROMPT_CHARS:
        return mark_text(
            "This system prompt has {count_number} characters; at most {most_number} fit."
        ).format(count_number=f"{size:,}", most_number=f"{SYSTEM_PROMPT_CHARS:,}")
    return ""
