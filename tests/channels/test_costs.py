"""A channel that is not configured costs nothing: none of its code is loaded, nor what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KINDS = ("telegram", "slack", "discord", "matrix", "mqtt", "mail", "twitch")
LIBRARIES = ("telegram", "websockets", "aiomqtt", "paho", "aiosmtplib", "imaplib", "smtplib")
"""What only channels need."""
LEFT_OUT = ("rich", "pygments", "cryptography")
"""What the library of Telegram would import, and never needs here."""
PROGRAM = """
import json, sys
from pathlib import Path
import anyio
import msgspec
import deskhand.cli.worker_process
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import Parts, open_app, with_channels
from deskhand.testing.scripted import ScriptedModel

async def main():
    config = msgspec.convert(json.loads(sys.argv[2]), Config, strict=False)
    tokens = {"TELEGRAM_BOT_TOKEN": "1:abcdef"}
    settings = Settings(Home(Path(sys.argv[1])), config, environment=tokens)
    parts = with_channels(Parts(lambda name: ScriptedModel(), {}), settings)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        tasks.cancel_scope.cancel()

anyio.run(main)
print(json.dumps(sorted(sys.modules)))
"""


def load(home: Path, channels: object) -> set[str]:
    """The modules of a Deskhand that has begun to work with these channels."""
    config = json.dumps({"channels": channels})
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(home), config],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def kinds_in(modules: set[str]) -> list[str]:
    return [kind for kind in KINDS if f"deskhand.channels.{kind}" in modules]


def test_without_channels_nothing_of_any_is_loaded(tmp_path: Path) -> None:
    modules = load(tmp_path, {})
    assert kinds_in(modules) == []
    assert [name for name in LIBRARIES if name in modules] == []


def test_only_the_one_that_is_configured_is_loaded(tmp_path: Path) -> None:
    modules = load(tmp_path, {"telegram": {"base_url": "http://127.0.0.1:9"}})
    assert kinds_in(modules) == ["telegram"]
    assert [name for name in LEFT_OUT if name in modules] == []


def test_what_one_library_does_without_others_can_import() -> None:
    program = "import deskhand.channels.telegram.channel, rich, cryptography.hazmat.backends"
    subprocess.run([sys.executable, "-P", "-c", program], timeout=60, check=True)
