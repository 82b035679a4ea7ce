"""All pictures of a request have one limit of bytes and one of time; a label names where a picture
was found."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import anyio
import openai
import pytest

from deskhand.net.client import Net, NetLimits, RawResponse
from deskhand.net.client import OutboundRequest as NetRequest
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.messages import Image
from deskhand.web.openai import pictures

from .served import serving
from .test_openai import MODEL, client
from .test_openai_fields import pictured

HEAD = b"\x89PNG\r\n\x1a\n"


async def anywhere(host: str, port: int) -> Sequence[str]:
    return ["93.184.215.14"]


def data_url(number: int) -> str:
    return f"data:image/png;base64,{b64encode(HEAD + bytes([number] * 100)).decode()}"


async def test_many_pictures_have_one_limit_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "PICTURE_BYTES", 250)
    async with serving(tmp_path) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[pictured(data_url(i)) for i in range(2)]
        )
        with pytest.raises(openai.APIStatusError) as refused:
            await ai.chat.completions.create(
                model=MODEL, messages=[pictured(data_url(i)) for i in range(3)]
            )
        assert refused.value.status_code == 413 and refused.value.param == "messages[2].content[1]"


async def test_many_pictures_have_one_limit_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "PICTURES_S", 0.5)

    async def exchange(
        request: NetRequest, addresses: Sequence[str], limits: NetLimits
    ) -> RawResponse:
        if request.url.target == "/slow.png":
            await anyio.sleep_forever()
        return 200, {"content-type": "image/png"}, HEAD

    async with (
        serving(tmp_path, net=Net(resolve=anywhere).with_exchange(exchange)) as served,
        client(served) as ai,
    ):
        messages = [pictured(f"https://site.test/{name}.png") for name in ("quick", "slow")]
        with anyio.fail_after(10):
            with pytest.raises(openai.BadRequestError) as refused:
                await ai.chat.completions.create(model=MODEL, messages=messages)
        assert refused.value.param == "messages[1].content[1]"


async def test_the_source_of_a_picture_is_where_it_was_found(tmp_path: Path) -> None:
    async def exchange(
        request: NetRequest, addresses: Sequence[str], limits: NetLimits
    ) -> RawResponse:
        match request.url.target:
            case "/moved.png":
                return 302, {"location": "https://other.test/p.png"}, b""
            case "/plain.png":
                return 302, {"location": "http://other.test/p.png"}, b""
        return 200, {"content-type": "image/png"}, HEAD

    model = ScriptedModel(lambda request: say("A cat."))
    net = Net(resolve=anywhere).with_exchange(exchange)
    async with serving(tmp_path, model, net=net) as served, client(served) as ai:
        await ai.chat.completions.create(
            model=MODEL, messages=[pictured("https://site.test/moved.png")]
        )
        parts = model.requests[-1].messages[-1].message.parts
        assert [part.label.source for part in parts if isinstance(part, Image)] == [
            "https://other.test/p.png"
        ]
        with pytest.raises(openai.BadRequestError) as refused:
            await ai.chat.completions.create(
                model=MODEL, messages=[pictured("https://site.test/plain.png")]
            )
        assert refused.value.param == "messages[0].content[1]"
