"""What was said before, found again without a model: in conversations whose readers include all who
read this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..agent.fold import fold
from ..agent.state import State
from ..gateway.name_labels import label_of_name
from ..store.base import Hit, Store
from ..store.queries import last_event_of_kind
from ..tools.base import Context, Done, Tool, call_label
from ..tools.define import tool
from ..types.errors import ToolError
from ..types.events import (
    Branched,
    Compacted,
    MessageReceived,
    ModelReplied,
    OptionsSet,
    Recorded,
    ToolFinished,
    Transcribed,
    TurnEnded,
)
from ..types.identity import EVERYBODY, Principal, principal_label, responsible_person, session_key
from ..types.labels import LOCAL, OWNER, Label, join_labels
from ..types.messages import Text, clean_text
from .queries import sessions_of_place

MAX_SESSIONS = 5
MAX_PER_SESSION = 2
MAX_HITS = 80
CONTEXT_LINES = 2
READ_CONTEXT_LINES = 10
LINE_CHARS = 600
READ_LINE_CHARS = 4_000
RESULT_CHARS = 200
MAX_THREADS = 50
NO_HITS_TEXT = "Nothing was found. Try fewer or other words: each place has all of them."
OWN_TOOLS = ("search_past", "read_past")
"""What these return was said elsewhere."""
NO_CONVERSATION_TEXT = (
    "There is no conversation of that name that everybody here may read: find the names with "
    "search_past."
)


class PastLine(msgspec.Struct, frozen=True):
    """Something that was said in a conversation. `label` is whose word it is: of what the model
    said, that of all that it had read."""

    n: int
    at: float
    who: str
    text: str
    label: Label
    kind: Literal["said", "result"] = "said"


class PastConversation(msgspec.Struct, frozen=True):
    """What was said in a conversation, and whose word its title is."""

    lines: list[PastLine]
    titled: Label


class PastSearch:
    """Looks into the log for one conversation, and no further than all of its readers may. `zone`
    is where times are told."""

    def __init__(self, store: Store, zone: Callable[[], str]) -> None:
        self._store = store
        self._zone = zone

    def tools(self) -> tuple[Tool, ...]:
        """What agents can do with it."""
        past = self

        @tool(timeout_s=30, hint="talks")
        async def search_past(query: str, context: Context) -> Done:
            """Search what was said in earlier conversations with the same people, here and
            elsewhere: each place that fits with what was said around it, and how that conversation
            began and ended. Costs no call of a model.

            query: words that were used then; each place has all of them, or words that begin so
            """
            return await past.search(query, context)

        @tool(timeout_s=30)
        async def read_past(session: str, n: int, context: Context) -> Done:
            """Read more of an earlier conversation around one place.

            session: its name, as search_past shows it
            n: the number of the place
            """
            return await past.read(session, n, context)

        return search_past, read_past

    async def search(self, query: str, context: Context) -> Done:
        """Raises ToolError where the query has no word."""
        if not any(character.isalnum() for character in query):
            raise ToolError("the query contains no words: write words that were used then")
        chosen: dict[str, list[Hit]] = {}
        began = await self._turn_start(context.session)
        for hit in await self._find_hits(query, context):
            if hit.session == context.session and hit.n > began:
                continue  # it is what is being said now
            if hit.session in chosen or len(chosen) < MAX_SESSIONS:
                chosen.setdefault(hit.session, []).append(hit)
        parts = []
        for session, hits in chosen.items():
            talk = await self._load_conversation(session)
            parts += [
                self._render_window(session, talk, hit, context) for hit in hits[:MAX_PER_SESSION]
            ]
        if not parts:
            return Done((Text(NO_HITS_TEXT, call_label(context)),))
        return Done(tuple(parts))

    async def read(self, session: str, n: int, context: Context) -> Done:
        """Raises ToolError for a conversation that is not theirs, in the words for one that does
        not exist."""
        if session not in await self._readable_sessions(context, session):
            raise ToolError(NO_CONVERSATION_TEXT)
        lines = (await self._load_conversation(session)).lines
        if not lines:
            raise ToolError(NO_CONVERSATION_TEXT)
        at = min(range(len(lines)), key=lambda i: abs(lines[i].n - n))
        shown = lines[max(0, at - READ_CONTEXT_LINES) : at + READ_CONTEXT_LINES + 1]
        more = f"numbers {lines[0].n} to {lines[-1].n}; this is {shown[0].n} to {shown[-1].n}"
        text = "\n".join(
            [f"[{session}: {more}]", *(self._render_line(line, READ_LINE_CHARS) for line in shown)]
        )
        return Done((Text(clean_text(text), self._join_label(shown, session, context)),))

    # Who may read what

    async def _find_hits(self, query: str, context: Context) -> list[Hit]:
        """Never by the rights of an owner, who may see everything: what is theirs is what they take
        part in."""
        if self._is_alone(context):
            found = await self._store.search(Principal(context.person), query, MAX_HITS)
            return [hit for hit in found if hit.session.partition("/")[0] == context.agent]
        here = [
            await self._store.search(_SYSTEM_PRINCIPAL, query, MAX_HITS, each)
            for each in await self._chat_sessions(context)
        ]
        return [hit for hits in here for hit in hits]

    async def _readable_sessions(self, context: Context, session: str) -> Sequence[str]:
        if not self._is_alone(context):
            return await self._chat_sessions(context)
        if session.partition("/")[0] != context.agent:
            return ()
        return (session,) if await self._store.may_see(Principal(context.person), session) else ()

    def _is_alone(self, context: Context) -> bool:
        return context.person not in ("", EVERYBODY) and not context.address.group

    async def _chat_sessions(self, context: Context) -> Sequence[str]:
        """What was said in this very chat. In a group, with the other threads in it: who reads
        there reads them too."""
        if not context.address.group:
            return (context.session,)
        base = session_key(context.agent, replace(context.address, thread=""))
        found = await sessions_of_place(self._store, context.agent, base, MAX_THREADS)
        return list(dict.fromkeys((context.session, *found)))

    def _join_label(self, lines: Sequence[PastLine], session: str, context: Context) -> Label:
        """Never a person's own word here; and where nobody is asked, it stays with the person whose
        it is."""
        label = join_labels((LOCAL, *(line.label for line in lines)))
        if (
            session != context.session
            and context.principal.kind != "person"
            and self._is_alone(context)
        ):
            label = join_labels((label, Label("owner", (context.person, context.principal.id))))
        return label

    # What was said

    async def _load_conversation(self, session: str) -> PastConversation:
        """All that was said in it. A long one is gone through in a thread: others go on
        meanwhile."""
        talk = await anyio.to_thread.run_sync(
            _fold_conversation, session, await self._store.events(session)
        )
        return replace(
            talk, titled=join_labels((talk.titled, await label_of_name(self._store, session)))
        )

    async def _turn_start(self, session: str) -> int:
        """After which number the turn that goes on now began."""
        return await last_event_of_kind(self._store, session, "turn_ended")

    def _render_window(
        self, session: str, talk: PastConversation, hit: Hit, context: Context
    ) -> Text:
        lines = talk.lines
        at = next((i for i, line in enumerate(lines) if line.n == hit.n), None)
        if at is None:
            return Text(
                f"[{session}, number {hit.n}: it is no longer there]",
                join_labels((LOCAL, talk.titled)),
            )
        around = lines[max(0, at - CONTEXT_LINES) : at + CONTEXT_LINES + 1]
        ends = [line for line in (lines[0], lines[-1]) if line not in around]
        told = [f"[{session}{f' “{hit.title}”' if hit.title else ''}, number {hit.n}]"]
        if lines[0] in ends:
            told.append(f"It began: {self._render_line(lines[0], RESULT_CHARS)}")
        told += [
            f"{'>' if line.n == hit.n else ' '} {self._render_line(line, LINE_CHARS)}"
            for line in around
        ]
        if lines[-1] in ends:
            told.append(f"It ended: {self._render_line(lines[-1], RESULT_CHARS)}")
        label = join_labels((self._join_label((*around, *ends), session, context), talk.titled))
        return Text(clean_text("\n".join(told)) + "\n", label)

    def _render_line(self, line: PastLine, most: int) -> str:
        when = datetime.fromtimestamp(line.at, ZoneInfo(self._zone())).strftime("%Y-%m-%d %H:%M")
        text = " ".join(line.text.split())
        most = RESULT_CHARS if line.kind == "result" else most
        return f"{when} {line.who}: {text[:most]}{'…' if len(text) > most else ''}"


_SYSTEM_PRINCIPAL = Principal("search_past", ("owner",), "system")


def _fold_conversation(session: str, log: Sequence[Recorded]) -> PastConversation:
    """What was said, by the log. The labels follow from it, as they did when it was said."""
    state = State(session)
    names = dict[str, str]()
    lines = list[PastLine]()
    titled = OWNER
    for recorded in log:
        fold(state, (recorded,))
        if (line := _make_line(recorded, state.label, names)) is not None:
            lines.append(line)
        match recorded.event:
            case MessageReceived(message=message) if titled == OWNER:
                titled = join_labels(part.label for part in message.parts if isinstance(part, Text))
            case OptionsSet(options=options, principal=principal) if options.title is not None:
                titled = (
                    join_labels((principal_label(principal), state.label))
                    if not recorded.event.inbox_id
                    else principal_label(principal)
                )
            case Transcribed(text=text) if text:  # it may be what the conversation is called
                titled = join_labels((titled, state.label))
            case Branched(principal=principal):
                titled = principal_label(principal)
            case Compacted() if (
                lines == [] and titled != OWNER
            ):  # of a branch: its title is made of that before
                titled = join_labels(
                    (titled, state.label, Label("owner", by=state.options.title_by or ()))
                )
            case _:
                pass
    return PastConversation(lines, titled)


def _make_line(recorded: Recorded, label: Label, names: dict[str, str]) -> PastLine | None:
    n = recorded.n
    at = recorded.at
    match recorded.event:
        case MessageReceived(message=message, principal=principal) if message.text.strip():
            own = join_labels(part.label for part in message.parts if isinstance(part, Text))
            return PastLine(n, at, responsible_person(principal), message.text, own)
        case Transcribed(text=text) if text:
            return PastLine(n, at, "[a voice message]", text, label)
        case ModelReplied(message=message):
            names |= {call.id: call.name for call in message.calls}
            return PastLine(n, at, "you", message.text, label) if message.text.strip() else None
        case ToolFinished(result=result) if (
            result.text.strip() and names.get(result.call_id) not in OWN_TOOLS
        ):
            read = join_labels(
                (label, *(part.label for part in result.parts))
            )  # it repeats what the call said
            return PastLine(
                n, at, f"[{names.get(result.call_id, 'a tool')}]", result.text, read, "result"
            )
        case TurnEnded(said=said) if said.strip():
            return PastLine(n, at, "you", said, label)
        case _:
            return None
