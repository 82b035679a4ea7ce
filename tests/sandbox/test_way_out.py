"""Real programs in the sandbox reach what was allowed, through the proxy alone, and nothing beside
it."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.testing.egress import EchoServer, lab
from deskhand.testing.sandbox_suite import Ground, Ran, command, run
from deskhand.types.errors import SandboxError


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return anyio.run(open_sandbox).sandbox


async def in_(sandbox: Sandbox, folder: Path, path: str, script: str) -> Ran:
    ground = Ground(folder.resolve(), folder.resolve(), ())
    return await run(
        sandbox, msgspec.structs.replace(command(ground, script), egress=path, timeout_s=30)
    )


FETCH = (
    "python3 -c 'import urllib.request as u; print(u.urlopen(\"{}\", timeout=5).read().decode())'"
)


async def test_curl_and_python_reach_an_allowed_host(sandbox: Sandbox, tmp_path: Path) -> None:
    plain = EchoServer()
    secure = EchoServer()
    async with lab(("allowed.test", 80, plain), ("allowed.test", 443, secure)) as here:
        here.allow("allowed.test")
        (Path(here.path).parent / "ca.pem").write_text(here.authority.pem)
        script = (
            f"curl -sS http://allowed.test/a && curl -sS https://allowed.test/b && {FETCH} && "
            f"{FETCH}"
        ).format("http://allowed.test/c", "https://allowed.test/d")
        ran = await in_(sandbox, tmp_path, here.path, script)
    assert ran.exit.code == 0, ran.text
    assert [r.split(b" ")[1] for r in (*plain.requests, *secure.requests)] == [
        b"/a",
        b"/c",
        b"/b",
        b"/d",
    ]


async def test_what_was_not_allowed_is_refused_to_real_programs(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    server = EchoServer()
    async with lab(("evil.test", 80, server), ("evil.test", 443, server)) as here:
        here.allow("allowed.test")
        lines = [
            (
                "curl -sS http://evil.test/; curl -sS https://evil.test/; curl -sS -H 'Host: "
                "allowed.test' http://evil.test/"
            ),
            "curl -sS --connect-to allowed.test:443:evil.test:443 https://allowed.test/",
            FETCH.format("http://evil.test/"),
        ]
        ran = await in_(sandbox, tmp_path, here.path, "\n".join(lines))
    assert not server.accepted and not here.dialled
    assert "Deskhand: evil.test is not allowed" in ran.text and "response 403" in ran.text


_SOCKETS = (
    'socket(AF_INET6).connect(("::1", 3128))',
    "socket(AF_PACKET, SOCK_RAW)",
    "socket(AF_NETLINK, SOCK_RAW)",
)


async def test_there_is_no_way_beside_the_proxy(sandbox: Sandbox, tmp_path: Path) -> None:
    """Not to this machine, not to its neighbours, not without the proxy, not by UDP, and no other
    way to its socket."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        for each in (tcp, udp):
            each.setblocking(False)
        port = tcp.getsockname()[1]
        heard = udp.getsockname()[1]
        async with lab() as here:
            here.public = True
            metadata = "169.254.169.254"
            direct = f"127.0.0.1:{port}"
            lines = [
                f"curl -s --noproxy '*' -m 2 http://{direct}/ && echo CONNECTED",
                (
                    f"curl -s -m 2 http://{direct}/; curl -s -m 2 http://localhost:{port}/; "
                    f"curl -s -m 2 http://{metadata}/"
                ),
                f"curl -s -m 2 -p -x http://127.0.0.1:3128 telnet://{direct}",
                *(
                    f"exec 3<>/dev/tcp/{to} && echo CONNECTED"
                    for to in (f"127.0.0.1/{port}", "192.0.2.1/80")
                ),
                (
                    f"exec 3<>/dev/tcp/{metadata}/80 && echo CONNECTED; echo x > "
                    f"/dev/udp/127.0.0.1/{heard}"
                ),
                *(
                    f"python3 -c 'from socket import *; {code}; print(\"CONNECTED\")'"
                    for code in _SOCKETS
                ),
                (
                    f"ls -la {Path(here.path).parent}; curl -s --unix-socket {here.path} "
                    "http://x/ && echo CONNECTED"
                ),
                "ls /proc/self/fd",
            ]
            ran = await in_(sandbox, tmp_path, here.path, "\n".join(lines))
        assert "CONNECTED" not in ran.text and "IP address" in ran.text, ran.text
        assert ran.text.split()[-4:] == ["0", "1", "2", "3"], (
            "nothing but its own three and the folder that ls reads"
        )
        for each in (tcp, udp):
            with pytest.raises(BlockingIOError):
                each.accept() if each is tcp else each.recv(1)


async def test_without_the_field_there_is_nothing_to_connect_to(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    ran = await in_(
        sandbox, tmp_path, "", "env | grep -i -e proxy -e cert; exec 3<>/dev/tcp/127.0.0.1/3128"
    )
    assert (
        ran.exit.code != 0
        and "proxy=" not in ran.text.lower()
        and "Operation not permitted" in ran.text
    )


async def test_it_ends_with_the_command(sandbox: Sandbox, tmp_path: Path) -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        for _ in range(3):
            ran = await in_(
                sandbox,
                tmp_path,
                here.path,
                "curl -sS http://allowed.test/ > /dev/null; (sleep 60; curl x) &",
            )
            assert ran.exit.code == 0 and ran.exit.seconds < 20
    assert len(server.requests) == 3


async def test_a_proxy_that_is_gone_is_said_so(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(
        SandboxError, match="the proxy for the network cannot be reached: No such file"
    ):
        await in_(sandbox, tmp_path, str(tmp_path / "none"), "true")


async def test_without_namespaces_it_is_refused(tmp_path: Path) -> None:
    second = (await open_sandbox(bwrap=None)).sandbox
    assert not second.has_egress
    with pytest.raises(SandboxError, match="only with bubblewrap"):
        await in_(second, tmp_path, str(tmp_path / "none"), "true")
