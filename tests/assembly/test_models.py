"""Which wire a model is spoken to in, and a whole turn over the newest of them."""

from __future__ import annotations

import asyncio
import gc
import random
from base64 import b64decode
from contextlib import aclosing
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest
from PIL import Image as Pillow

from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.models.anthropic import AnthropicModel
from deskhand.models.openai import OpenAIModel
from deskhand.models.pictures import LIMIT_BYTES
from deskhand.models.responses import ResponsesModel
from deskhand.models.shim import Shim
from deskhand.models.sight import Sighted
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.types.events import Recorded, TurnEnded
from deskhand.types.identity import Address, Inbound, Receipt, Said
from deskhand.types.messages import Image, Message, Text

KEYS = {"OPENAI_API_KEY": "k", "XAI_API_KEY": "k"}


def settings(home: Path, providers: dict[str, Any], models: tuple[str, ...] = ()) -> Settings:
    raw = {"defaults": {"models": models, "thinking": "max"}, "providers": providers}
    return Settings(Home(home), msgspec.convert(raw, Config), environment=KEYS)


async def until_the_end(app: App, receipt: Receipt) -> list[Any]:
    """What the log gets until the turn ends."""
    seen = []
    async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
        async for item in items:
            if isinstance(item, Recorded):
                seen.append(item)
                if isinstance(item.event, TurnEnded):
                    break
    return seen


@pytest.mark.parametrize(
    ("model", "provider", "kind"),
    [
        ("openai/gpt-6.1-sol", {}, ResponsesModel),
        ("openai/gpt-5-2025-08-07", {}, ResponsesModel),
        ("openai/gpt-4.1", {}, OpenAIModel),
        ("xai/grok-4.5", {}, ResponsesModel),
        ("xai/grok-4.20", {}, OpenAIModel),
        ("openai/gpt-6.1-sol", {"base_url": "https://api.openai.com/v1/"}, ResponsesModel),
        ("openai/gpt-6.1-sol", {"base_url": "http://127.0.0.1:4000/v1"}, OpenAIModel),
        (
            "openai/gpt-6.1-sol",
            {"base_url": "http://127.0.0.1:4000/v1", "wire": "responses"},
            ResponsesModel,
        ),
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
    opened = Models(chosen).open(model)
    assert type(opened.inner if isinstance(opened, Sighted) else opened) is kind


async def test_reasoning_lasts_through_a_turn_with_tools(tmp_path: Path) -> None:
    """Asked to think, with tools, over sockets: the reasoning is in the log, and goes back with the
    results."""
    async with FakeLLM() as fake:
        call = FakeCall("list_files", '{"path": "."}')
        fake.script(
            Behaviour(times=1, thinking="A look will tell.", redacted="gAAAA", calls=(call,)),
            Behaviour(text="Empty."),
        )
        chosen = settings(
            tmp_path,
            {"openai": {"base_url": fake.url, "wire": "responses"}},
            ("openai/gpt-6.1-sol",),
        )
        async with (
            Models(chosen) as models,
            open_app(chosen, Parts(models.open)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            said = Said(Message("user", (Text("What is here?"),)))
            receipt = await app.door.submit(Inbound("1", Address("terminal"), "owner", 1.0, said))
            assert (await until_the_end(app, receipt))[-1].event.reason == "done"
            tasks.cancel_scope.cancel()
        first, second = (asked.json for asked in fake.requests)
    assert first["tools"] and first["reasoning"] == {"effort": "max", "summary": "auto"}
    kinds = [item.get("role") or item["type"] for item in second["input"]]
    assert kinds == ["user", "reasoning", "function_call", "function_call_output"]
    assert second["input"][1]["encrypted_content"] == "gAAAA"
    assert second["input"][: len(first["input"])] == first["input"]


async def test_a_large_picture_goes_small_to_the_model_and_stays_whole_here(tmp_path: Path) -> None:
    data = BytesIO()
    Pillow.frombytes("RGB", (1400, 1300), random.Random(7).randbytes(1400 * 1300 * 3)).save(
        data, "PNG"
    )
    async with FakeLLM() as fake:
        chosen = settings(
            tmp_path,
            {"openai": {"base_url": fake.url, "wire": "responses"}},
            ("openai/gpt-6.1-sol",),
        )
        async with (
            Models(chosen) as models,
            open_app(chosen, Parts(models.open)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            digest = await app.blobs.put(data.getvalue())
            said = Said(
                Message("user", (Text("What is this?"), Image(digest, "image/png", "noise.png")))
            )
            receipt = await app.door.submit(Inbound("1", Address("terminal"), "owner", 1.0, said))
            seen = await until_the_end(app, receipt)
            assert await app.blobs.get(digest) == data.getvalue()
            tasks.cancel_scope.cancel()
        (picture,) = [
            block
            for block in fake.requests[0].json["input"][0]["content"]
            if block["type"] == "input_image"
        ]
    assert fake.requests[0].headers["content-type"] == "application/json"
    head, _, encoded = picture["image_url"].partition(",")
    assert head == "data:image/jpeg;base64"
    assert len(b64decode(encoded)) <= LIMIT_BYTES
    assert len(msgspec.json.encode(seen)) < 10_000, "no pixels in the log"


def open_sessions() -> int:
    return sum(type(each) is aiohttp.ClientSession and not each.closed for each in gc.get_objects())


async def test_who_interrupts_the_end_leaves_no_connection_open(tmp_path: Path) -> None:
    """As Ctrl-C does: it cancels the task wherever it waits."""

    async def use() -> None:
        async with Models(settings(tmp_path, {})):
            await anyio.sleep(0)

    before = open_sessions()
    for steps in range(8):
        task = asyncio.create_task(use())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert open_sessions() == before, steps
