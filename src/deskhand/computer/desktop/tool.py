"""`desktop`: the windows of this machine for the model, one action a call."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ...tools.base import CallPreview, Context, Done, Outcome, Spec, call_label
from ...tools.define import decode_arguments, make_schema
from ...tools.label_marks import OWNER_READERS
from ...tools.output import make_bounded_result
from ...types.effects import Effect
from ...types.errors import ToolError
from ...types.identity import Address
from ...types.labels import Label, join_labels
from ...types.messages import Image, ResultPart, Text, clean_text
from ...types.options import SessionOptions
from ..elements import describe, find_elements, list_paths, quote
from ..snapshot import render_changes, render_element, render_snapshot
from .desktop import Desktop
from .host import DesktopHost
from .picture import encode_picture
from .windows import Window

DESKTOP = "desktop"
SOURCE = "desktop:"
"""So begins the source of what a program shows; its name follows."""
MAX_FOUND = 30
MAX_WAIT_S = 60.0
MAX_TYPED_CHARS = 20_000

Action = Literal[
    "windows",
    "look",
    "find",
    "press",
    "type",
    "keys",
    "focus",
    "wait",
    "screenshot",
    "launch",
    "use_app",
]
_LOOKING = frozenset(("windows", "look", "find", "wait", "screenshot"))


class DesktopArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Action
    ref: Annotated[str, msgspec.Meta(description="the element, such as e12")] = ""
    window: Annotated[str, msgspec.Meta(description="words of its program or title")] = ""
    text: Annotated[
        str, msgspec.Meta(description="to type; to wait for; words in a name to find")
    ] = ""
    append: Annotated[bool, msgspec.Meta(description="type: keep what is there")] = False
    keys: Annotated[str, msgspec.Meta(description="ctrl+s, Enter, Down Down")] = ""
    role: Annotated[str, msgspec.Meta(description="find: button, textbox, menuitem …")] = ""
    app: Annotated[
        str, msgspec.Meta(description="launch: the program; use_app: the one to be allowed")
    ] = ""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 10.0


_DESCRIPTION = (
    "Use the windows of this machine: list windows; look at one; find; press (click) or type into "
    "a ref; keys in a window; focus a window; wait for a text; screenshot; launch a program. Each "
    "action tells what has changed. Ask once for a program with use_app, so that not each action "
    "is asked about."
)


class DesktopTool:
    """One for all agents."""

    spec = Spec(
        DESKTOP,
        _DESCRIPTION,
        make_schema(DesktopArguments),
        "host",
        "never",
        timeout_s=2 * MAX_WAIT_S,
    )

    def __init__(self, host: DesktopHost) -> None:
        self._host = host

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, DesktopArguments, DESKTOP)
        except ToolError:
            return "none"  # it will not be done
        return "none" if given.action in _LOOKING else "host"

    def preview(
        self, arguments: msgspec.Raw, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        """What a person is to be asked: which element of which window, as it was last seen. Free
        are actions in a program that this conversation may use, while it has read of nothing
        else from outside."""
        try:
            given = decode_arguments(arguments, DesktopArguments, DESKTOP)
        except ToolError:
            return None
        if given.action in (*_LOOKING, "launch", "use_app"):
            return None
        desktop = self._host.peek()
        if desktop is None:
            return CallPreview("host")
        seen = desktop.peek(given.ref) if given.ref else None
        window = seen[1] if seen is not None else desktop.current
        if given.window:
            named = [
                each
                for each in desktop.windows
                if given.window.casefold() in each.shown_name.casefold()
            ]
            window = named[0] if len(named) == 1 else None
        if window is None:
            return CallPreview("host")
        shown = f"in the window {quote(window.shown_name)}"
        if seen is not None:
            shown = f"{describe(seen[0])} {shown}"
        is_free = SOURCE + window.app in (options.trust or ()) and label.integrity != "untrusted"
        return CallPreview("local_write" if is_free else "host", shown)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, DesktopArguments, DESKTOP)
        if "owner" not in context.principal.roles:
            raise ToolError("only an owner may have the desktop used: it is theirs")
        if given.action == "use_app":
            return _allow_app(_need(given.app, "app"), context)
        desktop = await self._host.open()
        async with self._host.lock:
            return await _Step(self._host, desktop, context).do(given)


def _allow_app(app: str, context: Context) -> Done:
    trust = tuple(dict.fromkeys((*(context.options.trust or ()), SOURCE + clean_text(app.strip()))))
    said = f"{quote(app)} may be used in this conversation, and what it shows is believed here"
    return Done((Text(said, call_label(context)),), options=SessionOptions(trust=trust))


class _Step:
    """One action."""

    def __init__(self, host: DesktopHost, desktop: Desktop, context: Context) -> None:
        self._host = host
        self._desktop = desktop
        self._context = context
        self._notes: list[str] = []

    async def do(self, given: DesktopArguments) -> Outcome:
        """Do it, and tell what is shown then."""
        desktop = self._desktop
        match given.action:
            case "windows":
                await desktop.list_windows()
                return await self._finish("", listed=True)
            case "look":
                window = await self._choose_window(given)
                root = await desktop.look(window)
                desktop.remember_lines()
                if not given.ref:
                    return await self._finish(render_snapshot(root))
                seen = desktop.peek(given.ref)
                if seen is None:
                    raise ToolError(f"there is no {given.ref[:20]!r} now: look again")
                return await self._finish(f"{render_element(seen[0])}\n{render_snapshot(seen[0])}")
            case "find":
                await desktop.look(await self._choose_window(given))
                return await self._finish(self._render_found(given))
            case "screenshot":
                return await self._take_screenshot()
            case _:
                return await self._finish(await self._act(given))

    async def _act(self, given: DesktopArguments) -> str:
        """Do what changes something; what has changed, with a word where it goes in circles."""
        mark = msgspec.json.encode(given).decode()
        try:
            await self._change(given)
            changes = await self._show_changes()
        except ToolError as error:
            said = self._desktop.repeats.add(mark, self._state, failed=True)
            raise type(error)("; ".join([str(error), *said])) from error
        self._notes += self._desktop.repeats.add(mark, self._state)
        return changes

    @property
    def _state(self) -> str:
        """What is shown, as far as a later look can be compared with it."""
        lines = "\n".join(each.text for each in self._desktop.lines)
        return sha256(lines.encode()).hexdigest()

    async def _choose_window(self, given: DesktopArguments) -> Window | None:
        if given.window or self._desktop.current is None:
            return await self._desktop.find_window(given.window)
        await self._desktop.list_windows()
        keys = {each.key for each in self._desktop.windows}
        return self._desktop.current if self._desktop.current.key in keys else None

    async def _change(self, given: DesktopArguments) -> None:
        desktop = self._desktop
        match given.action:
            case "press":
                how = await desktop.press(_need(given.ref, "ref"))
                self._notes.append(f"done {how}")
            case "type":
                if len(given.text) > MAX_TYPED_CHARS:
                    raise ToolError(f"at most {MAX_TYPED_CHARS:,} characters are typed at once")
                how = await desktop.type_text(
                    _need(given.ref, "ref"), given.text, append=given.append
                )
                self._notes.append(how)
            case "keys":
                window = await self._choose_window(given)
                await desktop.press_keys(_need(given.keys, "keys"), window)
            case "focus":
                await desktop.raise_window(await desktop.find_window(_need(given.window, "window")))
            case "launch":
                await self._launch(_need(given.app, "app"))
            case "wait":
                await self._wait(given)
            case _:
                raise ToolError(f"there is no action {given.action!r}")

    async def _launch(self, app: str) -> None:
        """Start a program on the desktop, and wait for its window."""
        await self._desktop.list_windows()
        await self._host.launch(app.split())
        with anyio.move_on_after(MAX_WAIT_S / 3):
            while not (new := await self._desktop.list_windows()):  # noqa: ASYNC110
                await anyio.sleep(0.2)
            self._desktop.current = new[-1]
            await self._desktop.settle()
            return
        self._notes.append("it has shown no window yet")

    async def _wait(self, given: DesktopArguments) -> None:
        window = await self._choose_window(given)
        if not given.text:
            await anyio.sleep(given.seconds)
            return
        wanted = " ".join(given.text.casefold().split())
        with anyio.move_on_after(given.seconds) as limit:
            while True:
                shown = (await self._desktop.look(window)).walk()
                if any(wanted in " ".join(f"{e.name} {e.value}".casefold().split()) for e in shown):
                    return
                await anyio.sleep(0.2)
        if limit.cancelled_caught:
            self._notes.append(f"{quote(given.text[:80])} has not come in {given.seconds:.0f} s")

    # What is told

    def _render_found(self, given: DesktopArguments) -> str:
        root = self._desktop.root
        found = find_elements(root, given.role, given.text)
        lines = []
        for element, path in zip(
            found[:MAX_FOUND], list_paths(root, found[:MAX_FOUND]), strict=True
        ):
            where = " in ".join(f"{each.role} {quote(each.name[:60])}" for each in path[:0:-1][:3])
            lines.append(render_element(element) + (f" in {where}" if where else ""))
        if len(found) > MAX_FOUND:
            lines.append(f"… {len(found) - MAX_FOUND:,} more")
        return "\n".join(lines) or "nothing has this role and these words in its name"

    async def _show_changes(self) -> str:
        desktop = self._desktop
        for window in await desktop.list_windows():
            self._notes.append(f"new window: {quote(window.shown_name)}")
        keys = {each.key for each in desktop.windows}
        if desktop.current is None or desktop.current.key not in keys:
            self._notes.append("the window is closed")
            desktop.current = None
            return ""
        root = await desktop.look()
        before = desktop.remember_lines()
        if not before:
            return render_snapshot(root)
        return render_changes(before, desktop.lines) or "nothing has changed"

    async def _finish(self, text: str, *, listed: bool = False) -> Done:
        desktop = self._desktop
        window = desktop.current
        lines = [f"[window {quote(window.shown_name)}]"] if window is not None else []
        lines += [f"[{each}]" for each in self._notes]
        if listed or window is None:
            names = (
                f"{quote(each.shown_name)}{' active' if each.is_active else ''}"
                for each in desktop.windows
            )
            lines = [*lines[1:], "windows:", *names]
        shown = "\n".join([*lines, text]).rstrip()
        return await make_bounded_result(shown, self._context, self._label(listed=listed))

    def _label(self, *, listed: bool) -> Label:
        """That of what windows say: it is the owner's, and whoever wrote it is not known."""
        window = self._desktop.current
        apps = {window.app} if window is not None and not listed else set()
        apps = apps or {each.app for each in self._desktop.windows}
        source = "\n".join(sorted(SOURCE + clean_text(app) for app in apps)) or SOURCE
        return join_labels((call_label(self._context), Label("untrusted", OWNER_READERS, source)))

    async def _take_screenshot(self) -> Done:
        width, height, pixels = await self._desktop.take_picture()
        data = await anyio.to_thread.run_sync(encode_picture, width, height, pixels)
        blob = await self._context.reach.host.put_blob(data)
        await self._desktop.list_windows()
        done = await self._finish("", listed=True)
        picture = Image(blob, "image/jpeg", "screen.jpg", self._label(listed=True))
        parts: tuple[ResultPart, ...] = (*done.parts, picture)
        return replace(done, parts=parts)


def _need(value: str, name: str) -> str:
    if not value.strip():
        raise ToolError(f"this action needs {name}")
    return value
