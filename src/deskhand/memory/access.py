"""Which facts a person may see and change outside a conversation: in `/memory` and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from ..types.identity import Principal, list_reader_names
from .facts import Fact, Viewer


def make_person_viewer(who: Principal, agents: Sequence[str], *, private: bool = True) -> Viewer:
    """A person who looks at their own facts, if `private`, and at those that everybody is told by
    these agents. Use it together with `may_list`."""
    names = list_reader_names(who)
    return Viewer(who.id, "", private, names, held=True, agents=tuple(agents))


def may_list(fact: Fact, who: Principal) -> bool:
    """Whether to show this person a fact that their viewer sees: only owners see shared facts that
    are held or closed."""
    if fact.scope == "user" or "owner" in who.roles:
        return True
    return not fact.held and fact.valid_to is None


def may_change(fact: Fact, who: Principal) -> bool:
    """Whether this person decides about a fact that they see: owners decide about what others are
    told, too."""
    return fact.scope == "user" or "owner" in who.roles
