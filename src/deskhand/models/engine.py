"""The embedded engine as a process of its own: started when it is first needed, watched, ended with
us."""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.abc
import msgspec

from ..types.errors import ModelError, ModelUnavailable
from ..types.folders import make_private_folder
from .base import Item, Model, Request
from .openai import OpenAIModel
from .settings import Facts, ModelSpec
from .transport import Transport

READY_S = 180.0
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
STABLE_S = 60.0
"""After running this long, a death counts as the first one again."""
LOG_BYTES = 1 << 20
STOP_S = 2.0
MAX_THREADS = 8
SLOTS = 3
CONTEXT_TOKENS = 12288


class EngineFiles(msgspec.Struct, frozen=True):
    """What the engine reads and writes: the weights, the log of its own output, and a folder for
    what it has read (None: it keeps nothing)."""

    weights: Path
    log: Path
    slots: Path | None = None


class Serving(msgspec.Struct, frozen=True):
    """An engine that answers. `token` is a secret; `pid` its process."""

    base_url: str
    token: str
    pid: int

    def __repr__(self) -> str:
        return f"Serving({self.base_url}, pid {self.pid})"


def choose_threads(cores: int) -> int:
    """How many threads to compute with. More than eight wait for memory."""
    return max(1, min(cores, MAX_THREADS))


def is_installed() -> bool:
    """Whether the extra `[local]` is here. It is never loaded into this process."""
    return importlib.util.find_spec("xllamacpp") is not None


class Engine:
    """One engine process. `run` keeps it alive in the caller's task group; `serving` waits until it
    answers.

    `greet` is called each time that it has come up: to fill its slots. Until it says `warm(slot)`,
    or has ended, other calls wait for that slot: they would have to read the same prompt.
    """

    def __init__(
        self,
        files: EngineFiles,
        greet: Callable[[], Awaitable[None]] | None = None,
        *,
        warmup: bool = True,
        threads: int = 0,
    ) -> None:
        self._files = files
        self._greet = greet
        self._warmup = warmup
        self._threads = threads or choose_threads(len(os.sched_getaffinity(0)))
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._serving: Serving | None = None
        self._failed = ""
        self._cold: dict[int, anyio.Event] = {}
        self.starts = 0

    async def run(self) -> None:
        """Start the engine when it is first wanted, and start it again when it dies, for ever."""
        await self._wanted.wait()
        deaths = 0
        while True:
            began = anyio.current_time()
            try:
                await self._run_process()
            except ModelUnavailable as error:
                self._failed = str(error)
            finally:
                self._serving = None
                self._notify()
            if anyio.current_time() - began > STABLE_S:
                deaths = 0
            await anyio.sleep(BACKOFF_S[min(deaths, len(BACKOFF_S) - 1)])
            deaths += 1

    def request_start(self) -> None:
        """Start now, though nobody waits yet."""
        self._wanted.set()

    async def wait_ready(self) -> Serving:
        """The engine, once it answers. Raises ModelUnavailable if it does not come up."""
        self.request_start()
        starts = self.starts
        self._failed = ""
        try:
            with anyio.fail_after(READY_S):
                while self._serving is None:
                    if self._failed and self.starts > starts:
                        raise ModelUnavailable(self._failed)
                    await self._changed.wait()
        except TimeoutError as error:
            why = self._describe_failure(f"was not ready after {READY_S:.0f} s")
            raise ModelUnavailable(why) from error
        return self._serving

    async def wait_warm(self, slot: int) -> None:
        """Wait until nobody fills this slot."""
        if event := self._cold.get(slot):
            await event.wait()

    def mark_warm(self, slot: int) -> None:
        """The slot may be used."""
        if event := self._cold.pop(slot, None):
            event.set()

    async def _run_process(self) -> None:
        """One life of the process. Raises ModelUnavailable where it never came up."""
        token = secrets.token_urlsafe(24)
        make_private_folder(self._files.log.parent)
        self._rotate_log()
        with self._files.log.open("ab") as log:
            # -P: a folder in which somebody starts us is no place to import from
            command = [sys.executable, "-P", "-m", "deskhand.models.engine_main"]
            process = await anyio.open_process(command, stderr=log)
        self.starts += 1
        try:
            address = await self._handshake(process, token)
            if self._greet is not None:
                self._cold = {slot: anyio.Event() for slot in range(SLOTS)}
            self._serving = Serving(f"{address}/v1", token, process.pid)
            self._failed = ""
            self._notify()
            async with anyio.create_task_group() as tasks:
                if self._greet is not None:
                    tasks.start_soon(self._warm_slots)
                await process.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._serving = None
            with anyio.CancelScope(shield=True):
                await _stop_process(process)

    async def _handshake(self, process: anyio.abc.Process, token: str) -> str:
        """Hand over the settings and wait for the address."""
        if slots := self._files.slots:
            make_private_folder(slots)
        settings = {
            "slots_folder": f"{slots}/" if slots else "",
            "model": str(self._files.weights),
            "token": token,
            "context": CONTEXT_TOKENS,
            "slots": SLOTS,
            "threads": self._threads,
            "warmup": self._warmup,
        }
        assert process.stdin is not None and process.stdout is not None
        said = b""
        try:
            with anyio.fail_after(READY_S):
                await process.stdin.send(msgspec.json.encode(settings) + b"\n")
                while not said.endswith(b"\n"):
                    said += await process.stdout.receive(4096)
        except TimeoutError:
            why = self._describe_failure(f"was not ready after {READY_S:.0f} s")
            raise ModelUnavailable(why) from None
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            code = await process.wait()
            why = self._describe_failure(f"exited with code {code} while starting")
            raise ModelUnavailable(why) from None
        return said.decode().strip().splitlines()[-1]

    async def _warm_slots(self) -> None:
        """Fill the caches; if the engine dies or fails meanwhile, the next start does it."""
        assert self._greet is not None
        try:
            await self._greet()
        except ModelError:
            return
        finally:
            for slot in range(SLOTS):
                self.mark_warm(slot)

    def _describe_failure(self, what: str) -> str:
        log = self._files.log
        try:
            last = log.read_text(errors="replace").strip().splitlines()[-1][:200]
        except (OSError, IndexError):
            last = ""
        said = f": {last!r}" if last else ""
        return f"The embedded engine {what}{said}. Its log is {str(log)!r}."

    def _rotate_log(self) -> None:
        log = self._files.log
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".old"))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _stop_process(process: anyio.abc.Process) -> None:
    """Close its input, which ends it; insist if it does not listen."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(STOP_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    await process.aclose()


class _Pinned(msgspec.Struct):
    id_slot: int = -1


class EngineModel:
    """The engine's one model on the OpenAI wire. `early` calls do not wait for warm slots: they
    warm them."""

    def __init__(
        self, engine: Engine, transport: Transport, name: str, facts: Facts, *, early: bool = False
    ) -> None:
        self._engine = engine
        self._transport = transport
        self._early = early
        self._name = name
        self._facts = facts

    async def reply(self, request: Request) -> AsyncGenerator[Item, None]:
        """See Model.reply. Waits for the engine to come up."""
        serving = await self._engine.wait_ready()
        if request.extra is not None and not self._early:
            slot = msgspec.json.decode(request.extra, type=_Pinned).id_slot
            await self._engine.wait_warm(slot)
        spec = ModelSpec("embedded", self._name, serving.base_url, self._facts, key=serving.token)
        async with aclosing(OpenAIModel(self._transport, spec).reply(request)) as items:
            async for item in items:
                yield item


_: type[Model] = EngineModel
