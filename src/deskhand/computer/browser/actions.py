"""What is done to a page: by real mouse and key events, each with a look at what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import anyio

from ...types.errors import ToolError
from ..elements import Element, describe, quote
from . import page_scripts
from .keys import describe_key
from .launch import HEIGHT, WIDTH
from .page_tree import PageKey
from .protocol import CommandRefused
from .tab import POLL_S, Tab, wait_until

Point = tuple[float, float]
MAX_TYPED_KEYS = 60
"""A longer text is put in at once, as if it were pasted."""
DRAG_STEPS = 12
CHOOSER_S = 3.0
CLOSE_S = 1.0
_SET_BY_SCRIPT = frozenset(("date", "slider"))
"""Fields that take no typed words."""


async def click(tab: Tab, ref: str, button: str = "left", clicks: int = 1) -> None:
    """Click on the middle of it. Raises ToolError where something covers it."""
    key = await tab.find_key(ref)
    point = await _find_point(tab, key)
    if point is None:
        # Nothing of it can be seen, as with fields behind drawn ones.
        await tab.until_asked(lambda: tab.run_on(key, page_scripts.CLICK))
    else:
        await _press_mouse(tab, point, button, clicks)
    await tab.settle()


async def hover(tab: Tab, ref: str) -> None:
    """Move the mouse onto it."""
    point = await _require_point(tab, ref)
    await _move(tab, point)
    await tab.settle()


async def type_text(tab: Tab, ref: str, text: str, *, keep: bool, submit: bool) -> None:
    """Have it hold this text, behind what it holds where that is to be kept, and read it back.
    Raises ToolError where it holds something else then."""
    element = tab.refs.find(ref)
    key = await tab.find_key(ref)
    if not text and keep:
        return
    if element.role in _SET_BY_SCRIPT:
        held = await tab.run_on(key, page_scripts.SET_VALUE, text)
        if str(held) != text:
            raise ToolError(
                f"{element.ref} holds {quote(str(held))} and not {quote(text)}: a date is written "
                "2026-12-31, a time 18:30, a number within the limits of the slider"
            )
    else:
        if has_foreign_frames(tab, key[0]):
            # One of these could take the focus between two keys, and with it the words.
            await tab.run_on(key, page_scripts.PUT_TEXT, text, keep)
        else:
            await _type_keys(tab, key, text, keep=keep)
        await tab.settle()
        await _check_typed(tab, element, text)
    if submit:
        await press(tab, "Enter")


def has_foreign_frames(tab: Tab, frame: str) -> bool:
    """Whether something of the page is of another host than this frame."""
    own = urlsplit(tab.frames[frame].url).hostname if frame in tab.frames else None
    hosts = {urlsplit(each.url).hostname for each in tab.frames.values() if "://" in each.url}
    return bool(hosts - {own})


async def _type_keys(tab: Tab, key: PageKey, text: str, *, keep: bool) -> None:
    try:
        await tab.call("DOM.focus", {"backendNodeId": key[1]})
    except CommandRefused:
        point = await _find_point(tab, key)
        if point is None:
            raise ToolError("it cannot be typed into: nothing of it can be seen") from None
        await _press_mouse(tab, point, "left", 1)
    if not keep:
        await tab.run_on(key, page_scripts.SELECT_ALL)
    else:
        await _send_key(tab, "Control+End")
    if not text:
        await _send_key(tab, "Backspace")
    elif len(text) <= MAX_TYPED_KEYS and text.isprintable():
        for char in text:
            await tab.call("Input.dispatchKeyEvent", {"type": "keyDown", **describe_key(char)})
            await tab.call("Input.dispatchKeyEvent", {"type": "keyUp", **describe_key(char)})
    else:
        await tab.call("Input.insertText", {"text": text})


async def _check_typed(tab: Tab, element: Element, text: str) -> None:
    """Raises ToolError where the field does not hold what was typed. One that writes it its own
    way, as `(555) 123`, is fine; what is in a password field is never read."""
    if element.role == "password" or tab.dialog is not None or not text:
        return
    root = await tab.look()
    now = next((each for each in root.walk() if each.ref == element.ref), None)
    if now is None:
        return  # typing has led on
    wanted, held = _letters(text), _letters(now.value)
    if wanted not in held:
        raise ToolError(
            f"{element.ref} ({describe(element)}) did not take it: it holds "
            f"{quote(now.value[:200])}"
        )


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum()) or text.strip()


async def select(tab: Tab, ref: str, wanted: Sequence[str]) -> None:
    """Choose these options of a list, by their labels. Raises ToolError with those that there
    are."""
    key = await tab.find_key(ref)
    result = await tab.run_on(key, page_scripts.SELECT_OPTIONS, list(wanted))
    if not isinstance(result, dict) or result.get("none"):
        raise ToolError("this is no list of options: click it, and then the option")
    if result.get("single"):
        raise ToolError("only one of these can be chosen")
    if "missing" in result:
        options = ", ".join(quote(str(each)) for each in result["missing"])
        raise ToolError(f"it has no such option; there are: {options}")
    await tab.settle()


async def press(tab: Tab, keys: str, ref: str = "") -> None:
    """Press a key, or several behind each other, on the element or on what has the focus."""
    described = [each for each in keys.split(" ") if each] or [" "]
    for each in described:
        describe_key(each)  # all are known before the first is pressed
    if ref:
        key = await tab.find_key(ref)
        await tab.call("DOM.focus", {"backendNodeId": key[1]})
    for each in described:
        await _send_key(tab, each)
    await tab.settle()


async def _send_key(tab: Tab, name: str) -> None:
    event = describe_key(name)
    down = "keyDown" if "text" in event else "rawKeyDown"
    await tab.until_asked(lambda: tab.call("Input.dispatchKeyEvent", {"type": down, **event}))
    if tab.dialog is None:
        event.pop("text", None)
        await tab.until_asked(
            lambda: tab.call("Input.dispatchKeyEvent", {"type": "keyUp", **event})
        )


async def scroll(tab: Tab, ref: str, down: float, right: float) -> None:
    """Turn the wheel over it, by so many heights or widths of the window."""
    point: Point = (WIDTH / 2, HEIGHT / 2)
    if ref:
        point = await _require_point(tab, ref)
    wheel = {
        "type": "mouseWheel",
        "x": point[0],
        "y": point[1],
        "deltaX": right * WIDTH,
        "deltaY": down * HEIGHT,
    }
    await tab.call("Input.dispatchMouseEvent", wheel)
    await anyio.sleep(5 * POLL_S)  # what listens is told with the next picture
    await tab.settle()


async def drag(tab: Tab, ref: str, onto: str) -> None:
    """Take it with the mouse and let it go over the other one."""
    await tab.find_key(onto)
    begin = await _require_point(tab, ref)
    tab.drag_data = None
    # Only now: a drag that nobody takes on swallows all that the mouse does later.
    await tab.call("Input.setInterceptDrags", {"enabled": True})
    end: Point | None = None
    try:
        await _move(tab, begin)
        await _mouse(tab, "mousePressed", begin)
        await _move(tab, (begin[0] + 6, begin[1] + 6), held=True)
        await anyio.sleep(2 * POLL_S)
        end = await _require_point(tab, onto, scroll=False)
        await _carry(tab, begin, end)
    finally:
        tab.release_mouse(*(begin if end is None else end))
    await tab.settle()


async def _carry(tab: Tab, begin: Point, end: Point) -> None:
    """Move from here to there with the button held. What the page hands over as data is dropped
    there by events of that kind."""
    for step in range(1, DRAG_STEPS + 1):
        x = begin[0] + (end[0] - begin[0]) * step / DRAG_STEPS
        y = begin[1] + (end[1] - begin[1]) * step / DRAG_STEPS
        await _move(tab, (x, y), held=True)
        if tab.drag_data is not None:
            break
    if tab.drag_data is None:
        return
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": end[0], "y": end[1], "data": tab.drag_data}
        await tab.call("Input.dispatchDragEvent", event)
    tab.drag_data = None


async def upload(tab: Tab, ref: str, files: Sequence[str]) -> None:
    """Give these files of the sandbox to a file field, or to what opens one. Raises ToolError."""
    element = tab.refs.find(ref)
    key = await tab.find_key(ref)
    node = key[1]
    if element.role != "file":
        tab.chooser = 0
        await click(tab, ref)
        await wait_until(lambda: bool(tab.chooser), CHOOSER_S)
        if not tab.chooser:
            raise ToolError(f"{element.ref} does not ask for a file")
        node, tab.chooser = tab.chooser, 0
    try:
        await tab.call("DOM.setFileInputFiles", {"files": list(files), "backendNodeId": node})
    except CommandRefused as error:
        raise ToolError(f"the page does not take the file: {error}") from error
    await tab.settle()


async def answer_dialog(tab: Tab, text: str, *, accept: bool) -> None:
    """Answer what the page asks. Raises ToolError where it asks nothing."""
    if tab.dialog is None:
        raise ToolError("the page asks nothing")
    answer: dict[str, object] = {"accept": accept}
    if tab.dialog.kind == "prompt":
        answer["promptText"] = text
    await tab.call("Page.handleJavaScriptDialog", answer)
    await wait_until(lambda: tab.dialog is None, CLOSE_S)
    await tab.settle()


# The mouse


async def _require_point(tab: Tab, ref: str, *, scroll: bool = True) -> Point:
    point = await _find_point(tab, await tab.find_key(ref), scroll=scroll)
    if point is None:
        raise ToolError(f"nothing of {ref} can be seen")
    return point


async def _find_point(tab: Tab, key: PageKey, *, scroll: bool = True) -> Point | None:
    """The middle of what can be seen of it, in the window; None where nothing can. Raises ToolError
    where something else is in front of it."""
    node = {"backendNodeId": key[1]}
    try:
        if scroll:
            await tab.call("DOM.scrollIntoViewIfNeeded", node)
        seen = await tab.run_on(key, page_scripts.FIND_POINT)
        box = await tab.call("DOM.getBoxModel", node)
    except CommandRefused:
        return None
    if not isinstance(seen, dict) or seen.get("hidden"):
        return None
    if seen.get("cover"):
        raise ToolError(
            f"{quote(str(seen['cover']))} is in front of it: close that first, or scroll"
        )
    if seen.get("disabled"):
        raise ToolError("it is disabled: the page does not let it be used now")
    border = box["model"]["border"]
    point = min(border[::2]) + float(seen["x"]), min(border[1::2]) + float(seen["y"])
    if key[0] in tab.frames and tab.frames[key[0]].above:
        await _require_uncovered_frame(tab, key[0], point)
    return point


async def _require_uncovered_frame(tab: Tab, frame: str, point: Point) -> None:
    """Raises ToolError where something of the page around it is in front of a frame."""
    asked = {"x": round(point[0]), "y": round(point[1]), "includeUserAgentShadowDOM": True}
    try:
        found = await tab.call("DOM.getNodeForLocation", asked)
    except CommandRefused:
        return
    there = str(found.get("frameId", frame))
    above = tab.frames[there].above if there in tab.frames else ()
    if there != frame and frame not in above:
        raise ToolError("something of the page is in front of this frame: close that first")


async def _press_mouse(tab: Tab, point: Point, button: str, clicks: int) -> None:
    await _move(tab, point)
    for count in range(1, clicks + 1):
        for kind in ("mousePressed", "mouseReleased"):
            if tab.dialog is None:
                press = partial(_mouse, tab, kind, point, button, count)
                await tab.until_asked(press)
        if tab.dialog is not None:
            tab.release_mouse(*point, button)


async def _move(tab: Tab, point: Point, *, held: bool = False) -> None:
    event = {"type": "mouseMoved", "x": point[0], "y": point[1]}
    if held:
        event |= {"button": "left", "buttons": 1}
    await tab.until_asked(lambda: tab.call("Input.dispatchMouseEvent", event))


async def _mouse(tab: Tab, kind: str, point: Point, button: str = "left", count: int = 1) -> None:
    event = {"type": kind, "x": point[0], "y": point[1], "button": button, "clickCount": count}
    await tab.call("Input.dispatchMouseEvent", event)
