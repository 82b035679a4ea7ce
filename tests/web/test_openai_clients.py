"""The clients that people use against our endpoint: each in its newest version, from an environment
of their own.

`make test` builds it; `make .venv-clients/.ready` builds it alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.models.base import Reply, Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ModelKeyRefused
from deskhand.types.messages import Image, Message, ToolCall, ToolResult

from .served import Served, serving

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
FOLDER = Path(__file__).with_name("clients")
CLIENTS = ("openai", "litellm", "langchain", "pydantic_ai")
CASES = ("chat", "stream", "tools", "parallel", "structured", "image", "errors", "cancel")
ANN = {"name": "Ann", "age": 7}
GREETING = "Hello to you, whoever you may be, and a very good morning."
RUN_S = 90.0


class Slow(ScriptedModel):
    """Takes its time over what is to come in pieces."""

    async def reply(self, request: Request) -> Any:
        self.pause_s = 0.02 if said_in(request).startswith(("hello", "on and on")) else 0.0
        async for item in super().reply(request):
            yield item


def said_in(request: Request) -> str:
    """What the person said last, without the date before it."""
    last = next(
        shown.message for shown in reversed(request.messages) if shown.message.role == "user"
    )
    return last.text.partition("] ")[2]


def script(request: Request) -> Message | Reply:
    said = said_in(request)
    results = [
        part.text
        for shown in request.messages[-2:]
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    ]
    if results:
        return say(f"It is {' and '.join(results)}.")
    if said.startswith("weather"):
        cities = ("Bern", "Rome") if "two" in said else ("Bern",)
        return say("", *(call(i, "weather", {"city": city}) for i, city in enumerate(cities)))
    if request.must_call:
        return say("", call(0, request.tools[0].name, ANN))
    if request.form is not None:
        return say(msgspec.json.encode(ANN).decode())
    if said.startswith("break"):
        raise ModelKeyRefused("the key is not taken")
    if said.startswith("on and on"):
        return say("on and on " * 2000)
    pictures = [
        part
        for shown in request.messages
        for part in shown.message.parts
        if isinstance(part, Image)
    ]
    return say(f"I see {len(pictures)} picture of {pictures[0].mime}." if pictures else GREETING)


def call(number: int, name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(f"call_{number}", name, msgspec.Raw(msgspec.json.encode(arguments)))


@asynccontextmanager
async def endpoint(home: Path) -> AsyncIterator[tuple[Served, str]]:
    async with serving(home, Slow(script, piece=8)) as served:
        yield served, served.owner.headers["authorization"].removeprefix("Bearer ")


class Ran(msgspec.Struct):
    """What a client printed, and how its cancelled turn ended."""

    found: dict[str, Any]
    cancelled: str


async def run(client: str, home: Path) -> Ran:
    """Run all cases of this client against a server of its own."""
    assert PYTHON.exists(), "the environment of the clients is missing: make .venv-clients/.ready"
    async with endpoint(home) as (served, key):
        command = [
            str(PYTHON),
            "-I",
            "-B",
            str(FOLDER / f"{client}_client.py"),
            f"{served.url}/v1",
            key,
        ]
        with anyio.fail_after(RUN_S):
            done = await anyio.run_process(
                [
                    "env",
                    "-i",
                    f"PYTHONPATH={FOLDER}",
                    f"HOME={home}",
                    *[each for each in command if each != "-I"],
                ],
                check=False,
                stderr=subprocess.PIPE,
            )
            assert done.returncode == 0, done.stderr.decode()[-2000:]
            log: list[Any] = []
            while not any(each["event"]["type"] == "turn_ended" for each in log):
                log = await served.owner.get(f"/api/sessions/cancel-{client}/log")
                await anyio.sleep(0.02)
        ended = [each["event"]["reason"] for each in log if each["event"]["type"] == "turn_ended"]
        return Ran(msgspec.json.decode(done.stdout.splitlines()[-1]), ended[0])


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Each client is run once, when the first of its cases is asked for."""
    return {}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("client", CLIENTS)
async def test_client(client: str, case: str, ran: dict[str, Ran], tmp_path: Path) -> None:
    if client not in ran:
        ran[client] = await run(client, tmp_path)
    found = ran[client].found[case]
    match case:
        case "chat":
            assert found == GREETING
        case "stream":
            assert isinstance(found, dict) and found["text"] == GREETING and found["pieces"] > 3, (
                found
            )
        case "tools":
            assert isinstance(found, dict) and found == {"text": "It is rain.", "messages": 4}, (
                found
            )
        case "parallel":
            messages = 4 if client == "pydantic_ai" else 5  # it has both results in one message
            assert isinstance(found, dict) and found == {
                "text": "It is rain and sun.",
                "messages": messages,
            }, found
        case "structured":
            assert found == ANN
        case "image":
            assert found == "I see 1 picture of image/png."
        case "errors":
            assert found == ERRORS[client]
        case "cancel":
            assert found == "left" and ran[client].cancelled == "stopped"


ERRORS = {
    "openai": {
        "model": "NotFoundError",
        "key": "AuthenticationError",
        "field": "BadRequestError",
        "failed": "InternalServerError",
    },
    "litellm": {
        "model": "NotFoundError",
        "key": "AuthenticationError",
        "field": "BadRequestError",
        "failed": "BadGatewayError",
    },
    "langchain": {
        "model": "OpenAIModelNotFoundError",
        "key": "OpenAIAuthenticationError",
        "field": "OpenAIInvalidRequestError",
        "failed": "OpenAIAPIError",
    },
    "pydantic_ai": {
        "model": "ModelNotFoundError",
        "key": "ModelAuthenticationError",
        "field": "ModelRequestRejectedError",
        "failed": "ModelServerError",
    },
}
