"""Tools to save, search, list and forget memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from ..policy.information_flow import format_sources
from ..tools.base import Context, Done, Tool, call_label, make_result
from ..tools.define import tool
from ..types.errors import ToolError
from ..types.identity import EVERYBODY, responsible_person
from ..types.labels import LOCAL, join_labels
from .facts import (
    FACT_CHARS,
    Fact,
    Keeping,
    NewFact,
    Retention,
    Scope,
    Viewer,
    add_fact,
    add_fact_source,
    close_fact,
    fit_fact_text,
    mark_vouched,
)
from .recall import Memory

MOST_ASKED = 20
MOST_LISTED = 200
ScopeFilter = Literal["", "user", "agent", "global"]
NOT_HERE = (
    "others read this conversation: what is one person's own is not kept from it. Use "
    "scope='agent' for what everybody"
    " here may know, or do it in a conversation with that person alone."
)


class WantedFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a call wants to save, and whose it would be. `replaces` is the id of a fact, or 0."""

    text: str
    scope: Scope
    owner: str
    retention: Retention
    pinned: bool
    replaces: int


def memory_tools(
    memory: Memory, keeping: Callable[[], Keeping], redact: Callable[[str], str]
) -> tuple[Tool, ...]:
    """The tools that save, search, list and forget memories. `keeping` is asked at each call;
    `redact` takes secrets out of what is saved."""
    return (
        _make_save_tool(memory, keeping, redact),
        _make_search_tool(memory),
        _make_forget_tool(memory),
        _make_list_tool(memory),
    )


def make_viewer(context: Context) -> Viewer:
    """The person and the agent of this call. Facts of the person are included when they are alone
    with the agent."""
    person = responsible_person(context.principal)
    alone = "" if context.person == EVERYBODY else context.person
    return Viewer(person, context.agent, alone == person, context.audience)


def render_fact_line(fact: Fact) -> str:
    """A fact in one line, with its id."""
    day = datetime.fromtimestamp(fact.valid_from, UTC).date().isoformat()
    marks: list[str] = [fact.scope]
    if fact.pinned:
        marks.append("always told")
    if fact.held:
        marks.append("held")
    return f"#{fact.id} ({', '.join(marks)}, {day}) {fact.text}"


def _make_save_tool(
    memory: Memory, keeping: Callable[[], Keeping], redact: Callable[[str], str]
) -> Tool:
    @tool(effect="local_write", replay="commit")
    async def save_memory(
        content: str,
        context: Context,
        scope: Scope = "user",
        retention: Retention = "durable",
        pinned: bool = False,
        replaces: int = 0,
    ) -> Done:
        """Remember a fact for later conversations: one sentence that stands by itself, with names
        and dates.

        scope: user: this person's own; agent: for all who talk to you; global: for all agents
        pinned: told in every conversation
        replaces: number of the memory that this corrects
        """
        viewer = make_viewer(context)
        text = redact(fit_fact_text(content))
        if not text:
            raise ToolError("there is nothing to remember: content is empty")
        if len(content) > FACT_CHARS:
            raise ToolError(
                f"a memory is one fact of at most {FACT_CHARS} characters: save several, or "
                "write a file"
            )
        if scope == "user" and not viewer.private:
            raise ToolError(NOT_HERE)
        owner = {"user": viewer.person, "agent": viewer.agent, "global": ""}[scope]
        wanted = WantedFact(
            text=text,
            scope=scope,
            owner=owner,
            retention=retention,
            pinned=pinned,
            replaces=replaces,
        )
        return await _save(memory, viewer, wanted, context, keeping())

    return save_memory


async def _save(
    memory: Memory, viewer: Viewer, wanted: WantedFact, context: Context, keeping: Keeping
) -> Done:
    """Save a fact, unless it is known. Raises ToolError when it cannot be saved."""
    why = _why_held(context, wanted.scope)
    n = _event_number(context)
    known = await _find_known(memory, viewer, wanted, held=bool(why))
    if known:
        said = make_result(f"that is known already: #{known}", call_label(context))
        return replace(said, changes=(add_fact_source(known, context.session, n),))

    old = await _find_replaced(memory, viewer, wanted)
    if not old and memory.count_owned(wanted.scope, wanted.owner) >= keeping.most:
        raise ToolError(
            f"not saved: there are {keeping.most:,} memories of {wanted.scope} already. Forget "
            "some first."
        )
    fact = NewFact(
        text=wanted.text,
        scope=wanted.scope,
        owner=wanted.owner,
        label=mark_vouched(context.label) if context.approved else context.label,
        writer="tool",
        key=context.key,
        session=context.session,
        n=n,
        retention=wanted.retention,
        pinned=wanted.pinned or any(each.pinned for each in old),
        held=bool(why),
        replaces=tuple(each.id for each in old),
    )
    label = join_labels((call_label(context), *(each.label for each in old)))
    said = make_result(_describe_saved(old, why), label)
    return replace(said, changes=add_fact(fact, context.clock.now(), keeping))


async def _find_known(memory: Memory, viewer: Viewer, wanted: WantedFact, *, held: bool) -> int:
    """The id of the fact that says this in the same words, so that nothing that was looked up is
    saved again; 0 for none. Raises ToolError for a fact of a person that would be told to
    others."""
    for fact in await memory.find_exact(wanted.text, viewer.owners() or ()):
        if fact.held and not held:
            continue
        if fact.scope == "user" and wanted.scope != "user":
            raise ToolError(
                f"#{fact.id} says that, and is {viewer.person}'s own: no tool tells it to others"
            )
        same_owner = (fact.scope, fact.owner) == (wanted.scope, wanted.owner)
        if not same_owner or fact.pinned or not wanted.pinned:
            return fact.id
    return 0


def _describe_saved(old: Sequence[Fact], why: str) -> str:
    replaced = "; ".join(f"#{each.id}: {each.text}" for each in old)
    instead = f" in place of {replaced}" if old else ""
    if why:
        return (
            f"kept for review{instead}: {why}. It is not used until a person says yes: "
            "`deskhand memories --held` shows"
            " it, `deskhand memories promote` accepts it"
        )
    return f"ok, remembered{instead}"


def _why_held(context: Context, scope: Scope) -> str:
    """Why the fact is held until a person accepts it; '' when it is not."""
    if context.approved:
        return ""
    if context.label.integrity == "untrusted":
        return f"this conversation has read {format_sources(context.label)}"
    if scope != "user" and "owner" not in context.principal.roles:
        return "what all are told is for an owner to decide"
    return ""


async def _find_replaced(memory: Memory, viewer: Viewer, wanted: WantedFact) -> Sequence[Fact]:
    """The facts that the new one replaces: the one that is named, or else those that say the same
    in other words and those that contradict it. Raises ToolError for one that cannot be
    replaced."""
    number = wanted.replaces
    if not number:
        contradicted = await memory.find_contradicted(wanted.text, wanted.scope, wanted.owner)
        duplicate = await memory.find_duplicate(wanted.text, wanted.scope, wanted.owner)
        if duplicate is None or any(each.id == duplicate.id for each in contradicted):
            return contradicted
        return [duplicate, *contradicted]
    fact = await memory.get(number, viewer)
    if fact is None or fact.valid_to is not None:
        raise ToolError(f"there is no memory #{number} here: search_memories shows what there is")
    if (fact.scope, fact.owner) != (wanted.scope, wanted.owner):
        raise ToolError(f"#{number} has scope {fact.scope}: what replaces it must have the same")
    return [fact]


def _event_number(context: Context) -> int:
    """The number of the event that holds the call, read from the call's key."""
    number = context.key.rpartition("#")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _make_search_tool(memory: Memory) -> Tool:
    @tool
    async def search_memories(
        query: str, context: Context, scope: ScopeFilter = "", top_k: int = 5
    ) -> Done:
        """Look up what you have been told to remember, by meaning and words.

        scope: only user, agent or global; '' for all
        top_k: how many at most, up to 20
        """
        found = await memory.search(query, make_viewer(context), _clamp(top_k, MOST_ASKED), scope)
        return _render_facts([each.fact for each in found], "nothing is known about that", context)

    return search_memories


def _make_list_tool(memory: Memory) -> Tool:
    @tool
    async def list_memories(
        context: Context, scope: ScopeFilter = "", limit: int = 50, offset: int = 0
    ) -> Done:
        """List what you remember, the latest first.

        scope: only user, agent or global; '' for all
        """
        viewer = make_viewer(context)
        facts = await memory.list_facts(viewer, scope, _clamp(limit, MOST_LISTED), max(offset, 0))
        return _render_facts(
            facts, "nothing is remembered here" + (" from there on" if offset else " yet"), context
        )

    return list_memories


def _clamp(wanted: int, most: int) -> int:
    return min(max(wanted, 1), most)


def _render_facts(facts: list[Fact], nothing: str, context: Context) -> Done:
    if not facts:
        return make_result(nothing, call_label(context))
    return make_result(
        "\n".join(map(render_fact_line, facts)),
        join_labels((LOCAL, *(fact.label for fact in facts))),
    )


def _make_forget_tool(memory: Memory) -> Tool:
    @tool(effect="local_write", replay="commit")
    async def forget_memory(memory_id: int, context: Context) -> Done:
        """Forget a memory that is wrong or not wanted any more, by its number."""
        viewer = make_viewer(context)
        fact = await memory.get(memory_id, viewer)
        if fact is None or fact.valid_to is not None:
            raise ToolError(
                f"there is no memory #{memory_id} here: search_memories shows what there is"
            )
        why = "" if context.approved else _why_kept(context, fact)
        if why:
            raise ToolError(
                f"#{memory_id} stays: {why}. A person can do it: `deskhand memories forget "
                f"{memory_id}`"
            )
        change = close_fact(fact.id, context.clock.now(), "forgotten")
        said = f"ok, forgotten: {fact.text} (`deskhand memories undo {fact.id}` brings it back)"
        return replace(
            make_result(said, join_labels((call_label(context), fact.label))), changes=(change,)
        )

    return forget_memory


def _why_kept(context: Context, fact: Fact) -> str:
    if context.label.integrity == "untrusted":
        return f"this conversation has read {format_sources(context.label)}"
    if fact.scope != "user" and "owner" not in context.principal.roles:
        return "what all are told is for an owner to decide"
    return ""
