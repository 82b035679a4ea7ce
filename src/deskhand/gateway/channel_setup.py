"""Adds a channel: it is tried on its platform first, and only one that works is stored."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..channels.base import Introduction
from ..channels.guides import GUIDES, Need, find_variable
from ..channels.settings import ChannelConfig
from ..config.config import Settings
from ..config.first_settings import check_secret, store_secret, store_setting
from ..store.blobs import Blobs
from ..types.errors import ConfigError
from .channel_loader import fetch_introduction

Answers = Mapping[str, str]
"""What was answered, by the setting of each need."""


def list_needs(settings: Settings, kind: str, name: str) -> list[Need]:
    """What is to be asked for: the secrets, which may have ended, and what is not set yet."""
    config = settings.config.channels.get(name, ChannelConfig())
    return [
        need for need in GUIDES[kind].needs if need.variable or not getattr(config, need.setting)
    ]


def has_secret(settings: Settings, need: Need, kind: str, name: str) -> bool:
    """Whether there is one already, which stays where nothing is answered."""
    config = settings.config.channels.get(name, ChannelConfig())
    variable = getattr(config, need.setting) or find_variable(need, kind, name)
    return bool(need.variable and settings.environment.get(variable))


async def add_channel(
    settings: Settings, blobs: Blobs, kind: str, name: str, answers: Answers
) -> Introduction:
    """Try it, and store it. Raises ConfigError, ChannelError, OSError; then nothing is stored."""
    secrets, wanted = _read_answers(settings, kind, name, answers)
    before = settings.config.channels.get(name, ChannelConfig())
    config = replace(before, type=before.type or kind, enabled=True, **wanted)
    tried = replace(settings, environment={**settings.environment, **secrets})
    met = await fetch_introduction(name, config, tried, blobs)
    await anyio.to_thread.run_sync(_store, settings, kind, name, secrets, wanted)
    return met


def _read_answers(
    settings: Settings, kind: str, name: str, answers: Answers
) -> tuple[dict[str, str], dict[str, object]]:
    """The secrets by their variables, and the settings. A secret of the usual name is not named in
    the configuration."""
    if kind not in GUIDES:
        raise ConfigError(f"there is no kind of channel {kind!r}; there are: {', '.join(GUIDES)}")
    secrets: dict[str, str] = {}
    wanted: dict[str, object] = {}
    before = settings.config.channels.get(name, ChannelConfig())
    for need in GUIDES[kind].needs:
        answer = answers.get(need.setting, "").strip()
        if need.variable and (answer or not need.optional):
            variable = getattr(before, need.setting) or find_variable(need, kind, name)
            if answer or not settings.environment.get(variable):
                secrets[variable] = check_secret(variable, answer)
            if variable != need.variable:
                wanted[need.setting] = variable
        elif answer and need.is_list:
            wanted[need.setting] = tuple(each.strip() for each in answer.split(",") if each.strip())
        elif answer:
            wanted[need.setting] = answer
    return secrets, wanted


def _store(
    settings: Settings,
    kind: str,
    name: str,
    secrets: Mapping[str, str],
    wanted: Mapping[str, object],
) -> None:
    for variable, secret in secrets.items():
        store_secret(settings, variable, secret)
    entries = {**({} if name == kind else {"type": kind}), **wanted, "enabled": True}
    for key, value in entries.items():
        store_setting(settings, ["channels", name, key], msgspec.to_builtins(value))
