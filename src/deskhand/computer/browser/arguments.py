"""What `browser` is called with."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

MAX_WAIT_S = 60.0

Action = Literal[
    "open",
    "sign_in",
    "look",
    "find",
    "text",
    "click",
    "type",
    "select",
    "press",
    "hover",
    "drag",
    "scroll",
    "back",
    "forward",
    "wait",
    "dialog",
    "upload",
    "tab",
    "screenshot",
    "pdf",
    "console",
    "script",
    "close",
]
LOOKING = frozenset(
    ("look", "find", "text", "wait", "tab", "screenshot", "console", "close", "scroll", "hover")
)
RECORDED = frozenset(
    (
        *("open", "sign_in", "click", "type", "select", "press", "hover", "drag", "scroll"),
        *("back", "forward", "dialog", "upload", "wait"),
    )
)
"""Actions that one may want to do again."""
WITH_ELEMENT = frozenset(("click", "type", "select", "press", "hover", "drag", "scroll", "upload"))
SENDING = frozenset(("type", "select", "upload", "script"))
"""Actions that give words or files of ours to the page."""


class BrowserArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Action
    ref: Annotated[str, msgspec.Meta(description="the element, such as e12")] = ""
    url: str = ""
    text: Annotated[
        str,
        msgspec.Meta(
            description="to type; the option to select; to wait for; words in a name to find; "
            "dialog: the answer to a prompt; script: JavaScript"
        ),
    ] = ""
    keys: Annotated[str, msgspec.Meta(description="Enter, Control+A, ArrowDown ArrowDown")] = ""
    to: Annotated[str, msgspec.Meta(description="drag: the element to drop it on")] = ""
    submit: Annotated[bool, msgspec.Meta(description="type: press Enter afterwards")] = False
    append: Annotated[bool, msgspec.Meta(description="type: keep what is there")] = False
    button: Literal["left", "right", "middle"] = "left"
    clicks: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    direction: Literal["down", "up", "left", "right"] = "down"
    pages: Annotated[float, msgspec.Meta(description="scroll: windows", ge=0.1, le=50)] = 0.8
    path: Annotated[str, msgspec.Meta(description="file to upload, or to write")] = ""
    accept: Annotated[bool, msgspec.Meta(description="dialog: OK or cancel")] = True
    tab: Annotated[int, msgspec.Meta(description="number of the tab to show; 0: a new one")] = -1
    role: Annotated[str, msgspec.Meta(description="find: button, link, textbox …")] = ""
    within: Annotated[str, msgspec.Meta(description="find: words that stand beside it")] = ""
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_S)] = 10.0
