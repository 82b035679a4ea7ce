"""The tool `manage_users`: an owner lists and changes users in a conversation."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..policy.checks import AgentPolicy
from ..policy.rules import Case, Decision
from ..tools.base import Context, Done, Outcome, Spec, Tool, call_label, make_result
from ..tools.define import decode_arguments, tool
from ..types.effects import Effect
from ..types.errors import ConfigError, Refused, ToolError
from ..types.identity import Address, Principal
from ..types.marked_texts import mark_text
from ..types.messages import Text
from ..types.people import Identity, People, User
from .pairing import format_identity

NAME = "manage_users"
REFUSED = "[error: this tool requires the 'admin' role]"
Action = Literal["list", "add", "remove", "link", "unlink", "add_role", "remove_role"]


class UserToolArguments(msgspec.Struct, frozen=True):
    """The argument that decides whether a call only reads."""

    action: str = ""


class ManageUsers:
    """The tool of every agent. Only an owner who takes part in the conversation may use it, and no
    job."""

    effects: tuple[Effect, ...] = ("none", "host")

    def __init__(self, people: People | None) -> None:
        self._inner = _make_tool(people)

    @property
    def spec(self) -> Spec:
        return self._inner.spec

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        return "none" if _action(bytes(arguments)) == "list" else "host"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        if not _is_acting_owner(context.principal):
            return Done((Text(REFUSED, call_label(context)),), "error")
        return await self._inner.run(arguments, context)


def _is_acting_owner(principal: Principal) -> bool:
    return principal.kind == "person" and not principal.on_behalf_of and "owner" in principal.roles


def _action(arguments: bytes) -> str:
    try:
        return decode_arguments(msgspec.Raw(arguments), UserToolArguments, NAME).action
    except ToolError:
        return ""


def is_refused_by_tool(case: Case) -> bool:
    """Whether the tool itself refuses this call, so that no owner is bothered with a question."""
    return case.tool == NAME and not _is_acting_owner(case.principal)


def left_to_tool(case: Case, policy: AgentPolicy) -> Decision | None:
    """Allow a call that the tool refuses by itself."""
    if not is_refused_by_tool(case):
        return None
    return Decision("allow", "the tool itself refuses everybody but owners")


def user_changes(case: Case, policy: AgentPolicy) -> Decision | None:
    """Ask before an agent changes who may use Deskhand."""
    if case.tool != NAME or _action(case.arguments) == "list":
        return None
    return Decision("ask", mark_text("a person must approve changes of users"))


def _make_tool(people: People | None) -> Tool:
    @tool(effect="host", replay="never")
    async def manage_users(
        action: Action,
        context: Context,
        username: str = "",
        role: str = "",
        transport: str = "",
        external_id: str = "",
    ) -> Done:
        """List and change who may talk to you: users, their roles and their ids on chat platforms.
        For owners alone.

        username: small letters, digits, dot and hyphen
        role: owner, approver, member, viewer, or one of the configuration
        transport: the channel on which they are known, such as telegram
        external_id: their id there, a number or code, never a name
        """
        if people is None:
            raise ToolError("users are managed where Deskhand runs; see `deskhand users`")
        acting = people.acting_as(context.principal)
        identity = Identity(transport, external_id)
        try:
            match action:
                case "list":
                    return make_result(
                        "\n".join(map(_render_user, await acting.users())), call_label(context)
                    )
                case "add":
                    user = await acting.add_user(
                        username, role or "member", identity if transport else None
                    )
                case "remove":
                    await acting.remove_user(username)
                    return make_result(f"ok, removed {username}", call_label(context))
                case "link":
                    user = await acting.link(username, identity)
                case "unlink":
                    await acting.unlink(identity)
                    return make_result(
                        f"ok, unlinked {format_identity(identity)}", call_label(context)
                    )
                case "add_role":
                    user = await acting.add_role(username, role)
                case "remove_role":
                    user = await acting.remove_role(username, role)
        except (Refused, ConfigError) as error:
            raise ToolError(str(error)) from error
        return make_result(f"ok, {_render_user(user)}", call_label(context))

    return manage_users


def _render_user(user: User) -> str:
    known_as = ", ".join(map(format_identity, user.identities)) or "nobody"
    return f"{user.name}: {', '.join(user.roles) or 'no role'}; known as {known_as}"
