"""A picture of a tab for people who watch: taken beside what the agent does, without a trace in the
page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from ...types.errors import ToolError
from .protocol import WRONG_SHAPES, CommandRefused, PendingCall
from .tab import Tab, describe_dialog

PICTURE = {"format": "jpeg", "quality": 60, "optimizeForSpeed": True}
"""Without `clip`, which would have the page drawn at another scale for a moment. No window is wider
than `launch.WIDTH`: a page can make its own only as large as the screen, which is smaller."""
MAX_PASSWORDS = 50


class TabCamera:
    """Takes pictures of one tab, while it `is_in_front`. A page that is busy is not asked for a
    second one before it has given the first."""

    def __init__(self, tab: Tab, is_in_front: Callable[[], bool]) -> None:
        self._tab = tab
        self._is_in_front = is_in_front
        self._asked: PendingCall | None = None

    async def take(self, timeout_s: float) -> bytes:
        """A JPEG of what the tab shows. Raises ToolError where there is none now: another tab is
        looked at, the page asks something, hangs, or shows what is in a password field."""
        tab = self._tab
        if not self._is_in_front():
            # Chromium 156 gives one picture of a hidden tab, and never answers for the next.
            raise ToolError("the agent looks at another tab: this one is not drawn meanwhile")
        if tab.dialog is not None:
            raise ToolError(f"the page shows {describe_dialog(tab.dialog)}, and nothing else now")
        try:
            await self._require_no_password(timeout_s)
            asked = self._asked or tab.begin("Page.captureScreenshot", PICTURE)
            self._asked = asked
            answer = await tab.finish(asked, timeout_s)
            await self._require_no_password(timeout_s)
            return base64.b64decode(str(answer.get("data", "")))
        except (binascii.Error, *WRONG_SHAPES) as error:
            raise ToolError("the browser gave no picture") from error
        finally:
            if self._asked is not None and self._asked.over.is_set():
                self._asked = None

    async def _require_no_password(self, timeout_s: float) -> None:
        """Raises ToolError where a password field shows what is in it, as many pages let it do.

        The browser is asked for what it knows of the node: no script runs in the page.
        """
        nodes = self._tab.secret_nodes
        if len(nodes) > MAX_PASSWORDS:
            raise ToolError("the page has too many password fields for a picture")
        for _, node in nodes:
            try:
                asked = {"backendNodeId": node}
                found = await self._tab.call("DOM.describeNode", asked, timeout_s)
            except CommandRefused:
                continue  # it has gone
            if _find_type(found["node"]) != "password":
                raise ToolError("there is no picture while the page shows a password")


def _find_type(node: dict[str, Any]) -> str:
    """The `type` of an input field. Its attributes are a list: name, value, name, value."""
    given = node.get("attributes", [])
    attributes = dict(zip(given[::2], given[1::2], strict=False))
    return str(attributes.get("type", "")).strip().lower()
