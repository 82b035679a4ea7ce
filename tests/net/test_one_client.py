"""Nobody else reaches the network: the linter says so, and a few files say why they may."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "deskhand"
CLIENTS = [
    *(
        "aiohttp",
        "httpx",
        "requests",
        "urllib3",
        "urllib.request",
        "http.client",
        "curl_cffi",
        "ftplib",
        "smtplib",
    ),
    *(
        "imaplib",
        "poplib",
        "telnetlib",
        "xmlrpc.client",
        "websockets.client",
        "websockets.asyncio.client",
    ),
    "websockets.sync.client",
]
CALLS = [
    "anyio.connect_tcp",
    "asyncio.open_connection",
    "socket.create_connection",
    "websockets.connect",
]
MAY = {
    "net/client.py",  # the guarded one
    "net/exchange.py",  # its one exchange: is given judged addresses, and knows no others
    "net/fingerprint.py",  # is given judged addresses, and knows no others
    "net/download.py",  # trusts nothing but the hash
    "models/transport.py",  # addresses that a person configured
    "models/local_servers.py",  # servers of models on this machine
    "models/sight.py",  # servers of models that a person configured
    "supervision/doctor.py",  # addresses that a person configured
    "channels/web_api.py",  # the platform's own address, or one that a person configured
    "channels/discord/channel.py",  # a form for it
    "channels/discord/gateway.py",  # the address that Discord gives to its bot
    "channels/mail/channel.py",  # the server of the person's own mailbox
    "channels/mail/imap.py",  # the same
    "channels/slack/channel.py",  # the address that Slack gives to its app
    "channels/telegram/translate.py",  # names of errors
    "channels/twitch/channel.py",  # Twitch's own address
}


@pytest.mark.parametrize(
    "source",
    [
        *(f"import {name}\n\nprint({name})" for name in CLIENTS),
        *(f"from {name} import get\n\nget()" for name in CLIENTS),
        *(f"import {name.partition('.')[0]}\n\n{name}()" for name in CALLS),
        *("from {} import {} as it\n\nit()".format(*name.rsplit(".", 1)) for name in CALLS),
        "def late():\n    import aiohttp\n\n    return aiohttp",
    ],
)
@pytest.mark.parametrize("where", ["tools/fetch.py", "web/fetch.py"])
def test_the_linter_forbids_another_client(source: str, where: str) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    name = f"src/deskhand/{where}"
    command = [
        str(ruff),
        "check",
        "--no-cache",
        "--output-format=concise",
        "--stdin-filename",
        name,
        "-",
    ]
    done = subprocess.run(
        command, input=source + "\n", capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert "banned-api" in done.stdout or "TID251" in done.stdout, done.stdout
    assert "net.client.Net" in done.stdout


def test_only_a_few_files_are_excepted_and_each_says_why() -> None:
    excepted = set()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("testing/"):
            continue
        source = path.read_text()
        if not _reached(source).isdisjoint({*CLIENTS, *CALLS}):
            lines = [line for line in source.splitlines() if "noqa: TID251" in line]
            assert lines and all(" -- " in line for line in lines), f"{name} says no reason"
            excepted.add(name)
    assert excepted == MAY


def _reached(source: str) -> set[str]:
    """Every module that is imported, at the top or later, and every name with a dot."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node))
    return found
