"""The shipped list of providers, and how a model is opened from it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from deskhand.assembly.models import build_catalogue
from deskhand.config.config import Config, Home, ProviderConfig, Settings
from deskhand.models.anthropic import AnthropicModel
from deskhand.models.catalogue import (
    DEFAULT_FACTS,
    Catalogue,
    open_model,
    parse_model_name,
    read_catalogue,
)
from deskhand.models.logins import LOGINS
from deskhand.models.openai import OpenAIModel
from deskhand.models.settings import EFFORTS
from deskhand.models.transport import Transport
from deskhand.testing.llm import FakeLLM
from deskhand.types.errors import ConfigError

from .tools import reply_of

CLOUD = [
    "openai",
    "anthropic",
    "google",
    "mistral",
    "groq",
    "cerebras",
    "deepseek",
    "openrouter",
    "xai",
    "zai",
]
PROVIDERS = [
    *CLOUD,
    "together",
    "nvidia",
    "azure",
    "ollama",
    "lmstudio",
    "vllm",
    "llamacpp",
    "litellm",
    "custom",
    "custom-anthropic",
    "embedded",
]


@pytest.fixture(scope="module")
def shipped() -> Catalogue:
    return read_catalogue()


def test_the_shipped_catalogue_is_sound(shipped: Catalogue) -> None:
    assert list(shipped.providers) == PROVIDERS
    for name, provider in shipped.providers.items():
        assert provider.source.startswith("https://"), name
        assert date.fromisoformat(provider.as_of) <= date(2026, 11, 22), name
        assert provider.base_url or name in ("azure", "custom", "custom-anthropic", "embedded")
        for model, facts in provider.models.items():
            assert "*" not in model[:-1], model
            assert facts.window >= 4096 and facts.max_output <= facts.window, model
            assert facts.cached_usd <= facts.input_usd <= facts.output_usd, model
            assert (facts.thinking in ("budget", "adaptive")) <= (provider.wire == "anthropic"), (
                model
            )
            assert facts.efforts and set(facts.efforts) <= set(EFFORTS), model
            assert bool(facts.tools_effort) <= (facts.wire == "responses"), (
                "reasoning would be lost beside tools"
            )


def test_the_shipped_catalogue_is_read_once_and_nobody_changes_it(tmp_path: Path) -> None:
    before = read_catalogue()
    own = {
        "openai": ProviderConfig(wire="anthropic"),
        "mine": ProviderConfig(base_url="http://127.0.0.1:1/v1"),
    }
    changed = build_catalogue(Settings(Home(tmp_path), Config(providers=own)))
    assert changed.provider("openai").wire == "anthropic"
    assert read_catalogue() is before and before.provider("openai").wire == "openai"
    assert "mine" in changed.providers and "mine" not in before.providers


def test_names_may_have_slashes() -> None:
    assert parse_model_name("openrouter/meta/llama-3:free") == ("openrouter", "meta/llama-3:free")
    for wrong in ("gpt-5", "openai/", "/gpt-5", ""):
        with pytest.raises(ConfigError, match="is not a model name"):
            parse_model_name(wrong)


def test_a_model_is_known_by_itself_or_its_family(shipped: Catalogue) -> None:
    assert shipped.facts("openai", "gpt-5-mini-2025-08-07").input_usd == 0.25
    assert shipped.facts("openai", "gpt-5-2025-08-07").off_effort == "minimal"
    assert shipped.facts("openai", "gpt-5.7-vega").tools_effort == "none"
    assert shipped.facts("anthropic", "claude-opus-5-5").input_usd == 4
    assert shipped.facts("anthropic", "claude-sonnet-4-5-20250929").thinking == "budget"
    assert shipped.facts("together", "nobody/knows") == DEFAULT_FACTS
    assert shipped.facts("lmstudio", "mine").window == 8192


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("openai/gpt-6.1-sol", "low medium high max"),
        ("openai/gpt-5.4-mini", "low medium high xhigh"),
        ("openai/o3", "low medium high high"),
        ("anthropic/claude-opus-5-5", "low medium high max"),
        ("anthropic/claude-opus-4-5", "low medium high high"),
        ("deepseek/deepseek-flash", "low high high max"),
        ("xai/grok-4.7", "low medium high xhigh"),
        ("zai/glm-5.3", "low high high max"),
        ("google/gemini-3-flash", "low medium high high"),
    ],
)
def test_each_model_thinks_as_hard_as_it_can(shipped: Catalogue, model: str, sent: str) -> None:
    facts = shipped.facts(*parse_model_name(model))
    assert (
        " ".join(facts.nearest_effort(asked) for asked in ("low", "medium", "high", "max")) == sent
    )


def test_what_is_missing_is_said(shipped: Catalogue) -> None:
    with pytest.raises(ConfigError, match="set GROQ_API_KEY"):
        shipped.spec("groq", "m")
    with pytest.raises(ConfigError, match="set its base_url"):
        shipped.spec("azure", "m", "key")
    assert shipped.spec("ollama", "m").base_url == "http://127.0.0.1:11434/v1"
    assert "sk-secret" not in repr(shipped.spec("openai", "m", "sk-secret"))


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("codex", "OPENAI_API_KEY, and write openai/MODEL"),
        ("claude-code", "ANTHROPIC_API_KEY, and write anthropic/MODEL"),
        ("Claude_Code", "ANTHROPIC_API_KEY"),
        ("antigravity", "GEMINI_API_KEY, and write google/MODEL"),
        ("github_copilot", "OPENAI_API_KEY"),
    ],
)
def test_the_login_of_another_program_is_not_taken(
    shipped: Catalogue, name: str, instead: str
) -> None:
    with pytest.raises(ConfigError, match=instead):
        open_model(shipped, Transport(), f"{name}/m")
    for known in LOGINS.values():
        assert known.source.startswith("https://") and date.fromisoformat(known.as_of) <= date(
            2026, 11, 22
        )


async def test_opening(shipped: Catalogue, fake: FakeLLM, transport: Transport) -> None:
    assert isinstance(
        open_model(shipped, transport, "anthropic/claude-opus-5-5", "key"), AnthropicModel
    )
    model = open_model(shipped, transport, "custom/org/model:tag", base_url=fake.url)
    assert isinstance(model, OpenAIModel)
    assert (await reply_of(model)).message.text == "This is the answer of a fake model."
    assert fake.requests[0].json["model"] == "org/model:tag"
    assert "authorization" not in fake.requests[0].headers


def test_an_installed_provider_is_loaded_by_name(
    shipped: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[deskhand.models]\ntheirs = theirs:make\nbroken = nothing_here:make\n"
    )
    (tmp_path / "theirs.py").write_text("def make(*args):\n    return args\n")
    monkeypatch.syspath_prepend(tmp_path)
    made: object = open_model(shipped, Transport(), "theirs/some/model", "key", "http://x")
    assert made == ("some/model", "key", "http://x")
    with pytest.raises(ConfigError, match="does not load"):
        open_model(shipped, Transport(), "broken/m")
    with pytest.raises(ConfigError, match="no model provider 'nobody'"):
        open_model(shipped, Transport(), "nobody/m")


def test_a_catalogue_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[p]\nwire = "smoke"\nsource = "s"\nas_of = "2026-01-01"\n')
    for path in (tmp_path / "c.toml", tmp_path / "missing.toml"):
        with pytest.raises(ConfigError, match="cannot be used"):
            read_catalogue(path)
