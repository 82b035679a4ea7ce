"""The chat commands `/quiet` and `/digest`: when somebody is told what nobody waits for."""

from __future__ import annotations

from ..store.base import Store
from ..types.commit import Change
from ..types.identity import Body, Command, Principal
from ..types.marked_texts import mark_text
from .notification_times import (
    NotificationTimes,
    format_hours,
    format_times,
    parse_hours,
    parse_times,
)
from .queries import notification_times_now, set_digest_times, set_quiet_hours

QUIET = "quiet"
DIGEST = "digest"
OFF = "off"
QUIET_USAGE = mark_text("Write /quiet 22:00-07:00, or /quiet off.")
DIGEST_USAGE = mark_text("Write /digest 08:00 18:00, or /digest off.")


class NotificationCommands:
    """What people want is written down when their command comes in, and told them when it is
    answered."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def carry_out(self, body: Body, principal: Principal) -> None:
        """Write down what this command says of this person, where it is one of the two; doing it
        again changes nothing."""
        if isinstance(body, Command) and principal.kind == "person":
            change = _read_change(body, principal.id)
            if change is not None:
                await self._store.change([change])

    def answer(self, principal: Principal, name: str, args: str) -> str:
        """What the person reads after `/quiet` or `/digest` with these arguments."""
        if principal.kind != "person":
            return mark_text("Only a person has quiet hours and digests.")
        wanted = notification_times_now(self._store, principal.id)
        understood = not args or _read_change(Command(name, args), principal.id) is not None
        usage = QUIET_USAGE if name == QUIET else DIGEST_USAGE
        told = _describe_quiet(wanted) if name == QUIET else _describe_digest(wanted)
        if not understood:
            unknown = mark_text("I do not understand {said}.").format(said=repr(args[:40]))
            return f"{unknown} {usage}"
        return told if args else f"{told} {usage}"


def _read_change(command: Command, person: str) -> Change | None:
    """The change that the command asks for; None for no change."""
    args = command.args.strip().lower()
    if command.name == QUIET and args:
        hours = parse_hours(args)
        return set_quiet_hours(person, hours) if hours is not None or args == OFF else None
    if command.name == DIGEST and args:
        times = parse_times(args)
        return set_digest_times(person, times) if times or args == OFF else None
    return None


def _describe_quiet(wanted: NotificationTimes) -> str:
    if wanted.quiet is None:
        return mark_text("You have no quiet hours: what jobs have to say comes at once.")
    hours = mark_text("Quiet hours: {hours}.").format(hours=format_hours(wanted.quiet))
    waits = mark_text(
        "What jobs have to say waits until they end; answers to you, reminders and alerts do not."
    )
    return f"{hours} {waits}"


def _describe_digest(wanted: NotificationTimes) -> str:
    if not wanted.digest:
        return mark_text("You have no digest: what jobs have to say comes at once.")
    times = mark_text("Digest at {times}.").format(times=format_times(wanted.digest))
    waits = mark_text(
        "What jobs have to say comes then, all at once; answers to you, reminders and alerts do "
        "not wait."
    )
    return f"{times} {waits}"
