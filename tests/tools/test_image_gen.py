"""Pictures from words: what is asked of the provider, and what becomes of its answer."""

from __future__ import annotations

import base64
import email
import email.policy
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image as Picture

from deskhand.testing.temporary_home import OWNER, TemporaryHome
from deskhand.types.events import ToolFinished
from deskhand.types.messages import Image


def png(color: str) -> bytes:
    file = BytesIO()
    Picture.new("RGB", (4, 4), color).save(file, "PNG")
    return file.getvalue()


class Provider:
    """Answers as OpenAI's images interface does. `answers` are given in turn."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.status = 200
        self.answer: Any = {"data": [{"b64_json": base64.b64encode(png("red")).decode()}]}
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        kind = request.headers["content-type"]
        read: Any = json.loads(body) if kind == "application/json" else (kind, body)
        self.asked.append((request.path, dict(request.headers), read))
        return web.json_response(self.answer, status=self.status)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    app = web.Application(client_max_size=50 << 20)
    app.router.add_post("/v1/images/{kind}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield made
    await runner.cleanup()


def desk_of(home: Path, provider: Provider) -> TemporaryHome:
    config = {"model": "openai/gpt-image-1", "url": provider.url, "size": "1024x1024"}
    policy = [{"tool": "image_gen", "verdict": "allow"}]
    desk = TemporaryHome(home, image_gen=config, policy=policy)
    desk.settings.environment["OPENAI_API_KEY"] = "sk-canary-0123456789"  # type: ignore[index]
    return desk


async def test_a_picture_is_made_and_kept(tmp_path: Path, provider: Provider) -> None:
    desk = desk_of(tmp_path, provider)
    async with desk.running() as app:
        said = await desk.call(app, "image_gen", prompt="a tent", output_path="tent.png")
        assert said == "made a picture; kept as tent.png"
        ((path, headers, body),) = provider.asked
        assert path == "/v1/images/generations"
        assert headers["Authorization"] == "Bearer sk-canary-0123456789"
        assert body == {"model": "gpt-image-1", "prompt": "a tent", "size": "1024x1024"}
        workspace = desk.settings.home.workspace("default")
        assert (workspace / "tent.png").read_bytes() == png("red")
        events = [each.event for each in await app.store.events("default/terminal:1")]
        (finished,) = [each for each in events if isinstance(each, ToolFinished)]
        (picture,) = [part for part in finished.result.parts if isinstance(part, Image)]
        assert picture.mime == "image/png" and await app.blobs.get(picture.blob) == png("red")
        (effect,) = await app.tool_wiring.effects.timeline(OWNER)
        assert effect.tool == "image_gen", "it can be undone"


async def test_pictures_are_given(tmp_path: Path, provider: Provider) -> None:
    desk = desk_of(tmp_path, provider)
    workspace = desk.settings.home.workspace("default")
    workspace.mkdir(parents=True)
    (workspace / "a.png").write_bytes(png("blue"))
    (workspace / "b.txt").write_text("no picture")
    async with desk.running() as app:
        await desk.call(app, "image_gen", prompt="greener", images=["a.png"])
        ((path, _, (kind, body)),) = provider.asked
        assert path == "/v1/images/edits"
        head = f"Content-Type: {kind}\r\n\r\n".encode()
        form = email.message_from_bytes(head + body, policy=email.policy.HTTP)
        parts = {
            part.get_param("name", header="content-disposition"): part for part in form.iter_parts()
        }
        assert parts["prompt"].get_content().strip() == "greener"
        assert parts["image"].get_content() == png("blue")
        assert parts["image"].get_content_type() == "image/png"
        said = await desk.call(app, "image_gen", prompt="x", images=["b.txt"])
        assert said == "'b.txt' is no picture of at most 20 MB" and len(provider.asked) == 1


async def test_what_a_provider_may_answer(tmp_path: Path, provider: Provider) -> None:
    desk = desk_of(tmp_path, provider)
    async with desk.running() as app:
        answers: list[Any] = [{}, {"data": []}, {"data": [{"b64_json": "%%"}]}, [1], {"data": [{}]}]
        for answer in answers:
            provider.answer = answer
            said = await desk.call(app, "image_gen", prompt="a tent")
            assert said == "openai answered something that is no picture"
        provider.status = 400
        provider.answer = {"error": {"message": "not that"}}
        assert "openai made no picture: 400" in await desk.call(app, "image_gen", prompt="a tent")
        assert "1 to 8,000 characters" in await desk.call(app, "image_gen", prompt=" ")
        assert "sk-canary" not in str(await app.store.events("default/terminal:1"))


async def test_it_is_offered_where_a_model_is_set(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        assert "image_gen" not in app.current.agent("default").tools
