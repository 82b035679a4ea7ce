"""The tools with which an agent remembers, looks up and forgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ..policy.gate import format_sources
from ..tools.base import Context, Done, Tool, done, own
from ..tools.define import tool
from ..types.errors import ToolError
from ..types.identity import responsible_person
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


class Remembered(msgspec.Struct, frozen=True):
    """What the tools stand on: `keeping` says how much is kept now, `clean` hides secrets, `alone`
    gives the person who is alone with the agent in the conversation of a call, '' where there are
    more."""

    memory: Memory
    keeping: Callable[[], Keeping]
    redact: Callable[[str], str]
    sole_person: Callable[[Context], str]


def memory_tools(ground: Remembered) -> tuple[Tool, ...]:
    """The four of them."""
    return (
        _make_save_tool(ground),
        _make_search_tool(ground),
        _make_forget_tool(ground),
        _make_list_tool(ground),
    )


def make_viewer(ground: Remembered, context: Context) -> Viewer:
    """Who looks through the tools of this conversation."""
    person = responsible_person(context.principal)
    return Viewer(person, context.agent, ground.sole_person(context) == person, context.audience)


def render_fact_line(fact: Fact) -> str:
    """A fact in a line, with the id by which it can be named."""
    day = datetime.fromtimestamp(fact.valid_from, UTC).date().isoformat()
    marks = [
        fact.scope,
        *(["always told"] if fact.pinned else []),
        *(["held"] if fact.held else []),
    ]
    return f"#{fact.id} ({', '.join(marks)}, {day}) {fact.text}"


def _make_save_tool(ground: Remembered) -> Tool:
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
        and dates instead of "he" or "tomorrow".

        scope: whose it is: user = this person's own, agent = for everybody who talks to you, global
        = for all agents retention: candidate is forgotten after some days, unless it turns out to
        be useful pinned: always told, in every conversation; for what must never be missed
        replaces: the number of a memory that this corrects
        """
        viewer = make_viewer(ground, context)
        text = ground.redact(fit_fact_text(content))
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
        why = _why_held(context, scope)
        if known := await _find_known(
            ground.memory, viewer, (text, scope, owner), bool(why), pinned
        ):
            here = add_fact_source(known, context.session, _event_number(context))
            return msgspec.structs.replace(
                done(f"that is known already: #{known}", own(context)), changes=(here,)
            )
        old = await _find_replaced(ground.memory, viewer, (text, scope, owner), replaces)
        keeping = ground.keeping()
        if not old and ground.memory.count_owned(scope, owner) >= keeping.most:
            raise ToolError(
                f"not saved: there are {keeping.most:,} memories of {scope} already. Forget "
                "some first."
            )
        fact = NewFact(
            text,
            scope,
            owner,
            mark_vouched(context.label) if context.approved else context.label,
            "tool",
            context.key,
            context.session,
            _event_number(context),
            retention=retention,
            pinned=pinned or any(each.pinned for each in old),
            held=bool(why),
            replaces=tuple(each.id for each in old),
        )
        said = done(
            _describe_saved(old, why), join_labels((own(context), *(each.label for each in old)))
        )
        return msgspec.structs.replace(said, changes=add_fact(fact, context.clock.now(), keeping))

    return save_memory


async def _find_known(
    memory: Memory, viewer: Viewer, what: tuple[str, Scope, str], held: bool, pinned: bool
) -> int:
    """The number of the fact that says this in these words already, so that nothing that was looked
    up is saved once more; 0 for none."""
    text, scope, owner = what
    for fact in await memory.find_exact(text, viewer.owners() or ()):
        if fact.held and not held:
            continue
        if fact.scope == "user" and scope != "user":
            raise ToolError(
                f"#{fact.id} says that, and is {viewer.person}'s own: no tool tells it to others"
            )
        same = (fact.scope, fact.owner) == (scope, owner)
        if not same or fact.pinned or not pinned:
            return fact.id
    return 0


def _describe_saved(old: Sequence[Fact], why: str) -> str:
    instead = f" in place of {'; '.join(f'#{each.id}: {each.text}' for each in old)}" if old else ""
    if why:
        return (
            f"kept for review{instead}: {why}. It is not used until a person says yes: "
            "`deskhand memories --held` shows"
            " it, `deskhand memories promote` accepts it"
        )
    return f"ok, remembered{instead}"


def _why_held(context: Context, scope: Scope) -> str:
    """Why this waits for a person; '' where it does not."""
    if context.approved:
        return ""
    if context.label.integrity == "untrusted":
        return f"this conversation has read {format_sources(context.label)}"
    if scope != "user" and "owner" not in context.principal.roles:
        return "what all are told is for an owner to decide"
    return ""


async def _find_replaced(
    memory: Memory, viewer: Viewer, what: tuple[str, Scope, str], number: int
) -> Sequence[Fact]:
    """The facts in whose place the new one comes: the one that is named; else what says the same in
    other words, and what cannot hold any more."""
    text, scope, owner = what
    if not number:
        twin = await memory.find_duplicate(text, scope, owner)
        contradicted = await memory.find_contradicted(text, scope, owner)
        return [
            *(
                [twin]
                if twin is not None and twin.id not in {each.id for each in contradicted}
                else []
            ),
            *contradicted,
        ]
    fact = await memory.get(number, viewer)
    if fact is None or fact.valid_to is not None:
        raise ToolError(f"there is no memory #{number} here: search_memories shows what there is")
    if (fact.scope, fact.owner) != (scope, owner):
        raise ToolError(f"#{number} has scope {fact.scope}: what replaces it must have the same")
    return [fact]


def _event_number(context: Context) -> int:
    """The number of the event in which the call stands: its key begins with it."""
    number = context.key.rpartition("#")[2].partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _make_search_tool(ground: Remembered) -> Tool:
    @tool
    async def search_memories(
        query: str, context: Context, scope: ScopeFilter = "", top_k: int = 5
    ) -> Done:
        """Look up what you have been told to remember, by meaning and words.

        scope: only user, agent or global; '' for all
        top_k: how many at most, up to 20
        """
        found = await ground.memory.search(
            query, make_viewer(ground, context), _clamp(top_k, MOST_ASKED), scope
        )
        return _render_facts([each.fact for each in found], "nothing is known about that", context)

    return search_memories


def _make_list_tool(ground: Remembered) -> Tool:
    @tool
    async def list_memories(
        context: Context, scope: ScopeFilter = "", limit: int = 50, offset: int = 0
    ) -> Done:
        """List what you remember, the latest first.

        scope: only user, agent or global; '' for all
        """
        viewer = make_viewer(ground, context)
        facts = await ground.memory.list_facts(
            viewer, scope, _clamp(limit, MOST_LISTED), max(offset, 0)
        )
        return _render_facts(
            facts, "nothing is remembered here" + (" from there on" if offset else " yet"), context
        )

    return list_memories


def _clamp(wanted: int, most: int) -> int:
    return min(max(wanted, 1), most)


def _render_facts(facts: list[Fact], nothing: str, context: Context) -> Done:
    if not facts:
        return done(nothing, own(context))
    return done(
        "\n".join(map(render_fact_line, facts)),
        join_labels((LOCAL, *(fact.label for fact in facts))),
    )


def _make_forget_tool(ground: Remembered) -> Tool:
    @tool(effect="local_write", replay="commit")
    async def forget_memory(memory_id: int, context: Context) -> Done:
        """Forget a memory that is wrong or not wanted any more, by its number."""
        viewer = make_viewer(ground, context)
        fact = await ground.memory.get(memory_id, viewer)
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
        return msgspec.structs.replace(
            done(said, join_labels((own(context), fact.label))), changes=(change,)
        )

    return forget_memory


def _why_kept(context: Context, fact: Fact) -> str:
    if context.label.integrity == "untrusted":
        return f"this conversation has read {format_sources(context.label)}"
    if fact.scope != "user" and "owner" not in context.principal.roles:
        return "what all are told is for an owner to decide"
    return ""
