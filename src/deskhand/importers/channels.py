"""The bots of other systems as channels of ours: who may write to them, and who answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..channels.guides import GUIDES, Need, find_variable
from .chat_addresses import CHAT_IDS, KINDS, Bot, Bots, explain_no_channel, find_bot_id
from .notes import ImportNotes
from .platform_settings import ChannelDraft, convert_settings, list_allowed, says_something
from .settings import ImportedKeys, as_map, snake_fields

HANDLED = ("agents.list.*.channels.*", "channels.*")
"""The keys that are looked after here."""
_PAIR_THEM = "ask them to write to the bot, then approve them: deskhand pair"
_LIST_THEM = "put their ids into allow_from of the channel"
_NUMBERS = (re.compile(r"[0-9]{1,30}"), "numbers")
_PEOPLE: Mapping[str, tuple[re.Pattern[str], str]] = {
    "telegram": _NUMBERS,
    "discord": _NUMBERS,
    "twitch": _NUMBERS,
    "slack": (re.compile(r"[UWB][A-Z0-9]{1,30}"), "ids such as U0123ABCD"),
    "matrix": (re.compile(r"@[^:\s]{1,255}:\S{1,255}"), "ids such as @ann:example.org"),
    "mail": (CHAT_IDS["mail"], "mail addresses"),
    "mqtt": (CHAT_IDS["mqtt"], "names of devices"),
}
"""What names a person for good, by the kind of channel, and how that is called."""
_WITHOUT_CODES = frozenset({"mqtt", "twitch"})
"""Kinds on which strangers get no code, so that nobody can be approved."""


class _Account(msgspec.Struct, frozen=True):
    """An account of another system: whose it is, and what is set for it."""

    agent: str
    platform: str
    settings: Mapping[str, Any]

    @property
    def where(self) -> str:
        return f"{self.platform} of {self.agent}"


def convert_channels(
    notes: ImportNotes, keys: ImportedKeys, agents: Sequence[str]
) -> tuple[dict[str, Any], Bots]:
    """Channels as we have them, and the bots of the agents. Their tokens are added to the secrets,
    the bindings of these channels replace those of `keys`."""
    channels: dict[str, Any] = {}
    bots = Bots()
    for account in _list_accounts(keys, agents):
        draft = _convert_account(notes, account)
        if draft is None:
            continue
        kind = KINDS[account.platform]
        if bots.find(account.agent, kind) is not None:
            # There is one binding for each of them, and its chats go on with one bot.
            notes.leave_out(
                f"the bot in channels.{account.platform} at the top",
                f"{account.agent} has a bot of its own, and one agent has one bot of a kind here",
                f"deskhand channels add {kind}",
            )
            continue
        name = kind if kind not in channels else f"{kind}-{account.agent}"
        channels[name] = _add_channel(notes, keys, account, draft, name)
        token = draft.secrets.get("token_env", "")
        bots.add(
            account.agent, Bot(kind, name, find_bot_id(kind, token, draft.config.get("user", "")))
        )
    if bots:
        keys.config["bindings"] = [*_explicit_bindings(notes, keys, bots), *bots.bindings()]
    return channels, bots


def _list_accounts(keys: ImportedKeys, agents: Sequence[str]) -> list[_Account]:
    """Every account; one that stands at the top is of the first agent. Those that are switched off
    come last, so that they take no name from the others."""
    sections = [
        (agent, as_map(settings).get("channels")) for agent, settings in keys.agents.items()
    ]
    sections.append((agents[0], keys.raw.get("channels")))
    found: list[_Account] = []
    for agent, channels in sections:
        for platform, each in as_map(channels).items():
            if isinstance(each, Mapping):
                found.append(_Account(agent, platform, snake_fields(each)))
    return sorted(found, key=lambda account: not account.settings.get("enabled"))


def _convert_account(notes: ImportNotes, account: _Account) -> ChannelDraft | None:
    """The account as a channel, None where it becomes none; what it says that is not taken is
    noted."""
    where = f"channel {account.where}"
    said = says_something(account.settings)
    kind = KINDS.get(account.platform)
    if kind is None:
        if said:
            why = explain_no_channel(account.platform)
            notes.leave_out(f"{where} ({', '.join(said)})", why, "its keys stay there")
        return None
    draft = convert_settings(kind, account.settings)
    if not account.settings.get("enabled") and not draft.secrets:
        if said:
            todo = f"deskhand channels add {kind}"
            notes.leave_out(f"{where} ({', '.join(said)})", "it is switched off", todo)
        return None
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, why, todo in draft.unused:
        reasons.setdefault((why, todo), []).append(name)
    for (why, todo), names in reasons.items():
        notes.leave_out(f"{', '.join(names)} of {where}", why, todo)
    return draft


def _add_channel(
    notes: ImportNotes, keys: ImportedKeys, account: _Account, draft: ChannelDraft, name: str
) -> dict[str, Any]:
    """The configuration of a channel under this name. Its secrets are added to `keys`."""
    kind = KINDS[account.platform]
    config: dict[str, Any] = {} if name == kind else {"type": kind}
    for need in GUIDES[kind].needs:
        if need.variable:
            variable = find_variable(need, kind, name)
            if name != kind:
                config[need.setting] = variable
            if value := draft.secrets.get(need.setting):
                keys.secrets[variable] = value
    listed = _allowed_ids(notes, kind, account)
    config |= draft.config | ({"allow_from": listed} if listed else {})
    missing = draft.find_missing(kind)
    for need in missing:
        _note_missing(notes, account, need, name)
    if missing or not account.settings.get("enabled"):
        config["enabled"] = False
    if kind == "twitch" and draft.secrets:
        notes.change(
            f"the token of {account.where}",
            "Deskhand reads chats with the scopes user:read:chat and user:write:chat; if Twitch "
            "refuses the token, make a new one: docs/twitch.md",
        )
    return config


def _note_missing(notes: ImportNotes, account: _Account, need: Need, name: str) -> None:
    kind = KINDS[account.platform]
    if need.variable:
        do = f"put {find_variable(need, kind, name)} into Deskhand's .env"
    else:
        do = f"deskhand config set channels.{name}.{need.setting} VALUE"
    notes.leave_out(
        f"{need.label} of {account.where}",
        f"it is not in this home, and without it the channel is switched off: {need.where}",
        f"{do}, then deskhand config set channels.{name}.enabled true",
    )


def _allowed_ids(notes: ImportNotes, kind: str, account: _Account) -> list[str]:
    """The ids of who may write. A name is nobody's for good, so it admits nobody."""
    listed = list_allowed(account.settings)
    pattern, ids_are = _PEOPLE[kind]
    todo = _LIST_THEM if kind in _WITHOUT_CODES else _PAIR_THEM
    ids: list[str] = []
    for each in listed:
        id_, bar, _ = each.partition("|")
        if pattern.fullmatch(id_):
            ids.append(id_)
            if bar:
                notes.change(
                    f"{each} of {account.where}",
                    f"they may write as {id_}: names can be taken over by others, numbers cannot",
                )
        elif each == "*":
            why = "people must be approved first"
            notes.leave_out(f"that anybody may write to {account.where}", why, todo)
        else:
            notes.leave_out(
                f"that {each} may write to {account.where}",
                f"names can be taken over by others, so only {ids_are} are accepted",
                todo,
            )
    if not listed:
        why = "people must be approved first"
        notes.leave_out(f"that anybody may write to {account.where}", why, todo)
    return list(dict.fromkeys(ids))


def _explicit_bindings(
    notes: ImportNotes, keys: ImportedKeys, bots: Bots
) -> Iterator[dict[str, Any]]:
    """The bindings that are written down, in their order, for each bot that they are about. They
    count before what an agent's own bot says, as they do there."""
    for each in keys.config.get("bindings", ()):
        binding = dict(each)
        platform = str(binding.get("channel") or "")
        account = str(binding.pop("account", ""))
        kind = KINDS.get(platform, "")
        chat = str(binding.get("chat") or "")
        about = [bot for agent, bot in bots.all_of(kind).items() if account in ("", agent)]
        if not about:
            yield binding  # of a channel that does not come in: said where it is planned
        elif chat and not CHAT_IDS[kind].fullmatch(chat):
            what = f"that {binding.get('agent')} answers in {chat} on {platform}"
            notes.leave_out(
                what,
                "a binding is for a whole chat, by the platform's own id",
                "bind the chat in `bindings`",
            )
        else:
            yield from (binding | {"channel": bot.channel} for bot in about)
