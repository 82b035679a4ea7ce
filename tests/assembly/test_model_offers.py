"""What a newcomer is offered: keys, servers that run here, the embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.assembly.model_offers import Machine, detect_machine, make_offers
from deskhand.assembly.models import Models, is_small
from deskhand.config.config import Settings, read_settings
from deskhand.models.local_servers import LocalServer
from deskhand.models.weights import WeightsFolder
from deskhand.testing.llm import FakeLLM
from deskhand.types.errors import ConfigError, ModelUnknown

SERVERS = (LocalServer("ollama", "http://127.0.0.1:11434/v1", ("qwen3:8b", "llama3")),)
MANY = (LocalServer("ollama", "http://127.0.0.1:11434/v1", tuple(map(str, range(30)))),)


def settings(home: Path, **environment: str) -> Settings:
    return read_settings(
        None, {"DESKHAND_HOME": str(home), "DESKHAND_CACHE": str(home / "cache"), **environment}
    )


def shelf_with(home: Path, name: str = "") -> WeightsFolder:
    shelf = WeightsFolder(home / "cache" / "models")
    if name:
        path = shelf.path(name)
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(shelf.find(name).size_bytes)
    return shelf


def test_nothing_is_here(tmp_path: Path) -> None:
    (offer,) = make_offers(
        settings(tmp_path), Machine(free_bytes=8 * 10**9, engine=True), shelf_with(tmp_path)
    )
    assert (offer.kind, offer.model, offer.ready) == (
        "download",
        "embedded/qwen2.5-coder-1.5b",
        False,
    )
    assert "1.1 GB to download once; needs no key" in offer.detail
    assert offer.todo == "deskhand model pull qwen2.5-coder-1.5b"


def test_everything_is_here(tmp_path: Path) -> None:
    here = settings(tmp_path, ANTHROPIC_API_KEY="secret", OPENAI_API_KEY="")
    machine = Machine(SERVERS, 8 * 10**9, True)
    found = make_offers(here, machine, shelf_with(tmp_path, "qwen2.5-coder-0.5b"))
    assert [offer.kind for offer in found] == ["key", "server", "server", "embedded"]
    assert [offer.model for offer in found[1:]] == [
        "ollama/qwen3:8b",
        "ollama/llama3",
        "embedded/qwen2.5-coder-0.5b",
    ]
    assert found[0].model.startswith("anthropic/") and "ANTHROPIC_API_KEY" in found[0].detail
    assert all(offer.ready and offer.todo == f"deskhand model use {offer.model}" for offer in found)
    assert "secret" not in repr(found)


def test_many_models_do_not_hide_the_embedded_one(tmp_path: Path) -> None:
    found = make_offers(settings(tmp_path), Machine(MANY, 8 * 10**9, True), shelf_with(tmp_path))
    assert [offer.kind for offer in found] == ["server"] * 3 + ["download"]


async def test_taking_an_offer(tmp_path: Path) -> None:
    here = make_offers(
        settings(tmp_path), Machine(SERVERS, 10**9), shelf_with(tmp_path, "qwen2.5-coder-1.5b")
    )
    assert await here[0].take() == "ollama/qwen3:8b"
    with pytest.raises(ConfigError, match=r"pip install 'deskhand\[local\]'"):
        await here[-1].take()
    ready = make_offers(
        settings(tmp_path), Machine(engine=True), WeightsFolder(tmp_path / "cache" / "models")
    )
    assert await ready[0].take() == "embedded/qwen2.5-coder-1.5b"
    assert "memory is low" in ready[0].detail


async def test_servers_are_found_by_their_answer() -> None:
    async with FakeLLM() as fake:  # it answers, but has no list of models
        found = await detect_machine(0.5, {"ollama": fake.url, "lmstudio": "http://127.0.0.1:1/v1"})
    assert found.servers == () and found.free_bytes > 0 and found.engine


def test_the_embedded_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelUnknown, match=r"deskhand model pull qwen2\.5-coder-1\.5b"):
        Models(settings(tmp_path)).open("embedded/qwen2.5-coder-1.5b")
    with pytest.raises(ModelUnknown, match="choose one of: qwen"):
        Models(settings(tmp_path)).open("embedded/gpt")
    assert is_small(settings(tmp_path), "embedded/x") and not is_small(
        settings(tmp_path), "openai/x"
    )
