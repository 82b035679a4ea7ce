"""Approvals bind exactly what was shown: one byte more or another folder, and it is another question."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec

from ..types.identity import Principal
from ..types.messages import ToolCall

EXECUTE_WITHIN_S = 600.0
"""A given approval is void after this long."""

Choice = Literal["once", "always", "no", "never"]
_WORDS: tuple[tuple[Choice, str], ...] = (
    ("once", "yes y ok okay once allow"),
    ("always", "always"),
    ("no", "no n deny cancel"),
    ("never", "never"),
)
_MEANS = {word: choice for choice, words in _WORDS for word in words.split()}


class Setting(msgspec.Struct, frozen=True):
    """Everything beside the call that changes what it would do."""

    session: str
    agent: str
    cwd: str
    profile: str


def binding(call: ToolCall, setting: Setting, principal: Principal) -> str:
    """The hash of this one call: tool, argument bytes, folder, profile, session, person and the call's own id."""
    return _hash(call.id, setting.session, call.name, bytes(call.arguments), setting, principal)


def standing(call: ToolCall, setting: Setting, principal: Principal) -> str:
    """The hash under which `always` and `never` are remembered: the same call by the same person, in any session."""
    return _hash("", "", call.name, bytes(call.arguments), setting, principal)


def _hash(call_id: str, session: str, name: str, arguments: bytes, setting: Setting, principal: Principal) -> str:
    parts = (call_id, session, name, setting.agent, setting.cwd, setting.profile, principal.id, principal.on_behalf_of)
    return sha256(msgspec.json.encode(parts) + b"\0" + arguments).hexdigest()


def read_choice(text: str) -> Choice | None:
    """What a typed answer to an approval means: `once`, `always`, `no`, `never`, or None where it is neither."""
    return _MEANS.get(text.strip().strip(".!/").lower())


def may_approve(principal: Principal) -> bool:
    """Whether this principal's yes counts. A member cannot allow what the owner's rules ask about."""
    return principal.kind == "person" and bool({"owner", "approver"} & set(principal.roles))
