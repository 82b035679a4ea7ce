"""What agents may use beyond their workspace, for the page and the API."""

from __future__ import annotations

import anyio.to_thread

from ..assembly.host import Host
from ..computer.browser.sign_ins import SignIns
from ..policy.visible import escape_invisible
from ..secrets.queries import drop_grants, list_grants
from ..store.queries import PathGrant, path_grants_of
from ..types.errors import ConfigError, Refused
from ..types.identity import Principal
from ..users.queries import audit_note
from ..web.access_views import AccessView, FolderView, HostView, SignInView
from ..web.protocols import AccessBackend
from .folder_grants import allow_folder, resolve_folder, revoke_folder


class AccessApi:
    """Lists, allows and revokes it, as `deskhand allow`, `deskhand hosts` and `deskhand browser`
    do. For owners."""

    def __init__(self, ground: Host) -> None:
        self._ground = ground
        self._sign_ins = SignIns(ground.settings().home.sign_ins)

    async def list_access(self, principal: Principal) -> AccessView:
        """All folders and hosts that were allowed. Raises Refused."""
        _require_owner(principal)
        store = self._ground.store
        agents = list(self._ground.settings().agents)
        folders = [
            FolderView(
                agent=agent,
                path=each.path,
                shown=escape_invisible(each.path),
                write=each.write,
                outside=each.outside,
                at=each.at,
                by=each.by,
            )
            for agent in agents
            for each in await path_grants_of(store, agent)
        ]
        hosts = [
            HostView(host=each.host, agent=each.agent, session=each.session, by=each.by)
            for each in await list_grants(store)
        ]
        sign_ins = await anyio.to_thread.run_sync(_list_sign_ins, self._sign_ins)
        return AccessView(agents, folders, hosts, sign_ins)

    async def allow_folder(
        self, principal: Principal, agent: str, path: str, *, write: bool
    ) -> AccessView:
        """Let an agent use a folder. Raises Refused, ConfigError."""
        _require_owner(principal)
        if not path.startswith(("/", "~")):
            raise ConfigError("use the whole path of the folder, such as ~/Downloads")
        settings = self._ground.settings()
        real = await anyio.to_thread.run_sync(
            lambda: resolve_folder(settings, agent, path, write=write)
        )
        grant = PathGrant(real, write, self._ground.clock.now(), _name(principal), outside=False)
        await self._ground.store.change(allow_folder(agent, grant))
        return await self.list_access(principal)

    async def revoke_folder(self, principal: Principal, agent: str, path: str) -> AccessView:
        """Let it no longer use a folder. Raises Refused."""
        _require_owner(principal)
        now = self._ground.clock.now()
        await self._ground.store.change(revoke_folder(agent, path, now, _name(principal)))
        return await self.list_access(principal)

    async def revoke_host(self, principal: Principal, agent: str, host: str) -> AccessView:
        """Let its commands no longer reach a host; '' is every agent's. Raises Refused."""
        _require_owner(principal)
        note = audit_note(self._ground.clock.now(), _name(principal), "host revoked", host)
        await self._ground.store.change([drop_grants(host, agent), note])
        return await self.list_access(principal)

    async def remove_sign_in(self, principal: Principal, site: str) -> AccessView:
        """Let agents use no account at this site any more. Raises Refused, ConfigError."""
        _require_owner(principal)
        await anyio.to_thread.run_sync(self._sign_ins.remove, site)
        note = audit_note(self._ground.clock.now(), _name(principal), "sign-in removed", site)
        await self._ground.store.change([note])
        return await self.list_access(principal)


def _list_sign_ins(sign_ins: SignIns) -> list[SignInView]:
    found = []
    for site in sign_ins.list_sites():
        try:
            found.append(SignInView(site, sign_ins.load(site).taken_at))
        except ConfigError:
            found.append(SignInView(site, 0.0))
    return found


def _require_owner(principal: Principal) -> None:
    if "owner" not in principal.roles:
        raise Refused("only an owner may see and change what agents may use")


def _name(principal: Principal) -> str:
    return principal.on_behalf_of or principal.id


_port: type[AccessBackend] = AccessApi
