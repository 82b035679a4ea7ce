"""Typed queries on the tables that several rooms read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..types.commit import Change, Outgoing
from ..types.events import MessageReceived, ModelReplied, OptionsSet, decode_event
from ..types.identity import Address, Inbound, Principal
from ..types.options import SessionOptions
from ..types.process import Process, parse_process_row
from ..types.subagents import SubagentTask, is_subagent_session, parse_task_row
from ..types.teams import Teammate, parse_teammate_row
from .base import SessionRow, StatementReader, Store

_encode = msgspec.json.encode


class CallStart(msgspec.Struct, frozen=True, gc=False):
    """Where a tool call stands in the log: the name of its tool, and when the model asked for
    it."""

    tool: str
    at: float


class AcceptedMessage(msgspec.Struct, frozen=True, gc=False):
    """What came in for a session."""

    session: str
    inbound: Inbound


class InboxBody(msgspec.Struct, frozen=True, gc=False):
    """The JSON in an inbox row that was not erased."""

    principal: Principal
    inbound: Inbound


decode_inbox_body = msgspec.json.Decoder(InboxBody).decode


class DeadLetter(msgspec.Struct, frozen=True):
    """A session that was given up at `at` (seconds since the epoch), after its event number
    `n`."""

    id: int
    session: str
    n: int
    at: float
    reason: str


class StandingGrant(msgspec.Struct, frozen=True, kw_only=True):
    """`always` or `never` to exactly this call of this person, which `by` said at `at` (seconds
    since the epoch). `id` is the hash of the call."""

    id: str
    verdict: str
    agent: str
    tool: str
    arguments: str
    at: float
    by: str


class GrantVerdict(msgspec.Struct, frozen=True):
    """What `by` said to exactly one call for good: `always` or `never`."""

    verdict: str
    by: str


class PathGrant(msgspec.Struct, frozen=True):
    """A folder that a person lets an agent read, or `write` as well. `at` is when they did (seconds
    since the epoch). `outside`: commands may write there on words from outside."""

    path: str
    write: bool
    at: float
    by: str
    outside: bool


# Sessions and their members


async def find_session_row(store: Store, session: str) -> SessionRow | None:
    """The line of this session in the list of sessions, or None for one that has not begun."""
    for row in await store.query("session_get", (session,)):
        return SessionRow.from_row(row)
    return None


class Counts(msgspec.Struct, frozen=True):
    """How many events and conversations there are, how many of those are open, how many questions
    wait for a person, and how many conversations were given up."""

    events: int
    sessions: int
    open_sessions: int
    asks: int
    given_up: int


async def count_sessions(store: Store) -> int:
    """How many sessions have begun."""
    ((count,),) = await store.query("session_count", ())
    return int(count)


async def count_all(store: Store) -> Counts:
    """How much of everything there is."""
    (row,) = await store.query("count_all", ())
    return Counts(*map(int, row))


async def count_messages(store: Store, sessions: Sequence[str]) -> dict[str, int]:
    """How many messages people and models have written in each of these sessions. Sessions without
    any are left out."""
    return dict(await store.query("session_messages", (_json_list(sessions),)))


async def members_of(store: Store, session: str) -> set[str]:
    """The ids of the principals who take part in this session."""
    return {member for (member,) in await store.query("session_members", (session,))}


async def members_of_used(store: Store, since_day: int) -> list[tuple[str, str]]:
    """The sessions that have used any tokens from this day on (days since the epoch), each with the
    ids of its members."""
    return [(session, who) for session, who in await store.query("usage_members", (since_day,))]


async def has_members(store: Store, session: str) -> bool:
    """Whether anybody takes part in this session, which is so from its first message on."""
    ((found,),) = await store.query("session_has_members", (session,))
    return bool(found)


def add_member(session: str, principal: str) -> Change:
    """Let this principal take part in the session. Does nothing for one who already does."""
    return Change("session_join", (session, principal))


# The log


async def last_event_number(store: Store, session: str) -> int:
    """The number of the session's last event, or 0 when it has none."""
    return last_event_number_now(store, session)


def last_event_number_now(store: Store, session: str) -> int:
    """The same, for who may not wait."""
    for n, _ in store.query_sync("event_head", (session,)):
        return int(n)
    return 0


async def last_event_of_kind(store: Store, session: str, kind: str) -> int:
    """The number of the session's last event of this kind, or 0 when it has none."""
    ((n,),) = await store.query("event_last_of_kind", (session, kind))
    return int(n)


async def options_of(store: Store, session: str) -> SessionOptions:
    """What was set for this session, one after the other."""
    found = SessionOptions()
    for (body,) in await store.query("event_options_set", (session,)):
        event = decode_event(body)
        if isinstance(event, OptionsSet):
            found = found.merge(event.options)
    return found


class TurnOpening(msgspec.Struct, frozen=True):
    """The message that opened a turn: who wrote it, and when (seconds since the epoch)."""

    principal: Principal
    at: float


async def find_turn_opening(store: Store, session: str, ended_n: int) -> TurnOpening | None:
    """What opened the turn that ended with this event; None where the log does not say."""
    for at, body in await store.query("event_turn_opening", (session, ended_n)):
        event = decode_event(body)
        if isinstance(event, MessageReceived):
            return TurnOpening(event.principal, at)
    return None


async def find_last_answer(store: Store, session: str, ended_n: int) -> str:
    """What the model said last before this event, or ''."""
    for (body,) in await store.query("event_last_reply", (session, ended_n)):
        event = decode_event(body)
        if isinstance(event, ModelReplied):
            return event.message.text
    return ""


async def inbox_seen_by(store: Store, person: str) -> int:
    """Up to which event (by `seq`) this person has seen what finished and failed."""
    rows = await store.query("inbox_seen_get", (person,))
    return int(rows[0][0]) if rows else 0


def set_inbox_seen(person: str, seq: int) -> Change:
    """They have seen all up to this event. It never goes back."""
    return Change("inbox_seen_set", (person, seq))


def forget_inbox_seen(person: str) -> Change:
    """Forget what this person has seen."""
    return Change("inbox_seen_drop", (person,))


def find_call(store: Store, session: str, before: int, call_id: str) -> CallStart | None:
    """The last tool call with this id before event number `before`. Only the last 8 replies that
    call tools are searched."""
    for at, body in store.query_sync("event_calls_before", (session, before)):
        if tool := tool_of_call(body, call_id):
            return CallStart(tool, at)
    return None


def tool_of_call(body: bytes, call_id: str) -> str:
    """Which tool the model's reply in this event body calls with that id, or ''."""
    reply = decode_event(body)
    if not isinstance(reply, ModelReplied):
        return ""
    for call in reply.message.calls:
        if call.id == call_id:
            return call.name
    return ""


# Files that messages name


def record_upload(digest: str, principal: str, at: float) -> Change:
    """Remember that this principal has uploaded the file, which lets them attach it."""
    return Change("blob_sent", (digest, principal, at))


def forget_uploads(before: float) -> Change:
    """Forget who uploaded files before this time (seconds since the epoch)."""
    return Change("blob_sent_expire", (before,))


async def is_blob_in_session(store: Store, digest: str, session: str) -> bool:
    """Whether an event of this session names the file."""
    ((found,),) = await store.query("blob_is_in", (digest, session))
    return bool(found)


async def may_attach_blob(store: Store, digest: str, principal: Principal) -> bool:
    """Whether `principal` has uploaded this file, or may see a session that names it."""
    sees_all = int("owner" in principal.roles)
    ((found,),) = await store.query("blob_is_theirs", (digest, sees_all, principal.id))
    return bool(found)


# Background processes


def processes_of(store: Store, session: str, limit: int) -> list[Process]:
    """The background processes of this session, the latest first."""
    return _parse_processes(store.query_sync("process_list", (session, limit)))


async def visible_processes(store: Store, principal: Principal, limit: int) -> list[Process]:
    """The background processes of all sessions that `principal` may see, the latest first."""
    sees_all = int("owner" in principal.roles)
    return _parse_processes(await store.query("process_seen_by", (sees_all, principal.id, limit)))


def stop_process(id_: str, by: str) -> Change:
    """Ask whoever runs this process to end it. `by` is the id of the principal who wants that."""
    return Change("process_stop", (f"stopped by {by}", id_))


# Sub-agents


def find_subagent(store: Store, session: str) -> SubagentTask | None:
    """The latest task of the sub-agent whose conversation this is; None for any other."""
    if not is_subagent_session(session):
        return None
    rows = store.query_sync("subagent_of", (session,))
    return parse_task_row(rows[0]) if rows else None


async def asking_sessions(store: Store, session: str) -> list[tuple[str, str]]:
    """Each open question of this session and of sub-agents that work for it: who asks, and its
    id."""
    rows = await store.query("subagent_asking", (session,))
    return [(str(asking), str(ask_id)) for asking, ask_id in rows]


async def visible_subagents(
    store: Store, principal: Principal, session: str, *, ended: bool, limit: int
) -> list[SubagentTask]:
    """The tasks that were given in this session ('': in all that `principal` may see), the latest
    first; `ended`: also those that are over."""
    sees_all = int("owner" in principal.roles)
    args = (sees_all, principal.id, session, int(ended), limit)
    return [parse_task_row(row) for row in await store.query("subagent_seen_by", args)]


def stop_subagent(id_: str, why: str) -> Change:
    """Stop what this sub-agent works on; whoever gave it the task is told so."""
    return Change("subagent_stop", (why, id_))


def drop_grants_of_tool(tool: str) -> Change:
    """Ask about all calls of this tool again."""
    return Change("call_grant_drop_tool", (tool,))


def take_back_task(task: SubagentTask, why: str) -> Change:
    """Stop this task, and tell nobody of it."""
    return Change("subagent_take_back", (why, task.id, task.round))


def stop_all_below(session: str, why: str, at: float) -> Change:
    """Stop all that sub-agents do for this session, at any depth, and tell nobody of it."""
    return Change("subagent_stop_all", (why, session, at))


async def tasks_of_subagent(store: Store, id_: str) -> list[SubagentTask]:
    """All tasks of one sub-agent, the first one first; none where there is no such."""
    return [parse_task_row(row) for row in await store.query("subagent_find", (id_,))]


def subagents_of(store: Store, session: str, limit: int) -> list[SubagentTask]:
    """The tasks that this session has given to sub-agents, the latest first."""
    rows = store.query_sync("subagent_list", (session, limit))
    return [parse_task_row(row) for row in rows]


def teammates_of(store: Store, team: str) -> list[Teammate]:
    """The team of this conversation, in the order in which they came; also those that have shut
    down."""
    return [parse_teammate_row(row) for row in store.query_sync("teammate_list", (team,))]


def shut_down_teammate(teammate: Teammate) -> Change:
    """It takes no more work, until it is called back. Nothing of the commit is written where it has
    shut down before."""
    return Change("teammate_gone", (teammate.team, teammate.name), must=True)


def count_calls(store: Store, session: str, since: float) -> int:
    """How many tool calls have ended in this session since then (seconds since the epoch)."""
    ((found,),) = store.query_sync("session_calls", (session, since))
    return int(found)


def _parse_processes(rows: Iterable[Sequence[object]]) -> list[Process]:
    return [parse_process_row(row) for row in rows]


def _json_list(values: Sequence[str]) -> str:
    """A list as the statements with json_each() take it."""
    return _encode(values).decode()


# The inbox and the outbox


async def was_accepted(store: Store, address: Address, external_id: str) -> bool:
    """Whether this event of its platform was accepted before."""
    event = (address.channel, address.account, external_id)
    return bool(await store.query("inbox_find", event))


async def find_accepted(store: Store, address: Address, external_id: str) -> AcceptedMessage | None:
    """The message that this event of its platform was; None where it was not accepted, or was
    erased."""
    event = (address.channel, address.account, external_id)
    for session, body in await store.query("inbox_said", event):
        return AcceptedMessage(str(session), decode_inbox_body(body).inbound) if body else None
    return None


async def session_of_message(store: Store, channel: str, platform_id: str) -> str:
    """The session that sent the message with this id of its platform, or ''."""
    for (session,) in await store.query("outbox_said", (channel, platform_id)):
        return str(session)
    return ""


async def session_of_inbox_row(store: Store, inbox_id: int) -> str:
    """The session that this row of the inbox is for, or ''."""
    for (session,) in await store.query("inbox_session", (inbox_id,)):
        return str(session)
    return ""


def enqueue(outgoing: Outgoing, at: float) -> Change:
    """Put a message into the outbox. Fails when one with its key is there already."""
    row = (outgoing.key, "", _encode(outgoing), at, outgoing.address.channel)
    return Change("outbox_insert", row)


def mark_sent(key: str, platform_id: str) -> Change:
    """The message with this key was sent, and its platform gave it this id."""
    return Change("outbox_set_sent", (platform_id, key))


def hold_back_messages(why: str) -> Change:
    """Send none of the messages that are on their way; a person may have them sent again."""
    return Change("outbox_hold_back", (why,))


# Sessions that were given up


def add_dead_letter(session: str, n: int, at: float, reason: str) -> Change:
    """This session was given up after its event number `n`."""
    return Change("dead_insert", (session, n, at, reason))


async def dead_letters(store: Store) -> list[DeadLetter]:
    """The sessions that were given up, the latest first."""
    return [DeadLetter(*row) for row in await store.query("dead_list", ())]


def drop_dead_letter(id_: int) -> Change:
    """Forget that this session was given up."""
    return Change("dead_drop", (id_,))


# Standing grants


async def standing_grants(store: Store, principal: Principal) -> list[StandingGrant]:
    """The grants that `principal` gave, the oldest first. An owner sees all."""
    sees_all = int("owner" in principal.roles)
    found = []
    for id_, verdict, agent, tool, arguments, at, by in await store.query(
        "call_grants_of", (sees_all, principal.id)
    ):
        found.append(
            StandingGrant(
                id=id_,
                verdict=verdict,
                agent=agent,
                tool=tool,
                arguments=arguments,
                at=at,
                by=by,
            )
        )
    return found


async def grant_verdict(reader: StatementReader, id_: str) -> GrantVerdict | None:
    """What was said for good to the call with this hash."""
    for verdict, by, _ in await reader.query("call_grant_get", (id_,)):
        return GrantVerdict(verdict, by)
    return None


def set_standing_grant(grant: StandingGrant) -> Change:
    """Remember what was said to a call. What was said to it before is replaced."""
    return Change(
        "call_grant_set",
        (
            grant.id,
            grant.verdict,
            grant.agent,
            grant.tool,
            grant.arguments,
            grant.at,
            grant.by,
        ),
    )


def drop_standing_grant(id_: str) -> Change:
    """Take back this grant."""
    return Change("call_grant_drop", (id_,))


# Folders beside the workspace


async def path_grants_of(store: Store, agent: str) -> list[PathGrant]:
    """The folders that this agent may use beside its workspace, by path."""
    grants = []
    for path, write, at, by, outside in await store.query("path_grants", (agent,)):
        grants.append(PathGrant(path, bool(write), at, by, bool(outside)))
    return grants


def set_path_grant(agent: str, grant: PathGrant) -> tuple[Change, ...]:
    """Let this agent use a folder. What was granted there before is replaced."""
    row = (agent, grant.path, int(grant.write), grant.at, grant.by)
    granted = Change("path_grant_set", row)
    if not grant.outside:
        return (granted,)
    return granted, Change("path_grant_outside", (agent, grant.path))


def drop_path_grant(agent: str, path: str) -> Change:
    """Let this agent no longer use a folder."""
    return Change("path_grant_drop", (agent, path))
