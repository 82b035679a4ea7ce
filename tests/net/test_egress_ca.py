"""What the proxy shows to commands in the name of a host is believed by the programs that they
run, if these check it as strictly as they can."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import anyio
import pytest
from anyio.streams.tls import TLSStream

from deskhand.config.clock import SystemClock
from deskhand.net.client import Net
from deskhand.net.egress_ca import Authority
from deskhand.net.url import parse_host
from deskhand.testing.egress import EchoServer, everything

HOSTS = (
    "api.test",
    "localhost",
    "xn--bcher-kva.test",
    "my_bucket.test",
    "_service.api.test",
    "v1--site.test",
    f"{'x' * 63}.test",
    ".".join(["x" * 60] * 4),
)
"""Names as `parse_host` lets them through. Some servers have one that IDNA does not know."""
PROGRAMS = ("python", "curl", "git")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("host", HOSTS)
async def test_programs_believe_it(host: str, program: str, tmp_path: Path) -> None:
    assert parse_host(host) == host
    authority = Authority(SystemClock().now())
    server = EchoServer()
    trust = tmp_path / "trust.pem"
    trust.write_text(authority.pem)
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.serve, authority.server_context(host))
        await ask(program, host, server.port, trust)
        tasks.cancel_scope.cancel()
    assert server.requests and server.requests[0].startswith(b"GET /x")


async def ask(program: str, host: str, port: int, trust: Path) -> None:
    """One request of this program; what is answered does not matter."""
    where = f"{host}:{port}:127.0.0.1"
    url = f"https://{host}:{port}/x"
    if program == "python":
        await ask_strictly(host, port, trust)
    elif program == "curl":
        command = ["curl", "--silent", "--noproxy", "*", "--resolve", where, "--cacert"]
        await anyio.run_process([*command, str(trust), url])
    else:
        settings = ["-c", f"http.curloptResolve={where}", "-c", "http.proxy="]
        command = ["git", *settings, "ls-remote", url]
        trusting = {**os.environ, "GIT_SSL_CAINFO": str(trust)}
        await anyio.run_process(command, check=False, env=trusting)


async def ask_strictly(host: str, port: int, trust: Path) -> None:
    context = ssl.create_default_context(cafile=str(trust))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    async with await Net(allow=[("127.0.0.1", port)]).connect("127.0.0.1", port) as plain:
        stream = await TLSStream.wrap(
            plain, hostname=host, ssl_context=context, standard_compatible=False
        )
        await everything(stream, b"GET /x HTTP/1.1\r\n\r\n")


async def test_another_host_is_not_believed(tmp_path: Path) -> None:
    authority = Authority(SystemClock().now())
    server = EchoServer()
    trust = tmp_path / "trust.pem"
    trust.write_text(authority.pem)
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.serve, authority.server_context("api.test"))
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask_strictly("other.test", server.port, trust)
        tasks.cancel_scope.cancel()
    assert not server.requests
