"""`deskhand model` and `deskhand ask` as people run them, with the real engine on a tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deskhand.models.weights import WeightsFolder
from deskhand.testing.tiny_gguf import make_tiny_gguf

NAME = "qwen2.5-coder-0.5b"


def deskhand(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "DESKHAND_HOME": str(home),
        "DESKHAND_CACHE": str(home / "cache"),
    }
    command = [sys.executable, "-m", "deskhand", *words]
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_list_and_use(tmp_path: Path) -> None:
    listed = deskhand(tmp_path, "model", "list")
    assert (
        listed.returncode == 0
        and "Chosen: none" in listed.stdout
        and "embedded/qwen2.5-coder-1.5b" in listed.stdout
    )
    used = deskhand(tmp_path, "model", "use", f"embedded/{NAME}")
    assert used.returncode == 0 and f"deskhand model pull {NAME}" in used.stderr
    assert yaml.safe_load((tmp_path / "deskhand.yaml").read_text()) == {
        "defaults": {"models": [f"embedded/{NAME}"]}
    }
    assert f"Chosen: embedded/{NAME}" in deskhand(tmp_path, "model", "list").stdout
    assert deskhand(tmp_path, "model", "use", "nonsense").returncode == 2


def test_pull_refuses_another_file(tmp_path: Path) -> None:
    tiny = make_tiny_gguf(tmp_path / "tiny.gguf")
    refused = deskhand(tmp_path, "model", "pull", NAME, "--file", str(tiny))
    assert refused.returncode == 1 and "it is a different file" in refused.stderr


@pytest.mark.timeout(90)
def test_ask_with_the_engine(tmp_path: Path) -> None:
    """From the command line through the real engine, in the place of real weights a model that
    talks nonsense: it says something, asks something or calls a tool; in every case the turn ends
    or rests, and the engine ends."""
    weights = WeightsFolder(tmp_path / "cache" / "models")
    weights.folder.mkdir(parents=True)
    make_tiny_gguf(weights.path(NAME), context=16384)
    with weights.path(NAME).open("r+b") as file:
        file.truncate(weights.find(NAME).size_bytes)
    asked = deskhand(tmp_path, "ask", "--json", "--model", f"embedded/{NAME}", "hello")
    events = [json.loads(line)["event"] for line in asked.stdout.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["options_set", "message_received", "model_replied"], asked
    assert kinds[-1] in ("turn_ended", "question_asked"), asked
    assert events[2]["model"] == f"embedded/{NAME}"
    tried = deskhand(tmp_path, "model", "test", f"embedded/{NAME}")
    assert tried.returncode == 0 and "first words after" in tried.stdout


def test_ask_without_weights_says_what_to_do(tmp_path: Path) -> None:
    asked = deskhand(tmp_path, "ask", "--model", f"embedded/{NAME}", "hello")
    assert asked.returncode == 2 and f"deskhand model pull {NAME}" in asked.stdout + asked.stderr
