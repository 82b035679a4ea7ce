"""`deskhand voice` and `deskhand talk`, as they are typed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio.to_thread
import pytest

from deskhand.testing.speech import make_wav
from deskhand.testing.speech_server import SpeechServer

from .terminal import Terminal

DESKHAND = [sys.executable, "-m", "deskhand"]


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DESKHAND_HOME": str(home / "desk"),
        "KEY": "k",
    }


def run(home: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DESKHAND, *argv], env=environment(home), capture_output=True, text=True, timeout=60
    )


def test_a_fresh_machine_is_told_what_is_missing(tmp_path: Path) -> None:
    said = run(tmp_path, "voice", "list").stdout
    assert "deskhand voice pull base" in said
    assert "Listens: local (there are no weights here that hear: deskhand voice pull)" in said
    assert "Speaks: local\n" in said  # espeak-ng
    talk = run(tmp_path, "talk")
    assert talk.returncode == 2 and "talk needs a terminal" in talk.stderr
    doctor = run(tmp_path, "doctor").stdout
    assert "voice messages are not listened to" in doctor


def test_words_become_a_file(tmp_path: Path) -> None:
    out = tmp_path / "kettle.ogg"
    said = run(tmp_path, "voice", "say", "The kettle is on.", "-o", str(out))
    assert said.returncode == 0 and out.read_bytes().startswith(b"OggS"), said.stderr
    heard = run(tmp_path, "voice", "hear", str(out))
    assert heard.returncode == 1 and "deskhand voice pull" in heard.stderr
    lost = run(tmp_path, "voice", "say", "x", "-o", str(tmp_path / "no" / "folder.ogg"))
    assert lost.returncode == 1 and "cannot be written" in lost.stderr


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("pull", "nope"), "There is no voice file 'nope'"),
        (("remove", "nope"), "There is no voice file 'nope'"),
        (("remove", "base"), "base was not here"),
        (("say", "x" * 4001, "-o", "x"), "at most 4,000 characters"),
    ],
)
def test_bad_words_end_in_a_sentence(tmp_path: Path, argv: tuple[str, ...], said: str) -> None:
    ran = run(tmp_path, "voice", *argv)
    assert said in ran.stdout + ran.stderr and "Traceback" not in ran.stderr


async def test_a_spoken_conversation(tmp_path: Path) -> None:
    """What is recorded is heard by a server of one's own, answered, and played."""
    said, played = tmp_path / "said.wav", tmp_path / "played"
    said.write_bytes(make_wav("What time is it?" + " " * 5000))
    played.mkdir()
    home = tmp_path / "desk"
    home.mkdir()
    async with SpeechServer() as server:
        server.sounds.knows(said.read_bytes(), "What time is it?")
        (home / "deskhand.yaml").write_text(
            "defaults: {models: [scripted/echo]}\n"
            "speech: {hear: own/parakeet, say: own/kokoro}\n"
            f"providers: {{own: {{base_url: '{server.url('own')}'}}}}\n"
        )
        recorder, player = f"cp {said}", f"cp -t {played}"
        argv = (*DESKHAND, "talk", "-s", "kitchen", "--recorder", recorder, "--player", player)

        def talk() -> str:
            terminal = Terminal(argv, environment(tmp_path), 120, 40)
            try:
                terminal.wait_for("Press Enter and speak.")
                terminal.type("\r")
                terminal.wait_for("Recording.")
                terminal.type("\r")
                terminal.wait_for("You said: What time is it?")
                while terminal.all.count("Press Enter and speak.") < 2:
                    time.sleep(0.02)
                terminal.type("\x04")
                terminal.wait_for("deskhand talk --session kitchen")
                return terminal.all
            finally:
                terminal.close()

        shown = await anyio.to_thread.run_sync(talk)
        spoken = [each.body for each in server.asked if each.path.endswith("/audio/speech")]
    assert "Traceback" not in shown and len(spoken) == 1 and b"What time is it?" in spoken[0]
    assert (played / "answer.wav").read_bytes().startswith(b"RIFF")
