"""The chat in the terminal speaks the language of the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.cli.paint import Paint
from deskhand.cli.terminal_language import terminal_say
from deskhand.cli.view import View
from deskhand.config.config import Config, Home, Settings
from deskhand.languages.sentences import say_notice
from deskhand.types import events as e
from deskhand.types.events import AnyEvent, Recorded

from .test_ask import environment
from .test_view import ME, finished, replied, said
from .test_view import call as tool_call


@pytest.mark.parametrize(
    ("names", "configured", "heard"),
    [
        ({}, "en", "Stopped."),
        ({}, "de", "Gestoppt."),
        ({"LANG": "de_AT.UTF-8"}, "en", "Gestoppt."),
        ({"LANG": "de_AT.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en", "Stopped."),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "de"}, "en", "Gestoppt."),
        ({"LANG": "C.UTF-8"}, "de", "Gestoppt."),
        ({"LANG": "../../x"}, "en", "Stopped."),
    ],
)
def test_which_language(tmp_path: Path, names: dict[str, str], configured: str, heard: str) -> None:
    settings = Settings(Home(tmp_path), Config(language=configured), (), names)
    assert terminal_say(settings)("Stopped.") == heard


def test_a_conversation_in_german() -> None:
    view = View(Paint(lambda: 70, None), lambda: 0.0, say=lambda text: say_notice(text, "de"))

    def see(*events: AnyEvent) -> str:
        lines = [
            line
            for n, event in enumerate(events, 1)
            for line in view.render(Recorded(n, "s", n, 0.0, event))
        ]
        return "\n".join(line.rstrip() for line in lines)

    assert see(said("Stopped."), replied("Stopped.")).count("Stopped.") == 2
    view.render(Recorded(3, "s", 3, 0.0, replied("", tool_call(command="ls"))))
    asked = see(
        e.ApprovalAsked("ask_1", "c1", "b", 'shell {"command":"ls"}', "rule 1: ask shell (*)", 0.0)
    )
    assert "diesen Aufruf erlauben?" in asked and 'shell {"command":"ls"}' in asked
    assert "Grund: Regel 1: ask shell (*)" in asked
    assert "Erlauben?" in view.render_live(5)[0] and "n nein" in view.render_live(5)[0]
    assert "einmal erlaubt" in see(e.ApprovalAnswered(1, "ask_1", "once", ME, 0.0))
    assert "keine Ausgabe" in see(finished(""))
    assert "Gestoppt." in see(e.TurnEnded("stopped", (1,), "Stopped."))
    assert "heißt „Rex“" in see(
        e.CommandRun(1, ME, "title", "Rex", "This conversation is called “Rex”.")
    )


def test_asked_in_a_german_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deskhand", "ask", "-m", "scripted/echo", "/plan on"],
        capture_output=True,
        env=environment(tmp_path) | {"LANG": "de_DE.UTF-8"},
        timeout=50,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.stdout.decode() == "Ab jetzt lese ich nur, bis du meinen Plan freigibst.\n"
