"""`desktop`: the windows of this machine for the model, one action a call."""

from __future__ import annotations

import shlex
from functools import partial
from hashlib import sha256
from typing import Annotated, Literal
from urllib.parse import quote as quote_url

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ...tools.base import CallPreview, Context, Done, Outcome, Spec, call_label, label_errors
from ...tools.define import decode_arguments, list_given, make_schema
from ...tools.documents.invisible_characters import escape_invisible
from ...tools.label_marks import OWNER_READERS
from ...tools.output import make_bounded_result
from ...types.effects import Effect
from ...types.errors import ToolError
from ...types.identity import Address
from ...types.labels import Label, join_labels
from ...types.messages import Image, ResultPart, Text
from ...types.options import SessionOptions
from ..done_steps import DoneStep, describe_step
from ..elements import describe, has_words, quote
from ..snapshot import (
    list_lines,
    render_changes,
    render_element,
    render_found,
    render_snapshot,
)
from .desktop import Chosen, Desktop, Direction, MouseButton
from .host import DesktopHost
from .picture import encode_picture
from .windows import Window

DESKTOP = "desktop"
SOURCE = "desktop:"
"""So begins the source of what a program shows; its name follows."""
CLIPBOARD = Label("untrusted", OWNER_READERS, f"{SOURCE}the clipboard")
WINDOWS = Label("untrusted", OWNER_READERS, SOURCE)
"""That of the whole screen, and of an error, which may quote the titles of any."""
MAX_WAIT_S = 60.0
MAX_TYPED_CHARS = 20_000
MAX_TIMES = 50
MAX_CLICKS = 3
SCROLL_CLICKS = 5

Action = Literal[
    "windows",
    "look",
    "find",
    "press",
    "click",
    "scroll",
    "drag",
    "type",
    "keys",
    "focus",
    "wait",
    "screenshot",
    "launch",
    "close",
    "clipboard",
    "copy",
    "use_app",
]
_LOOKING = frozenset(("windows", "look", "find", "wait", "screenshot"))
_OF_NO_WINDOW = frozenset(("launch", "clipboard", "copy"))


class DesktopArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Action
    ref: Annotated[str, msgspec.Meta(description="the element, such as e12")] = ""
    window: Annotated[str, msgspec.Meta(description="words of its program or title")] = ""
    text: Annotated[
        str, msgspec.Meta(description="to type; to copy; to wait for; words in a name to find")
    ] = ""
    append: Annotated[bool, msgspec.Meta(description="type: keep what is there")] = False
    keys: Annotated[str, msgspec.Meta(description="ctrl+s, Enter, Down Down")] = ""
    role: Annotated[str, msgspec.Meta(description="find: button, textbox, menuitem …")] = ""
    within: Annotated[str, msgspec.Meta(description="find: words that stand beside it")] = ""
    app: Annotated[str, msgspec.Meta(description="launch: the command")] = ""
    button: Annotated[MouseButton, msgspec.Meta(description="click")] = "left"
    times: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=MAX_TIMES,
            description="click: 2 is a double click; scroll: clicks of the wheel, usually 5",
        ),
    ] = 0
    direction: Annotated[Direction, msgspec.Meta(description="scroll")] = "down"
    to: Annotated[str, msgspec.Meta(description="drag: the ref to drop it on")] = ""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 10.0


_DESCRIPTION = (
    "Use the windows of this machine: list windows; look at one; find; press a ref or type into it "
    "(into the window, if it has none); click it with the mouse only where press is not enough "
    "(right, double); scroll a ref or a window; drag a ref to another; keys, in a ref or a window; "
    "focus or close a window; wait for a text; screenshot, of a window with its refs drawn in; "
    "launch a program; clipboard reads it, copy puts a text there. Each action tells what has "
    "changed. Ask once for the program of a window with use_app, so that not each action "
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
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        """What a person is to be asked: which element of which window, as it was last seen. Free
        are actions in a program that this conversation may use, while it has read of nothing
        else from outside."""
        try:
            given = decode_arguments(arguments, DesktopArguments, DESKTOP)
            if given.action == "clipboard":
                return CallPreview("host", "Read what is on the clipboard")
            if given.action == "copy":
                return CallPreview("host", f"Put {quote(given.text[:200])} on the clipboard")
            if given.action in (*_LOOKING, "launch"):
                return None
            chosen = self._choose(given, session)
        except ToolError as error:
            return CallPreview("host", str(error))  # it will not be done
        if chosen is None:
            return CallPreview("host")
        shown = _describe(chosen)
        if given.action == "use_app":
            if chosen.window.is_pictured and not chosen.window.program:
                raise ToolError("nobody can say which program this is: each action is asked about")
            program = quote(chosen.window.program or chosen.window.app)
            return CallPreview(
                "host",
                f"Use the program {program} in this conversation without asking again, and "
                f"believe what its windows show ({shown})",
            )
        trusted = make_source(chosen.window) in (options.trust or ())
        is_free = trusted and label.integrity != "untrusted"
        return CallPreview("local_write" if is_free else "host", shown)

    def _choose(self, given: DesktopArguments, session: str) -> Chosen | None:
        """What this action is about, by what was seen last; None before anything was. Raises
        ToolError."""
        desktop = self._host.peek()
        if desktop is None:
            return None
        return desktop.choose(desktop.view_of(session), given.ref, given.window, given.to)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, DesktopArguments, DESKTOP)
        if "owner" not in context.principal.roles:
            raise ToolError("only an owner may have the desktop used: it is theirs")
        with label_errors(call_label(context), WINDOWS):
            acts = given.action not in _LOOKING | _OF_NO_WINDOW
            asked = self._choose(given, context.session) if acts else None
            if acts and asked is None:
                raise ToolError("look at the windows first")
            desktop = await self._host.open()
            desktop.view_of(context.session).note_use(call_label(context))
            async with self._host.lock:
                return await _Step(self._host, desktop, context).do(given, asked)


def make_source(window: Window) -> str:
    """The source of what a window shows: the file of its program, as it may call itself what it
    likes."""
    return SOURCE + quote_url(window.program or f"called {window.app}", safe="/ .+-")


def _describe(chosen: Chosen) -> str:
    window = chosen.window
    shown = f"in the window {quote(window.shown_name)}"
    if window.is_pictured:  # another one may have the same name
        shown += f" of {quote(window.program or 'an unknown program')}, process {window.pid}"
    if chosen.onto is not None:
        shown = f"to {describe(chosen.onto)} {shown}"
    return f"{describe(chosen.element)} {shown}" if chosen.element is not None else shown


class _Step:
    """One action."""

    def __init__(self, host: DesktopHost, desktop: Desktop, context: Context) -> None:
        self._host = host
        self._desktop = desktop
        self._view = desktop.view_of(context.session)
        self._context = context
        self._notes: list[str] = []
        self._others: list[Window] = []

    def _label(self, windows: list[Window]) -> Label:
        """That of what these windows say: it is the owner's, and whoever wrote it is not known."""
        source = "\n".join(sorted({make_source(each) for each in windows})) or SOURCE
        return join_labels((call_label(self._context), Label("untrusted", OWNER_READERS, source)))

    async def do(self, given: DesktopArguments, asked: Chosen | None) -> Outcome:
        """Do it, if it is still about what was asked about, and tell what is shown then."""
        desktop, view = self._desktop, self._view
        await desktop.list_windows()
        match given.action:
            case "windows":
                return await self._finish("", listed=True)
            case "look":
                return await self._look(given)
            case "find":
                await desktop.look(view, self._window_to_see(given))
                return await self._finish(
                    render_found(self._view.root, given.role, given.text, given.within)
                )
            case "screenshot":
                return await self._take_screenshot(given)
            case "clipboard":
                return await self._read_clipboard()
            case "copy":
                done = await self._copy(given.text)
                self._view.steps.append(self._describe_step(given, None))
                return done
            case "wait":
                await self._wait(given)
                return await self._finish(await self._show_changes())
            case "launch":
                await self._launch(_need(given.app, "app"))
                self._view.steps.append(self._describe_step(given, None))
                return await self._finish(await self._show_changes())
            case _:
                chosen = desktop.choose(view, given.ref, given.window, given.to)
                if asked is None or chosen.identity != asked.identity:
                    raise ToolError("the windows have changed since: look again")
                if given.action == "use_app":
                    return self._allow(chosen)
                return await self._finish(await self._act(given, chosen))

    async def _look(self, given: DesktopArguments) -> Done:
        desktop, view = self._desktop, self._view
        root = await desktop.look(view, self._window_to_see(given))
        view.lines = list_lines(root)
        if not given.ref:
            return await self._finish(render_snapshot(root))
        seen = desktop.peek(given.ref)
        if seen is None:
            raise ToolError(f"there is no {given.ref[:20]!r} now: look again")
        return await self._finish(f"{render_element(seen[0])}\n{render_snapshot(seen[0])}")

    def _window_to_see(self, given: DesktopArguments) -> Window:
        """The window to look at: that of the words or the ref, else the one that was looked at,
        else the active one."""
        if given.ref or given.window:
            return self._desktop.choose(self._view, given.ref, given.window).window
        current = self._view.current
        keys = {each.key: each for each in self._desktop.windows}
        if current is not None and current.key in keys:
            return keys[current.key]
        return self._desktop.find_window("")

    def _allow(self, chosen: Chosen) -> Done:
        """The program of this window may be used in this conversation."""
        known = self._context.options.trust or ()
        trust = tuple(dict.fromkeys((*known, make_source(chosen.window))))
        said = f"{quote(chosen.window.app)} may be used in this conversation, and is believed here"
        text = Text(said, self._label([chosen.window]))
        return Done((text,), options=SessionOptions(trust=trust))

    async def _act(self, given: DesktopArguments, chosen: Chosen) -> str:
        """Do it; what has changed, with a word where it goes in circles."""
        if self._view.current is None or self._view.current.key != chosen.window.key:
            await self._desktop.look(self._view, chosen.window)
            self._view.lines = list_lines(self._view.root)
        mark = msgspec.json.encode(given).decode()
        done = self._describe_step(given, chosen)
        try:
            await self._change(given, chosen)
        except ToolError as error:
            said = self._view.repeats.add(mark, self._state, failed=True)
            raise type(error)("; ".join([str(error), *said])) from error
        try:
            changes = await self._show_changes()
        except ToolError as error:
            changes = ""
            self._notes.append(f"it was done; what is shown now cannot be told: {error}")
        self._notes += self._view.repeats.add(mark, self._state)
        self._view.steps.append(done)
        return changes

    def _describe_step(self, given: DesktopArguments, chosen: Chosen | None) -> DoneStep:
        """What is about to be done, for who wants to do it again."""
        arguments = list_given(given)
        if chosen is None:
            label = call_label(self._context)
            return DoneStep(arguments=arguments, label=label)
        step = describe_step(arguments, self._view.root, chosen.element, chosen.onto)
        window = chosen.window
        return replace(
            step,
            place=str(window.key),
            program=window.app,
            title=window.shown_name,
            label=self._label([window]),
        )

    @property
    def _state(self) -> str:
        """What is shown, as far as a later look can be compared with it."""
        lines = "\n".join(each.text for each in self._view.lines)
        return sha256(lines.encode()).hexdigest()

    async def _change(self, given: DesktopArguments, chosen: Chosen) -> None:
        desktop = self._desktop
        match given.action:
            case "press":
                self._notes.append(f"done {await desktop.press(chosen)}")
            case "click":
                if given.times > MAX_CLICKS:
                    raise ToolError(f"an element is clicked at most {MAX_CLICKS} times at once")
                await desktop.click(chosen, given.button, given.times or 1)
            case "scroll":
                await desktop.scroll(chosen, given.direction, given.times or SCROLL_CLICKS)
            case "drag":
                _need(given.to, "to")
                await desktop.drag(chosen)
            case "close":
                await desktop.close_window(chosen.window)
            case "type":
                if len(given.text) > MAX_TYPED_CHARS:
                    raise ToolError(f"at most {MAX_TYPED_CHARS:,} characters are typed at once")
                self._notes.append(await desktop.type_text(chosen, given.text, append=given.append))
            case "keys":
                await desktop.press_keys(chosen, _need(given.keys, "keys"))
            case "focus":
                await desktop.raise_window(chosen.window)
            case _:
                raise ToolError(f"there is no action {given.action!r}")
        await desktop.settle(chosen.window)

    async def _launch(self, app: str) -> None:
        """Start a program on the desktop, and wait for its window."""
        try:
            words = shlex.split(app)
        except ValueError as error:
            raise ToolError(f"{app[:200]!r} is no command: {error}") from error
        await self._host.launch(words)
        with anyio.move_on_after(MAX_WAIT_S / 3):
            while not (new := await self._desktop.list_windows()):  # noqa: ASYNC110
                await anyio.sleep(0.2)
            await self._desktop.settle(new[-1])
            await self._desktop.look(self._view, new[-1])
            return
        self._notes.append("it has shown no window yet")

    async def _wait(self, given: DesktopArguments) -> None:
        window = self._window_to_see(given)
        if not given.text:
            await anyio.sleep(given.seconds)
            return
        with anyio.move_on_after(given.seconds) as limit:
            while True:
                if has_words(await self._desktop.look(self._view, window), given.text):
                    return
                await anyio.sleep(0.2)
        if limit.cancelled_caught:
            self._notes.append(f"{quote(given.text[:80])} has not come in {given.seconds:.0f} s")

    # What is told

    async def _show_changes(self) -> str:
        desktop, view = self._desktop, self._view
        for window in await desktop.list_windows():
            self._notes.append(f"new window: {quote(window.shown_name)}")
            self._others.append(window)
        keys = {each.key: each for each in desktop.windows}
        if view.current is None or view.current.key not in keys:
            self._notes.append("the window is closed")
            view.current = None
            return ""
        before = view.lines
        root = await desktop.look(view, keys[view.current.key])
        view.lines = list_lines(root)
        if not before:
            return render_snapshot(root)
        return render_changes(before, view.lines) or "nothing has changed"

    async def _finish(self, text: str, *, listed: bool = False) -> Done:
        window = self._view.current
        lines = [f"[{each}]" for each in self._notes]
        if listed or window is None:
            names = (
                f"{quote(each.shown_name)}{' active' if each.is_active else ''}"
                for each in self._desktop.windows
            )
            lines = [*lines, "windows:", *names]
            label = self._label(self._desktop.windows)
        else:
            lines = [f"[window {quote(window.shown_name)}]", *lines]
            label = self._label([window, *self._others])
        shown = _escape_lines([*lines, text])
        return await make_bounded_result(shown, self._context, label)

    async def _take_screenshot(self, given: DesktopArguments) -> Done:
        """The screen; or a window, with the refs of what can be acted on drawn in."""
        if given.ref or given.window:
            return await self._take_marked_screenshot(self._window_to_see(given))
        width, height, pixels = await self._desktop.take_picture()
        data = await anyio.to_thread.run_sync(encode_picture, width, height, pixels)
        done = await self._finish("", listed=True)
        return await self._add_picture(done, data, self._label(self._desktop.windows))

    async def _take_marked_screenshot(self, window: Window) -> Done:
        picture, marks = await self._desktop.take_marked_picture(self._view, window)
        size = picture.width, picture.height, picture.pixels
        data = await anyio.to_thread.run_sync(partial(encode_picture, *size, marks=marks))
        done = await self._finish(f"{len(marks)} refs are drawn in the picture")
        return await self._add_picture(done, data, self._label([window]))

    async def _add_picture(self, done: Done, data: bytes, label: Label) -> Done:
        blob = await self._context.reach.host.put_blob(data)
        picture = Image(blob, "image/jpeg", "screen.jpg", label)
        parts: tuple[ResultPart, ...] = (*done.parts, picture)
        return replace(done, parts=parts)

    # The clipboard

    async def _read_clipboard(self) -> Done:
        text = await self._desktop.clipboard.read()
        label = join_labels((call_label(self._context), CLIPBOARD))
        if not text:
            return Done((Text("there is no text on the clipboard", label),))
        return await make_bounded_result(escape_invisible(text), self._context, label)

    async def _copy(self, text: str) -> Done:
        if len(text) > MAX_TYPED_CHARS:
            raise ToolError(f"at most {MAX_TYPED_CHARS:,} characters are copied at once")
        await self._desktop.clipboard.write(_need(text, "text"))
        return Done((Text("it is on the clipboard", call_label(self._context)),))


def _escape_lines(lines: list[str]) -> str:
    """These lines, with what nobody sees in them written out."""
    return "\n".join(escape_invisible(each) for text in lines for each in text.split("\n")).rstrip()


def _need(value: str, name: str) -> str:
    if not value.strip():
        raise ToolError(f"this action needs {name}")
    return value
