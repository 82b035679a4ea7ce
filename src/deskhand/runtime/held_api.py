"""Files that are held back, for the page and the API."""

from __future__ import annotations

from ..assembly.host import Host
from ..policy.visible import escape_invisible
from ..types.errors import Refused
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..web.held_views import HeldView, SeenView
from ..web.protocols import HeldFilesBackend
from .held_files import Approving, HeldFileView


class HeldApi:
    """Lists, shows and approves them. For owners only."""

    def __init__(self, ground: Host) -> None:
        self._ground = ground

    async def list_files(self, principal: Principal) -> list[HeldView]:
        """All files that are held back. Raises Refused."""
        found = await self._approvals_for(principal).list_held(self._ground.clock.now())
        return [
            HeldView(each.path, escape_invisible(each.path), each.agent, each.why) for each in found
        ]

    async def view_file(self, principal: Principal, path: str) -> SeenView:
        """The content of one file, without secrets. Raises Refused."""
        seen = await self._view(principal, path)
        text = self._ground.redact(seen.text)
        return SeenView(
            seen.path, seen.agent, text, seen.digest, seen.problem, seen.why, seen.bound
        )

    async def approve(self, principal: Principal, path: str, digest: str) -> list[HeldView]:
        """Approve a file if it is still what was seen. Raises Refused."""
        seen = await self._view(principal, path)
        if seen.digest != digest:
            raise Refused(mark_text("the file was changed after you opened it: review it again"))
        await self._approvals_for(principal).approve(
            seen, principal.on_behalf_of or principal.id, self._ground.clock.now()
        )
        return await self.list_files(principal)

    async def _view(self, principal: Principal, path: str) -> HeldFileView:
        if not path.startswith("/") or "\0" in path:
            raise Refused(mark_text("use the path of a file from the list"))
        return await self._approvals_for(principal).view(path)

    def _approvals_for(self, principal: Principal) -> Approving:
        if "owner" not in principal.roles:
            raise Refused(mark_text("only an owner may see and approve files that are held back"))
        return Approving(self._ground.settings(), self._ground.store)


_port: type[HeldFilesBackend] = HeldApi
