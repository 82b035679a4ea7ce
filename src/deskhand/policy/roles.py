"""What a role is worth: what it may do, and with whom it may talk. Pure.

The built-in roles are those of `ROLE_SCOPES`. A role of the configuration is a `member` who may
talk to the agents that it names; it may take the name of a built-in one that decides nothing about
others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from ..types.errors import ConfigError
from ..types.identity import Body, Principal, Result
from ..types.people import GUEST, ROLE_SCOPES, SCOPES, Scope
from .permission_modes import PermissionMode


class RoleConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A role of one's own: a member who may talk to these agents, `*` for all. With a
    `permission_mode` agents are at most so free with them."""

    agents: tuple[str, ...] = ()
    permission_mode: PermissionMode | None = None


Roles = Mapping[str, Collection[str]]
"""The roles of the configuration: name -> agents, `*` for all of them."""

FIXED_ROLES = frozenset({"owner", "admin", "approver"})
"""What these mean cannot be changed: much is decided by their names."""
ROLE_ALIASES = {"admin": "owner"}
_NAME = re.compile(r"[a-z0-9][a-z0-9.\-]{0,63}")
RESERVED_NAMES = frozenset({"system", "anonymous", "terminal", "web", "api", "door"})
"""What acts by itself, and surfaces: a person of that name would be taken for one."""


def validate_user_name(name: str) -> str:
    """The name, if a user may have it. Raises ConfigError."""
    if not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise ConfigError(
            f"invalid user name {name!r}: use a-z, 0-9, dot and hyphen, at most 64 characters, "
            f"and a letter or digit first; reserved names: {', '.join(sorted(RESERVED_NAMES))}"
        )
    return name


def resolve_role(name: str, custom: Roles) -> str:
    """The role under our name. Raises ConfigError for one that there is not."""
    role = ROLE_ALIASES.get(name, name)
    known = sorted({*ROLE_SCOPES, *ROLE_ALIASES, *custom} - {GUEST})
    if role not in ROLE_SCOPES and role not in custom:
        raise ConfigError(f"there is no role {name!r}; there are: {', '.join(known)}")
    if role == GUEST:
        raise ConfigError(
            f"{GUEST!r} is the role of people listed in the allow_from of a channel; use "
            "`member` instead"
        )
    return role


def check_roles(custom: Collection[str]) -> None:
    """Raises ConfigError for a role of the configuration that is built in."""
    for name in custom:
        if name in FIXED_ROLES:
            raise ConfigError(
                f"'roles.{name}' is built in, with all agents: give this role another name"
            )


def allowed_scopes(roles: Collection[str], custom: Roles) -> tuple[Scope, ...]:
    """What somebody with these roles may do. A role that is not there any more gives nothing."""
    given = {scope for role in roles for scope in _role_scopes(role, custom)}
    return tuple(scope for scope in SCOPES if scope in given)


def _role_scopes(role: str, custom: Roles) -> tuple[Scope, ...]:
    if role in custom and role not in FIXED_ROLES:
        return ROLE_SCOPES["member"]
    return ROLE_SCOPES.get(role, ())


def allowed_agents(roles: Collection[str], custom: Roles) -> tuple[str, ...] | None:
    """The agents that somebody with these roles may talk to; None: all."""
    named: set[str] = set()
    for role in roles:
        if role in custom and role not in FIXED_ROLES:
            named |= set(custom[role])
        elif role in ROLE_SCOPES:
            return None
    return None if "*" in named else tuple(sorted(named))


def narrow_roles(
    roles: Collection[str], custom: Roles, scopes: Collection[Scope]
) -> tuple[str, ...]:
    """The roles of somebody who uses a credential that may do less than they: a yes that it may not
    give is none."""
    left = []
    for role in roles:
        if set(_role_scopes(role, custom)) <= set(scopes):
            left.append(role)
        else:
            left += [
                less
                for less in ("approver", "member", "viewer")
                if _is_no_wider(less, role, custom, scopes)
            ][:1]
    return tuple(dict.fromkeys(left))


def _is_no_wider(less: str, role: str, custom: Roles, scopes: Collection[Scope]) -> bool:
    """Whether this built-in role gives nothing that the other or the credential does not."""
    given = set(ROLE_SCOPES[less])
    return less not in custom and given <= set(scopes) and given <= set(_role_scopes(role, custom))


def may_talk(principal: Principal, agent: str, custom: Roles) -> bool:
    """Whether this principal may hand something to this agent. What acts by itself does so for
    somebody who may."""
    if principal.kind != "person":
        return True
    agents = allowed_agents(principal.roles, custom)
    return "chat" in allowed_scopes(principal.roles, custom) and (agents is None or agent in agents)


def may_send(principal: Principal, body: Body) -> bool:
    """Whether this kind of thing may come from them at all. The result of a call never comes from a
    person."""
    return not isinstance(body, Result) or principal.kind != "person"
