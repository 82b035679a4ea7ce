"""Keys by their names, as the browser wants them described."""

from __future__ import annotations

from typing import Any

from ...types.errors import ToolError

_NAMED = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "Backspace": ("Backspace", 8, ""),
    "Delete": ("Delete", 46, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    "PageUp": ("PageUp", 33, ""),
    "PageDown": ("PageDown", 34, ""),
    " ": ("Space", 32, " "),
    **{f"F{n}": (f"F{n}", 111 + n, "") for n in range(1, 13)},
}
"""Code, virtual key code, and the text that it types."""
_SPELLINGS = {
    "esc": "Escape",
    "return": "Enter",
    "del": "Delete",
    "space": " ",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    **{name.lower(): name for name in _NAMED},
}
_MODIFIERS = {
    "alt": 1,
    "control": 2,
    "ctrl": 2,
    "meta": 4,
    "cmd": 4,
    "command": 4,
    "super": 4,
    "shift": 8,
}
_COMMANDS = {"a": "selectAll", "c": "copy", "v": "paste", "x": "cut", "z": "undo"}


def describe_key(pressed: str) -> dict[str, Any]:
    """The event of Input.dispatchKeyEvent for `Enter` or `Control+A`, without its type. Raises
    ToolError for a key that nobody has."""
    *held, name = pressed.split("+") if len(pressed) > 1 else [pressed]
    modifiers = 0
    for each in held:
        if each.strip().lower() not in _MODIFIERS:
            raise ToolError(f"{each!r} is no key that is held: use Control, Shift, Alt or Meta")
        modifiers |= _MODIFIERS[each.strip().lower()]
    name = name if name == " " else name.strip()
    known = _NAMED.get(_SPELLINGS.get(name.lower(), name))
    if known is not None:
        code, number, text = known
        key = " " if code == "Space" else code
    elif len(name) == 1:
        code, number, text, key = _describe_char(name)
    else:
        raise ToolError(f"there is no key {name!r}: use names such as Enter, ArrowDown, Control+A")
    event: dict[str, Any] = {
        "key": key,
        "code": code,
        "windowsVirtualKeyCode": number,
        "modifiers": modifiers,
    }
    if text and not modifiers & ~8:
        event["text"] = text
    if modifiers & 6 and key.lower() in _COMMANDS:
        event["commands"] = [_COMMANDS[key.lower()]]
    return event


def types_words(keys: str) -> bool:
    """Whether one of these keys types something, or puts in what was copied. Raises ToolError for
    a key that nobody has."""
    events = [describe_key(each) for each in keys.split()]
    return any(
        event.get("text", "\r") != "\r" or event.get("commands") in (["paste"], ["cut"])
        for event in events
    )


def _describe_char(char: str) -> tuple[str, int, str, str]:
    if char.isascii() and char.isalpha():
        return f"Key{char.upper()}", ord(char.upper()), char, char
    if char.isascii() and char.isdigit():
        return f"Digit{char}", ord(char), char, char
    return "", 0, char, char
