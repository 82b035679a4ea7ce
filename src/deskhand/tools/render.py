"""The rendered tier of `web_fetch`: Chromium shows the page, in our sandbox, with no way out but
the guarded proxy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec

from ..net.client import Fetched
from ..net.url import Url, parse_url
from ..sandbox.base import Exit, Mount, SandboxCommand
from ..sandbox.supervisor import RELAY_PORT
from ..types.errors import NetError, SandboxError, ToolError
from .base import Context
from .command_network import NetworkUser
from .convert import make_python_command
from .documents.browser import MAX_HTML_CHARS
from .web import Wish

BROWSER_PATHS = (
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
INSTALL_COMMAND = "sudo apt-get install chromium"
MEMORY_BYTES = 1_500 << 20
MAX_PROCESSES = 400
"""Threads count, and a browser has many."""
MAX_CONCURRENT = 2
_PROXY_STATUSES = (400, 403, 502)
MAX_ANSWER_BYTES = 4 * MAX_HTML_CHARS + (1 << 16)


class _Answer(msgspec.Struct, frozen=True):
    """What the program in the sandbox says; the page may have taken it over, so its shape and size
    are checked."""

    url: str = ""
    status: int = 0
    html: str = ""
    notes: list[str] = []
    failed: str = ""


def find_browser(programs: Sequence[str] = BROWSER_PATHS) -> str:
    """The Chromium of this machine; '' for none."""
    return next((each for each in programs if os.access(each, os.X_OK)), "")


class Rendered:
    """A tier of `web_fetch`: for an agent at most AT_ONCE browsers run. Each shows one page, in a
    profile that goes with it."""

    def __init__(self, find: Callable[[], str] = find_browser) -> None:
        self._find = find
        self._slots = anyio.Semaphore(MAX_CONCURRENT)

    async def __call__(self, url: Url, wish: Wish, context: Context) -> Fetched:
        """The page as its scripts left it. Raises NetError, ToolError."""
        program = self._find()
        if not program:
            raise ToolError(
                "pages are rendered by Chromium, which is not installed on this machine: "
                f"{INSTALL_COMMAND}"
            )
        await context.reach.net.resolve_host(
            url.host, url.port
        )  # says why at once, where it may not be reached
        async with self._slots:
            answer, refused = await self._render(program, url, wish, context)
        last = parse_url(answer.url) if answer.url else url
        if last.host in refused and (answer.failed or answer.status in _PROXY_STATUSES):
            raise NetError(f"{last.origin} is not fetched: {refused[last.host].rstrip('.')}.")
        if answer.failed:
            raise NetError(f"{url} could not be rendered: {answer.failed[:300]}.")
        if len(answer.html) > MAX_HTML_CHARS or not 100 <= answer.status < 600:
            raise NetError(
                f"{url} could not be rendered: the answer of the browser could not be understood."
            )
        headers = {"content-type": "text/html; charset=utf-8"}
        return Fetched(last, answer.status, headers, answer.html.encode("utf-8", "replace"))

    async def _render(
        self, program: str, url: Url, wish: Wish, context: Context
    ) -> tuple[_Answer, dict[str, str]]:
        sandbox = await context.reach.host.open_sandbox()
        if not sandbox.has_egress:
            raise ToolError(
                "pages are only rendered in the bubblewrap sandbox: sudo apt-get install bubblewrap"
            )
        said = bytearray()
        network_user = NetworkUser(
            context.session, context.agent, context.principal, context.label, public=True
        )
        async with context.reach.host.open_network(network_user) as network:
            with anyio.CancelScope() as enough:

                def on_output(piece: bytes, is_error: bool) -> None:
                    if not is_error and len(said) + len(piece) > MAX_ANSWER_BYTES:
                        enough.cancel()
                    elif not is_error:
                        said.extend(piece)

                try:
                    ended = await sandbox.run(
                        _make_command(program, url, wish, network.path), on_output
                    )
                except SandboxError as error:
                    raise ToolError(
                        f"{url} was not rendered, because pages are only rendered in the "
                        f"sandbox: {error}"
                    ) from error
        if enough.cancelled_caught:
            raise NetError(
                f"{url} could not be rendered: it is larger than {MAX_HTML_CHARS // 1_000_000} MB."
            )
        try:
            return msgspec.json.decode(bytes(said), type=_Answer), network.refused
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise NetError(
                f"{url} could not be rendered: {_describe_failure(ended, wish)}."
            ) from None


def _make_command(program: str, url: Url, wish: Wish, egress: str) -> SandboxCommand:
    asked = {
        "url": str(url),
        "program": program,
        "proxy": f"http://127.0.0.1:{RELAY_PORT}",
        "wait_s": wish.wait_s,
        "time_s": wish.timeout_s + wish.wait_s,
    }
    command = make_python_command(
        "deskhand.tools.documents.browser", msgspec.json.encode(asked) + b"\n"
    )
    beside = () if program.startswith("/usr/") else (Mount(str(Path(program).parent)),)
    return msgspec.structs.replace(
        command,
        mounts=(*command.mounts, *beside),
        env=(("DBUS_SESSION_BUS_ADDRESS", "disabled:"), ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")),
        timeout_s=wish.timeout_s + wish.wait_s + 5,
        memory_bytes=MEMORY_BYTES,
        file_bytes=64 << 20,
        processes=MAX_PROCESSES,
        egress=egress,
    )


def _describe_failure(ended: Exit, wish: Wish) -> str:
    if ended.limit == "memory":
        return f"the page needs more than {MEMORY_BYTES >> 20} MB of memory"
    if ended.limit == "processes":
        return "the page started too many processes"
    if ended.timeout:
        return f"it was not finished after {wish.timeout_s + wish.wait_s:.0f} s"
    return "the browser crashed; nothing else was affected"
