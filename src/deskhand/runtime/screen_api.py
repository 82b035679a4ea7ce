"""Implements `web.protocols.ScreenBackend`: what may be watched of the browsers and the desktop of
this process."""

from __future__ import annotations

import anyio

from ..computer.live_views import LiveView
from ..policy.information_flow import may_see
from ..types.identity import Principal, list_reader_names
from ..types.marked_texts import mark_text
from ..web.protocols import ScreenBackend
from ..web.screen_views import Screen, ScreenView
from .app import App

ELSEWHERE = mark_text(
    "The agent of this conversation works in another process of Deskhand. If it has a page or the "
    "desktop open, that cannot be watched from here."
)
WITHHELD = mark_text("What is open here is only for some of those who read this conversation.")


class ScreenApi:
    def __init__(self, app: App) -> None:
        self._app = app
        self._views = app.features.live_views

    def list_views(self, principal: Principal, session: str) -> Screen:
        if not self._is_driven_here(session):
            return Screen([], ELSEWHERE)
        found = self._views.list_views(session)
        visible = [each for each in found if _may_watch(principal, each)]
        return Screen(
            [self._describe(each) for each in visible],
            WITHHELD if len(visible) < len(found) else "",
        )

    async def take_picture(self, principal: Principal, session: str, view: str) -> bytes | None:
        if not self._is_driven_here(session):
            return None
        found = self._find(principal, session, view)
        if found is None:
            return None
        picture = await self._views.take_picture(found)
        # Asked again: something may have been done meanwhile that is for fewer readers.
        return picture if self._find(principal, session, view) is not None else None

    def _find(self, principal: Principal, session: str, view: str) -> LiveView | None:
        for each in self._views.list_views(session):
            if each.id == view and _may_watch(principal, each):
                return each
        return None

    def _is_driven_here(self, session: str) -> bool:
        """Browsers and the desktop belong to the process that drives the agent."""
        app = self._app
        if not self._views.is_running:
            return False
        return not app.store.shares_work or app.share.has(session)

    def _describe(self, view: LiveView) -> ScreenView:
        ago = anyio.current_time() - view.used_at
        at = self._app.parts.clock.now() - ago
        return ScreenView(view.id, view.kind, view.title, view.url, view.program, at)


def _may_watch(principal: Principal, view: LiveView) -> bool:
    """A picture shows what the conversation knew when it was made."""
    return may_see(view.label, list_reader_names(principal))


_: type[ScreenBackend] = ScreenApi
