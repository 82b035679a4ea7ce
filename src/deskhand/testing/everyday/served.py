"""A fresh home with `deskhand serve` in it as a process, and one conversation with it over the HTTP
API."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, StreamReader  # noqa: TID251 -- loopback

from ...config.config import environment_of
from .processes import ProcessWatch
from .task import JobState

START_S = 90.0
WARM_S = 600.0
"""So long a start may take to read its prompts; then the clock runs all the same."""
STOP_S = 30.0
LOOK_S = 0.2
REACH_S = 30.0
UNKNOWING = "I do not know."
NAME = "everyday"
TOO_LONG = "too long"
BROKEN = "broken"
_SILENT = frozenset({"message_received", "recalled", "hinted"})
"""Events that no person takes for a sign of work."""


class HarnessError(Exception):
    """The served Deskhand could not be measured."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What is served: `python` is the interpreter whose `deskhand` it is, `cache` where the weights
    lie, `config` what its configuration says besides, `defaults` what that says of all agents."""

    model: str
    cache: Path
    python: str = sys.executable
    config: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    turn_s: float = 180.0


class ServedTurn(msgspec.Struct):
    """One message and what came of it. `ended` is why the turn ended, in the words of its event, or
    what went wrong. `first_s` is the time to the first visible sign of work, None where there was
    none."""

    reply: str = ""
    ended: str = ""
    seconds: float = 0.0
    first_s: float | None = None
    approvals: list[str] = []
    questions: list[str] = []
    model_calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0

    @property
    def cut_off(self) -> bool:
        """It took too long, or could not be followed."""
        return self.ended == TOO_LONG or self.ended.startswith(BROKEN)


class Served:
    """A Deskhand that runs. Everything goes through what is public: its commands and its API."""

    def __init__(self, setup: Setup, place: Path) -> None:
        self._setup = setup
        self.home = place / ".deskhand"
        self.workspace = place / "work"
        self._place = place
        self._http: ClientSession | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Served]:
        """Start it, wait until it is warm, and stop it in any case. Raises HarnessError if it does
        not come up."""
        self._write_config()
        token = await self._command("tokens", "create", "everyday")
        process = await self._start()
        try:
            url = await self._address(process)
            headers = {"authorization": f"Bearer {token.strip()}"}
            timeout = ClientTimeout(total=None, sock_connect=REACH_S)
            async with ClientSession(url, headers=headers, timeout=timeout) as self._http:
                await self._warm(process)
                yield self
        finally:
            await _stop(process)

    async def say(self, text: str, agrees: bool) -> ServedTurn:
        """Send a message as its person, answer what is asked, and wait until the turn has ended."""
        turn = ServedTurn()
        began = anyio.current_time()
        try:
            receipt = await self._call("POST", f"/api/sessions/{NAME}/messages", {"text": text})
            with anyio.move_on_after(self._setup.turn_s) as limit:
                await self._follow(turn, receipt, began, agrees)
            if limit.cancelled_caught:
                turn.ended = TOO_LONG
                await self._call("POST", f"/api/sessions/{NAME}/stop")
        except (ClientError, OSError, TimeoutError, HarnessError) as error:
            turn.ended = f"{BROKEN}: {error!r}"
        turn.seconds = anyio.current_time() - began
        return turn

    async def jobs(self) -> tuple[JobState, ...]:
        """The jobs that somebody made, with the words that they say."""
        found = []
        for each in await self._call("GET", "/api/jobs"):
            if not each.get("builtin"):
                whole = await self._call("GET", f"/api/jobs/{each['name']}")
                plan = (each["schedule"], whole["prompt"], each["next_at"], each["enabled"])
                found.append(JobState(each["name"], *plan))
        return tuple(found)

    async def memories(self) -> tuple[str, ...]:
        """What is remembered: as the command lists it, and what stands in the agent's own notes."""
        listed = msgspec.json.decode(await self._command("memories", "list", "--json"))
        notes = [*self.workspace.glob("memory/**/*.md"), *self.workspace.glob("MEMORY.md")]
        lines = [
            line
            for note in notes
            for line in note.read_text(errors="replace").splitlines()
            if line.strip()
        ]
        return (*(str(fact["text"]) for fact in listed), *lines)

    # the process

    @property
    def _environment(self) -> dict[str, str]:
        usual = environment_of()
        return {
            "PATH": usual.get("PATH", ""),
            "HOME": str(self._place),
            "DESKHAND_HOME": str(self.home),
            "DESKHAND_CACHE": str(self._setup.cache),
            "TZ": "UTC",
        }

    def _write_config(self) -> None:
        self.home.mkdir(parents=True)
        self.workspace.mkdir(exist_ok=True)
        config = {
            "defaults": {"models": [self._setup.model], "workspace": str(self.workspace)}
            | self._setup.defaults,
            "timezone": "UTC",
            "web": {"port": _free_port()},
        }
        (self.home / "deskhand.yaml").write_bytes(
            msgspec.json.encode(config | self._setup.config)
        )  # JSON is YAML

    async def _start(self) -> anyio.abc.Process:
        log = (self._place / "serve.log").open("wb")
        with log:
            return await anyio.open_process(
                [*_dies_with_us(), self._setup.python, "-m", "deskhand", "serve"],
                env=self._environment,
                cwd=self._place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl+C is ours: we end it in good order
            )

    async def _command(self, *args: str) -> str:
        argv = [self._setup.python, "-m", "deskhand", *args]
        ended = await anyio.run_process(argv, env=self._environment, cwd=self._place, check=False)
        if ended.returncode:
            raise HarnessError(
                f"`deskhand {' '.join(args)}` failed: "
                f"{ended.stderr.decode(errors='replace')[-500:]}"
            )
        return ended.stdout.decode()

    async def _address(self, process: anyio.abc.Process) -> str:
        """Where its page is, as soon as it drives."""
        noted = self.home / "state" / "web.json"
        drives = self.home / "state" / "last_start"
        with anyio.move_on_after(START_S):
            while process.returncode is None:
                if drives.exists() and noted.exists():
                    with suppress(ValueError, KeyError):  # it is being written
                        return str(msgspec.json.decode(noted.read_bytes())["url"])
                await anyio.sleep(0.05)
        log = (self._place / "serve.log").read_text(errors="replace")
        raise HarnessError(f"`deskhand serve` did not come up: {log[-1000:]}")

    async def _warm(self, process: anyio.abc.Process) -> None:
        """Until it is healthy and has nothing more to do by itself, such as reading its prompts
        ahead."""
        engine = self.home / "logs" / "engine.log"
        watch = ProcessWatch(process.pid)
        with anyio.move_on_after(WARM_S):
            while (await self._call("GET", "/health"))["status"] == "starting":  # noqa: ASYNC110 -- another process
                await anyio.sleep(LOOK_S)
            while self._setup.model.startswith("embedded/") and not engine.exists():  # noqa: ASYNC110 -- the same
                await anyio.sleep(LOOK_S)
            await watch.until_idle()

    # the conversation

    async def _follow(
        self, turn: ServedTurn, receipt: dict[str, Any], began: float, agrees: bool
    ) -> None:
        address = f"/api/sessions/{NAME}/events?after={receipt['after']}"
        async with self._session.get(address) as response:
            if response.status != 200:
                raise HarnessError(f"{address} was answered with {response.status}")
            async with aclosing(_frames(response.content)) as frames:
                async for kind, item in frames:
                    event = item.get("event", {})
                    if turn.first_s is None and (
                        kind == "progress" or event.get("type") not in _SILENT
                    ):
                        turn.first_s = anyio.current_time() - began
                    if kind == "closed":
                        raise HarnessError(f"the stream was closed: {item}")
                    await self._answer(turn, event, agrees)
                    if _took(turn, event, receipt["inbox_id"]):
                        return
        raise HarnessError("the stream ended before the turn did")

    async def _answer(self, turn: ServedTurn, event: dict[str, Any], agrees: bool) -> None:
        if event.get("type") == "approval_asked":
            turn.approvals.append(f"{event['question']} {event.get('about', '')}".strip())
            await self._choose(event["ask_id"], "once" if agrees else "no")
        elif event.get("type") == "question_asked":
            turn.questions.append(event["question"])
            await self._choose(event["ask_id"], UNKNOWING)

    async def _choose(self, ask: str, choice: str) -> None:
        await self._call("POST", f"/api/sessions/{NAME}/asks/{ask}", {"choice": choice})

    @property
    def _session(self) -> ClientSession:
        if self._http is None:
            raise HarnessError("it does not run")
        return self._http

    async def _call(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        with anyio.fail_after(REACH_S):
            async with self._session.request(method, path, json=body) as response:
                answer = await response.read()
        if response.status >= 400:
            raise HarnessError(
                f"{method} {path} was answered with {response.status}: {answer[:300]!r}"
            )
        return msgspec.json.decode(answer) if answer else None


def link_cache(usual: Path, place: Path) -> None:
    """Make `place` a cache with the same weights. What an engine keeps beside them of its prompts
    is left out: two versions of Deskhand would each remove what the other has written."""
    (place / "models").mkdir(parents=True)
    for weights in usual.glob("models/*.gguf"):
        (place / "models" / weights.name).symlink_to(weights.resolve())
    for other in usual.glob("*"):
        if other.name != "models":
            (place / other.name).symlink_to(other.resolve())


def _took(turn: ServedTurn, event: dict[str, Any], inbox_id: int) -> bool:
    """Take in an event. Whether the turn of this message is over."""
    kind = event.get("type")
    if kind in ("model_replied", "asked_aside"):
        usage = event.get("usage", {})
        turn.model_calls += 1
        turn.tokens_in += usage.get("input_tokens", 0)
        turn.tokens_cached += usage.get("cached_tokens", 0)
        turn.tokens_out += usage.get("output_tokens", 0)
    if kind == "model_replied":
        turn.reply = _text(event["message"]) or turn.reply
    if kind == "turn_ended" and inbox_id in event.get("answers", ()):
        turn.reply = event.get("said") or turn.reply
        turn.ended = event["reason"]
        return True
    return False


def _text(message: dict[str, Any]) -> str:
    parts = message.get("parts", ())
    return "".join(part.get("text", "") for part in parts if part.get("type") == "text").strip()


async def _frames(content: StreamReader) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    """The events of a stream, as their kinds and their data."""
    rest = b""
    async for chunk in content.iter_any():
        *frames, rest = (rest + chunk).split(b"\n\n")
        for frame in frames:
            fields = dict(
                line.partition(b": ")[::2]
                for line in frame.split(b"\n")
                if not line.startswith(b":")
            )
            if b"event" in fields:
                yield fields[b"event"].decode(), msgspec.json.decode(fields[b"data"])


def _dies_with_us() -> tuple[str, ...]:
    """What a command is begun with so that it is told to end should we be killed, where the system
    has that."""
    return ("setpriv", "--pdeathsig", "TERM", "--") if shutil.which("setpriv") else ()


async def _stop(process: anyio.abc.Process) -> None:
    """End it as a person would, and at once if it does not end."""
    with anyio.CancelScope(shield=True):
        watch = ProcessWatch(process.pid)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()
        with anyio.move_on_after(STOP_S):
            await process.wait()
        if process.returncode is None:
            watch.signal_all(signal.SIGKILL)
            await process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
