"""The bots of OpenClaw, in the words that all systems share here.

The keys of `channels.*` are documented in openclaw/openclaw: `src/config/types.discord.ts`,
`types.slack.ts` and `types.telegram.ts`, and the pages `docs/channels/matrix.md` and `twitch.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from .openclaw_secrets import resolve_secret
from .safe_files import Tree, Unread
from .settings import as_list, as_map, section_at, snake_fields

PLATFORMS = ("telegram", "discord", "slack", "matrix", "twitch")
"""Platforms that both have."""
_SECRETS: Mapping[str, Mapping[str, str]] = {
    "telegram": {"bot_token": "TELEGRAM_BOT_TOKEN"},
    "discord": {"token": "DISCORD_BOT_TOKEN"},
    "slack": {"bot_token": "SLACK_BOT_TOKEN", "app_token": "SLACK_APP_TOKEN"},
    "matrix": {"access_token": "MATRIX_ACCESS_TOKEN", "password": "MATRIX_PASSWORD"},
    "twitch": {"access_token": "OPENCLAW_TWITCH_ACCESS_TOKEN"},
}
"""The secrets of an account, and the variables in which those of the account `default` may be."""
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "matrix": {"homeserver": "MATRIX_HOMESERVER", "user_id": "MATRIX_USER_ID"},
}
"""Variables for what is no secret, in the same way."""
PLAIN_VARIABLES = frozenset(name for names in _VARIABLES.values() for name in names.values())
_TWITCH_WORDS = {"username": "nick", "channel": "channel_name"}
"""Keys of Twitch, and the words that all systems share for them."""
_GROUPS = ("groups", "guilds", "channels", "rooms")
"""What is set for single groups; `*` stands for all."""
_PERSON = re.compile(r"(?:telegram|tg|discord|slack|matrix|twitch|user):", re.IGNORECASE)
_WITHOUT_MEANING = frozenset({"name", "default_account"})


class OpenClawBots(msgspec.Struct, frozen=True, kw_only=True):
    """The bots of a home. `others` are the platforms that we have no channel for; `by_agent` are
    the channels of each agent, as operator-use has them; `accounts` are the names of the bots in
    OpenClaw, by agent and platform."""

    others: dict[str, Any]
    by_agent: dict[str, dict[str, Any]]
    accounts: dict[tuple[str, str], str]


def convert_platforms(
    tree: Tree,
    raw: Mapping[str, Any],
    agents: Mapping[str, Any],
    variables: Mapping[str, str],
    approved: Sequence[tuple[Any, ...]],
) -> OpenClawBots:
    """Its bots, with all who may write to them. `approved` are rows of (platform, person, account)
    from its database."""
    channels = as_map(raw.get("channels"))
    for name in (*PLATFORMS, "whatsapp", "signal"):  # as Clawdbot had them
        if isinstance(raw.get(name), Mapping):
            channels.setdefault(name, raw[name])
    if defaults := snake_fields(channels.pop("defaults", None)):
        what = f"channels.defaults: {', '.join(sorted(defaults))}"
        tree.notes.leave_out(what, "Deskhand sets this for each channel", "see docs/channels.md")
    accounts: dict[tuple[str, str], str] = {}
    own: dict[str, dict[str, Any]] = {name: {} for name in agents}
    for platform in PLATFORMS:
        given = snake_fields(channels.pop(platform, None))
        for account, settings in _list_accounts(tree, platform, given, variables):
            agent = _find_agent(raw, platform, account, agents)
            if platform in own[agent]:
                tree.notes.leave_out(
                    f"the bot {account} of {platform}",
                    f"{agent} has a bot already, and one agent has one bot of a kind here",
                    f"deskhand channels add {platform}",
                )
                continue
            accounts[agent, platform] = account
            people = [
                *as_list(settings.get("allow_from")),
                *_list_paired(tree, platform, account, approved),
            ]
            own[agent][platform] = _convert_account(platform, settings | {"allow_from": people})
    _note_bindings(tree, raw)
    return OpenClawBots(others=channels, by_agent=own, accounts=accounts)


def _list_accounts(
    tree: Tree, platform: str, given: dict[str, Any], variables: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, settings) of each account that has a secret. What stands beside the accounts holds for
    all of them, but for secrets."""
    secrets = _SECRETS[platform]
    accounts = given.pop("accounts", None)
    listed = {"default": given}
    shared = {key: value for key, value in given.items() if key not in secrets}
    for name, each in as_map(accounts).items():
        listed[name] = shared | snake_fields(each)
    for account, settings in listed.items():
        found = dict(settings)
        for key, variable in secrets.items():
            secret = settings.get(key)
            if secret:
                what = f"the {key} of {platform}, account {account}"
                found[key] = resolve_secret(tree, what, secret, variables)
            elif account == "default" and variables.get(variable):
                found[key] = variables[variable]
        if not any(found.get(key) for key in secrets):
            if settings and (account != "default" or accounts is None):
                tree.notes.leave_out(
                    f"channel {platform}, account {account} ({', '.join(sorted(settings))})",
                    "no token of its bot is in this home",
                    f"deskhand channels add {platform}",
                )
            continue
        if account == "default":
            for key, variable in _VARIABLES.get(platform, {}).items():
                found[key] = found.get(key) or variables.get(variable, "")
        yield account, found


def _note_bindings(tree: Tree, raw: Mapping[str, Any]) -> None:
    """Note the bindings that are for less than a whole account of a channel of ours."""
    for number, each in enumerate(as_list(raw.get("bindings")), 1):
        match = section_at(as_map(each), "match")
        channel = match.get("channel")
        if channel not in PLATFORMS or match.keys() - {"channel", "account_id"}:
            tree.notes.leave_out(
                f"binding {number}, for {channel or 'every channel'}",
                "only bindings of a whole bot are imported",
                "set `bindings` yourself: see docs/configuration.md",
            )


def _find_agent(
    raw: Mapping[str, Any], platform: str, account: str, agents: Mapping[str, Any]
) -> str:
    """Who answers on this account of a platform: the first agent, where nothing says it."""
    for each in as_list(raw.get("bindings")):
        one = snake_fields(each)
        match = snake_fields(one.get("match"))
        agent = str(one.get("agent_id") or "")
        if (
            match.get("channel") == platform
            and match.get("account_id", "default") in (account, "*")
            and not match.keys() - {"channel", "account_id"}
            and agent in agents
        ):
            return agent
    return next(iter(agents))


def _list_paired(
    tree: Tree, platform: str, account: str, approved: Sequence[tuple[Any, ...]]
) -> Iterator[str]:
    """Whom its owner has approved on this account."""
    files = [f"credentials/{platform}-{account}-allowFrom.json"]
    if account == "default":
        files.append(f"credentials/{platform}-allowFrom.json")
    for inner in files:
        if not tree.has_file(inner):
            continue
        try:
            listed = snake_fields(tree.read_json(inner)).get("allow_from")
        except Unread as error:
            tree.note_unread(inner, error)
            continue
        yield from map(str, as_list(listed))
    for channel, person, of_account in approved:
        if channel == platform and (of_account or "default") == account:
            yield str(person)


def _convert_account(platform: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """An account in the words that all systems share; its secrets are there already."""
    words = _TWITCH_WORDS if platform == "twitch" else {}
    found = {
        words.get(name, name): value
        for name, value in settings.items()
        if name not in _WITHOUT_MEANING
    }
    found.setdefault("enabled", True)
    within = snake_fields(found.pop("dm", None))
    people = [*as_list(found.get("allow_from")), *as_list(within.pop("allow_from", None))]
    if within:
        found["dm"] = within
    listed = (_PERSON.sub("", str(each).strip(), count=1) for each in people)
    found["allow_from"] = list(dict.fromkeys(listed))
    _convert_mentions(found)
    _convert_streaming(found)
    return found


def _convert_mentions(settings: dict[str, Any]) -> None:
    """Whether it has to be named, where that is said for all groups."""
    for name in _GROUPS:
        groups = as_map(settings.get(name))
        every = snake_fields(groups.get("*"))
        if not isinstance(every.get("require_mention"), bool):
            continue
        settings.setdefault("require_mention", every["require_mention"])
        says_more = len(groups) > 1 or len(every) > 1
        if not says_more:
            del settings[name]


def _convert_streaming(settings: dict[str, Any]) -> None:
    """Whether an answer is shown while it is written: `streaming` or `streaming.mode`."""
    mode = settings.get("streaming")
    if isinstance(mode, Mapping) and set(mode) == {"mode"}:
        mode = mode["mode"]
    if isinstance(mode, str):
        settings["streaming"] = mode != "off"
