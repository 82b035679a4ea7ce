"""The real engine with a tiny model: its process, its token, its grammars, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import msgspec
import pytest

from deskhand.models.base import ContextMessage, Reply, Request, ToolSchema
from deskhand.models.engine import Engine, EngineFiles, EngineModel, choose_threads
from deskhand.models.prefix import Prefixes
from deskhand.models.settings import Facts
from deskhand.models.shim import FILES_PROMPT, PROMPTS, Shim
from deskhand.models.shim_prompts import REQUEST_KINDS
from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing.tiny_gguf import make_tiny_gguf
from deskhand.types.errors import ModelError, ModelKeyRefused, ModelUnavailable
from deskhand.types.messages import Message, Text

ASKED = (ContextMessage(4, Message("user", (Text("make a folder called photos"),))),)
TOOLS = tuple(
    ToolSchema(name, "", {"type": "object", "properties": {}})
    for name in ("survey_files", "rehearse_program", "run_program", "web_fetch", "undo_change")
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf", context=16384)


@asynccontextmanager
async def running(weights: Path, folder: Path) -> AsyncIterator[tuple[Engine, EngineModel]]:
    engine = Engine(EngineFiles(weights, folder / "engine.log"), warmup=False, threads=1)
    async with (
        Transport(TransportLimits(), keep=False) as transport,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(engine.run)
        yield engine, EngineModel(engine, transport, "tiny", Facts(window=4096))
        tasks.cancel_scope.cancel()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until_gone(pid: int) -> None:
    with anyio.fail_after(30):
        while alive(pid):
            await anyio.sleep(0.01)


async def test_it_starts_when_wanted_and_ends_with_us(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (engine, model):
        await anyio.sleep(0.05)
        assert engine.starts == 0
        items = [item async for item in model.reply(Request("", (), ASKED, max_output_tokens=8))]
        assert isinstance(items[-1], Reply)
        serving = await engine.wait_ready()
        assert (
            serving.pid != os.getpid() and alive(serving.pid) and serving.token not in repr(serving)
        )
    await until_gone(serving.pid)


async def test_nothing_is_imported_from_the_folder_that_one_is_in(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be anybody's, such as one that was downloaded."""
    for name in ("deskhand", "msgspec", "xllamacpp"):
        (tmp_path / "theirs" / name).mkdir(parents=True)
        (tmp_path / "theirs" / name / "__init__.py").write_text(
            "import pathlib; pathlib.Path('was_here').touch()"
        )
    monkeypatch.chdir(tmp_path / "theirs")
    async with running(tiny, tmp_path) as (_, model):
        assert [item async for item in model.reply(Request("", (), ASKED, max_output_tokens=4))]
    assert not (tmp_path / "theirs" / "was_here").exists()


async def test_only_the_token_opens_it(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (engine, _):
        serving = await engine.wait_ready()
        command = (
            Path(f"/proc/{serving.pid}/cmdline").read_bytes()
            + Path(f"/proc/{serving.pid}/environ").read_bytes()
        )
        assert serving.token.encode() not in command
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {"Authorization": "Bearer guess"}):
                body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
                async with session.post(
                    f"{serving.base_url}/chat/completions", json=body, headers=headers
                ) as answer:
                    assert answer.status == 401
        assert serving.base_url.startswith("http://127.0.0.1:")


async def test_it_comes_back_when_it_dies(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (engine, model):
        first = await engine.wait_ready()
        os.kill(first.pid, signal.SIGKILL)
        await until_gone(first.pid)
        with anyio.fail_after(30):
            while (again := await engine.wait_ready()).pid == first.pid:
                await anyio.sleep(0.01)
        assert again.token != first.token
        assert [item async for item in model.reply(Request("", (), ASKED, max_output_tokens=4))]
        assert engine.starts == 2


async def test_a_death_in_mid_reply_is_told(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (engine, model):
        serving = await engine.wait_ready()
        os.kill(serving.pid, signal.SIGSTOP)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_later, serving.pid)
            with pytest.raises(ModelUnavailable):
                assert [item async for item in model.reply(Request("", (), ASKED))]


async def kill_later(pid: int) -> None:
    await anyio.sleep(2)  # the request has been sent by then, on a busy machine too
    os.kill(pid, signal.SIGKILL)


async def test_broken_weights_say_where_to_look(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    async with running(broken, tmp_path) as (engine, _):
        with pytest.raises(
            ModelUnavailable, match=r"exited with code .* while starting.*engine\.log"
        ):
            await engine.wait_ready()


def test_it_dies_with_a_parent_that_is_killed(tiny: Path, tmp_path: Path) -> None:
    script = """
import anyio, sys
from pathlib import Path
from deskhand.models.engine import Engine, EngineFiles
async def main():
    engine = Engine(EngineFiles(Path(sys.argv[1]), Path(sys.argv[2])), warmup=False, threads=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.run)
        print((await engine.wait_ready()).pid, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""
    words = [sys.executable, "-c", script, str(tiny), str(tmp_path / "engine.log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    anyio.run(until_gone, pid)


async def test_grammars_bind_even_a_model_that_talks_nonsense(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (_, model):
        shim = Shim(model)
        for slot in range(len(PROMPTS)):
            await shim.fill(slot)
        assert await shim._classify_request("hello") in REQUEST_KINDS
        words = msgspec.Raw(b'{"grammar":"root ::= \\"tea\\" | \\"rice\\"","id_slot":1}')
        request = Request("", (), ASKED, (), 8, temperature=0.0, extra=words)
        (text,) = [i.message.text async for i in model.reply(request) if isinstance(i, Reply)]
        assert text in ("tea", "rice")
        form = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}
        bound = {"type": "json_schema", "json_schema": {"name": "x", "schema": form}}
        extra = msgspec.Raw(msgspec.json.encode({"response_format": bound, "id_slot": 0}))
        request = Request("", (), ASKED, (), 60, temperature=0.0, extra=extra)
        (text,) = [i.message.text async for i in model.reply(request) if isinstance(i, Reply)]
        assert msgspec.json.decode(text)["n"] in (1, 2)


async def test_the_protocol_holds_whatever_it_says(tiny: Path, tmp_path: Path) -> None:
    async with running(tiny, tmp_path) as (_, model):
        items = [item async for item in Shim(model).reply(Request("", (), ASKED, TOOLS))]
    last = items[-1]
    assert isinstance(last, Reply)
    for call in last.message.calls:
        assert call.name in {tool.name for tool in TOOLS} and isinstance(
            msgspec.json.decode(call.arguments), dict
        )
    assert last.message.calls or last.message.text


async def test_a_failed_greeting_does_no_harm(tiny: Path, tmp_path: Path) -> None:
    async def greet() -> None:
        raise ModelKeyRefused

    engine = Engine(EngineFiles(tiny, tmp_path / "log"), greet, warmup=False, threads=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.run)
        assert await engine.wait_ready()
        await anyio.sleep(0.1)
        assert await engine.wait_ready()
        tasks.cancel_scope.cancel()
    assert issubclass(ModelKeyRefused, ModelError)


async def first_answer(tiny: Path, folder: Path) -> tuple[int, int]:
    """(tokens that were read from the cache, all tokens) of the first main call of a new life. It
    is made at once."""
    slots = folder / "slots"
    engine = Engine(
        EngineFiles(tiny, folder / "engine.log", slots),
        lambda: prefixes.warm(),
        warmup=False,
        threads=1,
    )
    async with (
        Transport(TransportLimits(), keep=False) as transport,
        anyio.create_task_group() as tasks,
    ):
        prefixes = Prefixes(engine, transport, slots, tiny)
        tasks.start_soon(engine.run)
        model = EngineModel(engine, transport, "tiny", Facts(window=4096))
        extra = msgspec.Raw(b'{"id_slot":0}')
        request = Request("", (FILES_PROMPT.system,), ASKED, (), 4, extra=extra)
        found = [item async for item in model.reply(request)]
        for slot in range(3):
            await engine.wait_warm(slot)
        tasks.cancel_scope.cancel()
    last = found[-1]
    assert isinstance(last, Reply)
    return last.usage.cached_tokens, last.usage.input_tokens


async def test_what_was_read_is_kept_for_the_next_life(tiny: Path, tmp_path: Path) -> None:
    cached, whole = await first_answer(tiny, tmp_path)
    assert cached > 0.9 * whole, (
        "it waited for the slot, instead of reading the prompt a second time"
    )
    saved = sorted((tmp_path / "slots").iterdir())
    assert len(saved) == 3 and all(path.name.startswith("tiny-") for path in saved)
    times = [path.stat().st_mtime_ns for path in saved]
    cached, whole = await first_answer(tiny, tmp_path)
    assert cached > 0.9 * whole
    assert [path.stat().st_mtime_ns for path in saved] == times
    saved[0].write_bytes(b"broken")
    await first_answer(tiny, tmp_path)
    assert saved[0].stat().st_size > 1000


async def test_nothing_of_a_person_is_saved(tiny: Path, tmp_path: Path) -> None:
    """A slot's file begins with its tokens: those of the prompt and `hello`, and none of the
    request's."""
    await first_answer(tiny, tmp_path)
    alone = {path.name: path.stat().st_size for path in (tmp_path / "slots").iterdir()}
    engine = Engine(
        EngineFiles(tiny, tmp_path / "log", tmp_path / "other"),
        lambda: prefixes.warm(),
        warmup=False,
        threads=1,
    )
    async with (
        Transport(TransportLimits(), keep=False) as transport,
        anyio.create_task_group() as tasks,
    ):
        prefixes = Prefixes(engine, transport, tmp_path / "other", tiny)
        engine.request_start()
        tasks.start_soon(engine.run)
        await engine.wait_ready()
        for slot in range(3):
            await engine.wait_warm(slot)
        tasks.cancel_scope.cancel()
    assert {path.name: path.stat().st_size for path in (tmp_path / "other").iterdir()} == alone


def test_threads() -> None:
    assert [choose_threads(cores) for cores in (0, 1, 2, 4, 64)] == [1, 1, 2, 4, 8]
