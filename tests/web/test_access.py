"""Folders and hosts that agents may use beyond their workspace: for owners alone, and at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskhand.computer.browser.sign_ins import Cookie, SignIns, SiteSignIn
from deskhand.runtime.access_api import AccessApi
from deskhand.runtime.mcp_api import McpApi
from deskhand.tools.queries import grant_host
from deskhand.types.errors import Refused
from deskhand.types.identity import Principal

from .calling import ALLOW, Caller, said
from .served import Served, serving

ACCESS = "/api/access"
FOLDERS = "/api/access/folders"


async def allow(served: Served, path: Path | str, *, write: bool = False) -> tuple[int, Any]:
    body = {"agent": "default", "path": str(path), "write": write}
    return await served.owner.ask("PUT", FOLDERS, body)


def make_folder(tmp_path: Path) -> Path:
    """A folder with a file, which is no agent's."""
    folder = tmp_path / "Down loads"
    folder.mkdir()
    (folder / "list.txt").write_text("milk\n")
    return folder


async def test_an_allowed_folder_is_read_at_the_next_call(tmp_path: Path) -> None:
    caller = Caller()
    home = tmp_path / "home"
    home.mkdir()
    folder = make_folder(tmp_path)
    read = ("read_file", {"path": str(folder / "list.txt")})
    written = ("write_file", {"path": str(folder / "new.txt"), "content": "bread\n"})
    async with serving(home, caller.model, tools=None, policy=ALLOW) as served:
        (refused,) = await caller.does(served.owner, "one", read)
        assert "is outside the workspace" in said(refused)

        status, view = await allow(served, folder)
        assert status == 200 and view["agents"] == ["default"]
        (row,) = view["folders"]
        assert (row["path"], row["write"], row["by"]) == (str(folder), False, "owner")
        found, kept = await caller.does(served.owner, "one", read, written)
        assert "milk" in said(found) and "--write" in said(kept)
        assert not (folder / "new.txt").exists()

        assert (await allow(served, folder, write=True))[0] == 200
        await caller.does(served.owner, "one", written)
        assert (folder / "new.txt").read_text() == "bread\n"

        status, view = await served.owner.ask(
            "DELETE", f"{FOLDERS}?agent=default&path={folder}".replace(" ", "%20")
        )
        assert (status, view["folders"]) == (200, [])
        (refused,) = await caller.does(served.owner, "one", read)
        assert "is outside the workspace" in said(refused)
        trail = [each.what for each in await served.people.list_audit_notes()]
        assert {"folder allowed, to read", "folder allowed, to write", "folder revoked"} <= {*trail}


async def test_sign_ins_are_listed_and_deleted(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None) as served:
        kept = SignIns(served.app.settings.home.sign_ins)
        kept.save(SiteSignIn((Cookie("sid", "a-secret-value", "shop.test"),), (), "shop.test", 7.0))
        (tmp_path / "state" / "sign_ins" / "bad.test.json").write_text("{")
        status, view = await served.owner.ask("GET", ACCESS)
        assert status == 200 and "a-secret-value" not in str(view)
        assert view["sign_ins"] == [
            {"site": "bad.test", "at": 0.0},
            {"site": "shop.test", "at": 7.0},
        ]
        status, view = await served.owner.ask("DELETE", f"{ACCESS}/sign-ins?site=shop.test")
        assert [each["site"] for each in view["sign_ins"]] == ["bad.test"]
        assert kept.list_sites() == ["bad.test"]
        for site in ("shop.test", "..%2F..%2Fsecrets", "a%20b"):
            status, refused = await served.owner.ask("DELETE", f"{ACCESS}/sign-ins?site={site}")
            assert 400 <= status < 500, refused
        trail = [each.what for each in await served.people.list_audit_notes()]
        assert "sign-in removed" in trail


async def test_what_no_agent_may_have_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = make_folder(tmp_path)
    async with serving(home) as served:
        for path, why in (
            (folder / "nowhere", "there is no folder"),
            (folder / "list.txt", "allow the folder that holds it"),
            (home, "contains deskhand's own files and keys"),
            (tmp_path, "contains deskhand's own files and keys"),
            ("/", ""),
            ("/proc/self", ""),
            ("Downloads", "use the whole path"),
            ("~nobody-of-this-name/x", "there is no folder"),
            ("/" + "x" * 4000, "there is no folder"),
            ("/tmp/\0", "there is no folder"),
        ):
            status, answer = await allow(served, path)
            assert status == 400 and why in answer["error"]["message"].lower(), (
                path,
                status,
                answer,
            )
        status, _ = await served.owner.ask("PUT", FOLDERS, {"agent": "nobody", "path": str(folder)})
        assert status == 400
        assert (await served.owner.get(ACCESS))["folders"] == []


async def test_hosts_are_listed_and_taken_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        grants = [
            grant_host(host, agent=agent, session=session, knowing=0, at=1.0, by="owner")
            for host, agent, session in (
                ("pypi.org", "", ""),
                ("example.org", "default", "default/web:owner:one"),
            )
        ]
        await served.app.store.change(grants)
        found = (await served.owner.get(ACCESS))["hosts"]
        assert {each["host"] for each in found} == {"pypi.org", "example.org"}
        path = f"{ACCESS}/hosts?host=example.org&agent=default"
        status, view = await served.owner.ask("DELETE", path)
        assert status == 200 and [each["host"] for each in view["hosts"]] == ["pypi.org"]


async def test_only_owners_see_and_change_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = make_folder(tmp_path)
    async with serving(home) as served:
        for role in ("member", "approver"):
            await served.people.add_user(role, role)
            other = (await served.token(role))[1]
            body = {"agent": "default", "path": str(folder)}
            for method, path, given in (
                ("GET", ACCESS, None),
                ("PUT", FOLDERS, body),
                ("DELETE", f"{FOLDERS}?agent=default&path=/x", None),
                ("DELETE", f"{ACCESS}/hosts?host=pypi.org", None),
            ):
                assert (await other.ask(method, path, given))[0] == 403, (role, path)
        assert (await served.owner.get(ACCESS))["folders"] == []


async def test_a_credential_alone_makes_nobody_an_owner(tmp_path: Path) -> None:
    """A role of one's own may have the scope; what agents may use is for owners all the same."""
    ann = Principal("ann", ("gardener",))
    async with serving(tmp_path) as served:
        host = served.app.features.host
        access, servers = AccessApi(host), McpApi(host, served.app.features.mcp)
        for ask in (
            lambda: access.list_access(ann),
            lambda: access.allow_folder(ann, "default", str(tmp_path), write=True),
            lambda: access.revoke_folder(ann, "default", str(tmp_path)),
            lambda: access.revoke_host(ann, "", "pypi.org"),
            lambda: servers.list_servers(ann),
            lambda: servers.try_server(ann, "test"),
            lambda: servers.accept_tools(ann, "test", {}),
        ):
            with pytest.raises(Refused, match="only an owner"):
                await ask()
