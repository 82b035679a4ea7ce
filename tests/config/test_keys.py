"""The key that was meant by one that does not exist, and lists and sections without anything in
them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.config import keys
from deskhand.config.config import Config
from deskhand.types.errors import ConfigError

from .test_config import read


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("channels.telegram.token", "channels.telegram.token_env"),
        ("channels.telegram.tokens", "channels.telegram.token_env"),
        ("channels.telegram.allow", "channels.telegram.allow_from"),
        ("chanels.telegram.token_env", "channels.telegram.token_env"),
        ("chanels.telegram.token", "channels.telegram.token_env"),
        ("defaults.model", "defaults.models"),
        ("defalts", "defaults"),
        ("models", "defaults.models"),
        ("steps", "defaults.steps"),
        ("agents.main.timezone", "timezone"),
        ("jobs.mqtt.hots", "jobs.mqtt.host"),
        ("egress.allowed", "egress.allow"),
        ("enabled", ""),
        ("channels.telegram.zzz", ""),
        ("timezone.name", ""),
        ("defaults.models", ""),
    ],
)
def test_the_key_that_was_meant(written: str, meant: str) -> None:
    assert keys.find_similar(written, Config) == meant
    assert not meant or keys.exists(meant, Config)


def test_what_is_suggested_exists_and_is_something_else() -> None:
    """For every key with a letter too few, too many or another one, and in every other section."""
    existing = set(keys.iter_paths(Config))
    sections = {path.rpartition(".")[0] for path in existing}
    leaves = {path.rpartition(".")[2] for path in existing}
    misspelt = {
        wrong for path in existing for wrong in (path[:-1], f"{path}s", f"{path[:-2]}x{path[-1]}")
    }
    misplaced = {f"{section}.{leaf}".lstrip(".") for section in sections for leaf in leaves}
    for written in misspelt | misplaced | existing:
        meant = keys.find_similar(written, Config)
        assert meant != written
        assert not meant or keys.exists(meant, Config), (written, meant)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("defaults: {models: []}", "defaults.models"),
        ("agents: {a: {models: []}}", "agents.a.models"),
        ("agents: [{id: a, models: []}]", "agents.a.models"),
        ("agents: {a: {model: []}}", "agents.a.models"),
        ("reflection: {models: []}", "reflection.models"),
        ("memory: {harvester: {models: []}}", "memory.harvester.models"),
        ("memory: {cleaner: {models: []}}", "memory.cleaner.models"),
        ("defaults: {models: ['']}", "defaults.models"),
        ("defaults: {models: ''}", "defaults.models"),
    ],
)
def test_a_list_of_models_that_is_empty(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text)
    assert f"{key!r} is empty: name at least one model, such as [anthropic/claude-sonnet-5]" in str(
        raised.value
    )


def test_a_rule_for_no_command_is_not_one_for_every_command(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"'policy\[1\].commands' is empty: name at least one program"
    ):
        read(tmp_path, "policy: [{verdict: ask}, {verdict: allow, tool: shell, commands: []}]")


def test_lists_that_may_be_empty(tmp_path: Path) -> None:
    """These mean what they say: nobody, none, or nothing more."""
    text = """
agents: {a: {tools: [], skills: [], commands: [], also_allow: [], deny: [], deferred_tools: []}}
channels: {telegram: {token_env: T, allow_from: []}}
roles: {kids: {agents: []}}
web: {hosts: [], origins: []}
egress: {allow: []}
bindings: []
policy: []
plugins: []
"""
    assert read(tmp_path, text).agents == ("a",)


def test_a_section_without_keys_and_a_variable_without_text_say_nothing(tmp_path: Path) -> None:
    settings = read(
        tmp_path, "defaults:\nmemory:\n  harvester:\nagents:\nweb:\n", DESKHAND_MODELS=""
    )
    assert settings.config == Config()
    assert settings.warnings == ()
