"""Which wire a model is spoken to in, and a whole turn over the newest of them."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.anthropic import AnthropicModel
from deskhand.models.openai import OpenAIModel
from deskhand.models.responses import ResponsesModel
from deskhand.models.shim import Shim
from deskhand.runtime.app import OWNER, Parts, open_app
from deskhand.runtime.config import Config, Home, Settings
from deskhand.runtime.models import Models
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.types.events import Recorded, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text

KEYS = {"OPENAI_API_KEY": "k"}


def settings(home: Path, providers: dict[str, Any], models: tuple[str, ...] = ()) -> Settings:
    raw = {"defaults": {"models": models, "thinking": "max"}, "providers": providers}
    return Settings(Home(home), msgspec.convert(raw, Config), environment=KEYS)


@pytest.mark.parametrize(
    ("model", "provider", "kind"),
    [
        ("openai/gpt-6.1-sol", {}, ResponsesModel),
        ("openai/gpt-5-2025-08-07", {}, ResponsesModel),
        ("openai/gpt-4.1", {}, OpenAIModel),
        ("openai/gpt-6.1-sol", {"base_url": "https://api.openai.com/v1/"}, ResponsesModel),
        ("openai/gpt-6.1-sol", {"base_url": "http://127.0.0.1:4000/v1"}, OpenAIModel),
        ("openai/gpt-6.1-sol", {"base_url": "http://127.0.0.1:4000/v1", "wire": "responses"}, ResponsesModel),
        ("openai/gpt-6.1-sol", {"wire": "openai"}, OpenAIModel),
        ("openai/gpt-6.1-sol", {"tools": "fenced"}, Shim),
        ("mine/m", {"base_url": "http://127.0.0.1:4000/v1"}, OpenAIModel),
        ("mine/m", {"base_url": "http://127.0.0.1:4000/v1", "wire": "responses"}, ResponsesModel),
        ("mine/m", {"base_url": "http://127.0.0.1:4000/v1", "wire": "anthropic"}, AnthropicModel),
    ],
)
def test_the_wire_is_the_catalogues_unless_it_is_set(
    tmp_path: Path, model: str, provider: dict[str, str], kind: type[object]
) -> None:
    chosen = settings(tmp_path, {model.partition("/")[0]: provider} if provider else {})
    assert type(Models(chosen).open(model)) is kind


async def test_reasoning_lasts_through_a_turn_with_tools(tmp_path: Path) -> None:
    """Asked to think, with tools, over sockets: the reasoning is in the log, and goes back with the results."""
    async with FakeLLM() as fake:
        call = FakeCall("list_files", '{"path": "."}')
        fake.script(
            Behaviour(times=1, thinking="A look will tell.", redacted="gAAAA", calls=(call,)), Behaviour(text="Empty.")
        )
        chosen = settings(tmp_path, {"openai": {"base_url": fake.url, "wire": "responses"}}, ("openai/gpt-6.1-sol",))
        async with (
            Models(chosen) as models,
            open_app(chosen, Parts(models.open)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            said = Said(Message("user", (Text("What is here?"),)))
            receipt = await app.door.submit(Inbound("1", Address("terminal"), "owner", 1.0, said))
            async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
                async for item in items:
                    if isinstance(item, Recorded) and isinstance(item.event, TurnEnded):
                        assert item.event.reason == "done"
                        break
            tasks.cancel_scope.cancel()
        first, second = (asked.json for asked in fake.requests)
    assert first["tools"] and first["reasoning"] == {"effort": "max", "summary": "auto"}
    kinds = [item.get("role") or item["type"] for item in second["input"]]
    assert kinds == ["user", "reasoning", "function_call", "function_call_output"]
    assert second["input"][1]["encrypted_content"] == "gAAAA"
    assert second["input"][: len(first["input"])] == first["input"]
