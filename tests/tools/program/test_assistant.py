"""What programs ask of the assistant: lines that are meant are chosen, and each wish becomes a call
of a tool."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from deskhand.tools.program.acts import call_for_act, call_for_need
from deskhand.tools.program.inside.assistant import choose_line
from deskhand.tools.program.inside.values import Stop
from deskhand.types.errors import TimeUnclear
from deskhand.types.programs import ProgramCall

from .folder import run

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))
REMINDERS = "".join(
    f"- {name} (on)\n  when: {when}\n  next: 2026-11-24 09:00\n  what: {what}\n"
    for name, when, what in (
        ("j1", "once, at 2026-11-24 09:00", "Call the dentist"),
        ("j2", "at 12:00 every day (UTC)", "Drink water"),
        ("j3", "at 09:00 on Friday (UTC)", "Call mum"),
    )
)
LINES = [
    "j1: Call the dentist (once, at 2026-11-24 09:00)",
    "j2: Drink water (at 12:00 every day (UTC))",
    "j3: Call mum (at 09:00 on Friday (UTC))",
]
FACTS = (
    "#4 (2026-11-20) My sister lives in Rome\n#9 (2026-11-21) The wifi password is blue\nand no "
    "more\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        *(
            ("dentist", 0),
            ("the reminder about the dentist", 0),
            ("drinking water", 1),
            ("DRINK", 1),
        ),
        *(("call mum", 2), ("j2", 1), ("calling the dentist please", 0)),
    ],
)
def test_the_line_that_is_meant(words: str, line: int) -> None:
    lines = LINES
    assert choose_line(lines, words, "reminder") == lines[line]


@pytest.mark.parametrize(
    ("lines", "words", "sentence"),
    [
        ((), "", "there is no reminder"),
        ((), "tea", "there is no reminder about tea"),
        (LINES, "tea", "there is no reminder about tea"),
        (LINES, "", "there are 3 of them; say which reminder you mean: j1"),
        (LINES, "my reminder", "there are 3 of them"),
        (LINES, "the call", "there are 2 of them; say which reminder you mean: j1"),
    ],
)
def test_what_is_not_clear_is_asked_about(lines: list[str], words: str, sentence: str) -> None:
    with pytest.raises(Stop) as stop:
        choose_line(lines, words, "reminder")
    assert str(stop.value).startswith(sentence)


def test_the_only_one_needs_no_words() -> None:
    assert (
        choose_line(["j1: tea"], "", "reminder")
        == choose_line(["j1: tea"], "it", "reminder")
        == "j1: tea"
    )


@pytest.mark.parametrize(
    ("program", "need"),
    [
        ("say(reminders())", {"act": "reminders"}),
        ("cancel('dentist')", {"act": "reminders"}),
        ("say(recall('sister'))", {"act": "recall", "text": "sister"}),
        ("forget('sister')", {"act": "recall", "text": "sister"}),
        ("say(changes())", {"act": "changes"}),
        ("say(fetch('http://x.example'))", {"act": "fetch", "url": "http://x.example"}),
        ("write('a', 'x')\nsay(ask('Which?'))", {"act": "ask", "text": "Which?"}),
    ],
)
def test_what_gives_something_back_stops_the_program_until_it_is_there(
    program: str, need: dict[str, str]
) -> None:
    came = run(program)
    assert (came.needs, came.acts, came.said, came.failed) == (need, [], "", "")


@pytest.mark.parametrize(
    ("program", "answers", "said", "acts"),
    [
        ("say(len(reminders()))", [REMINDERS], "3", []),
        ("say(reminders())", ["There are no reminders.\n"], "", []),
        ("say(recall('x'))", [FACTS], "My sister lives in Rome, The wifi password is blue", []),
        ("say(changes())", ["nothing was changed in this conversation"], "", []),
        ("say(ask('Which?'), ask('When?'), ask('Which?'))", ["this", "now"], "this now this", []),
        ("cancel('dentist')", [REMINDERS], "", [{"act": "cancel", "which": LINES[0]}]),
        (
            "for line in reminders(): cancel(line)",
            [REMINDERS],
            "",
            [{"act": "cancel", "which": line} for line in LINES],
        ),
        ("forget('wifi')", [FACTS], "", [{"act": "forget", "which": FACTS.splitlines()[1]}]),
        ("undo()\nundo()", [], "", [{"act": "undo"}]),
        (
            "send('hi')\nsend('hi', 'Bob')",
            [],
            "",
            [{"act": "send", "text": "hi", "to": ""}, {"act": "send", "text": "hi", "to": "Bob"}],
        ),
    ],
)
def test_with_the_answers_it_goes_on(
    program: str, answers: list[str], said: str, acts: list[dict[str, Any]]
) -> None:
    came = run(program, answers=answers)
    assert (came.said, came.acts, came.needs, came.stopped, came.failed) == (
        said,
        acts,
        None,
        "",
        "",
    )


def cron(**given: Any) -> dict[str, Any]:
    return {"mode": "add", "deliver": True, **given}


@pytest.mark.parametrize(
    ("act", "call"),
    [
        (
            {"act": "remind", "when": "tomorrow at 9", "text": "remind me to call mum"},
            (
                "cron",
                cron(
                    name="Call mum",
                    message="Call mum",
                    schedule_mode="at",
                    schedule_expr="2026-11-24T09:00",
                ),
            ),
        ),
        (
            {"act": "remind", "when": "in 20 minutes", "text": "cake"},
            (
                "cron",
                cron(
                    name="Cake",
                    message="Cake",
                    schedule_mode="at",
                    schedule_expr="2026-11-23T10:20",
                ),
            ),
        ),
        (
            {"act": "cancel", "which": "j1: on Tuesday: x"},
            ("cron", {"mode": "remove", "job_id": "j1"}),
        ),
        ({"act": "remember", "text": "tea"}, ("save_memory", {"content": "tea"})),
        ({"act": "forget", "which": FACTS.splitlines()[0]}, ("forget_memory", {"memory_id": 4})),
        ({"act": "undo"}, ("undo_change", {})),
        ({"act": "send", "text": "hi", "to": ""}, ("send_message", {"text": "hi"})),
        (
            {"act": "send", "text": "hi", "to": "Bob"},
            ("send_message", {"text": "hi", "chat": "Bob"}),
        ),
    ],
)
def test_each_wish_is_a_call(act: dict[str, str], call: tuple[str, dict[str, Any]]) -> None:
    made = call_for_act(act, NOW)
    assert (made.tool, made.arguments) == call


@pytest.mark.parametrize("act", ["remind", "every"])
def test_what_comes_again_and_again_has_a_schedule(act: str) -> None:
    made = call_for_act({"act": act, "when": "every monday at 8", "text": "water"}, NOW)
    assert (
        made.tool == "cron"
        and "schedule_mode" not in made.arguments
        and made.arguments["schedule_expr"]
    )
    assert made.words.startswith("I will tell you ") and made.words.endswith(": Water")


def test_the_words_say_what_it_comes_to() -> None:
    assert call_for_act({"act": "remember", "text": "tea"}, NOW).words == "I will remember: tea"
    assert call_for_act({"act": "forget", "which": FACTS.splitlines()[0]}, NOW).words == (
        "I forgot this: My sister lives in Rome"
    )
    assert call_for_act({"act": "undo"}, NOW).words == "", "the tool says what it put back"
    assert (
        "tomorrow"
        in call_for_act({"act": "remind", "when": "tomorrow at 9", "text": "x"}, NOW).words
    )


@pytest.mark.parametrize("when", ["soon", "", "yesterday"])
def test_a_time_that_is_not_clear_is_not_guessed(when: str) -> None:
    with pytest.raises(TimeUnclear):
        call_for_act({"act": "remind", "when": when, "text": "x"}, NOW)


def test_a_reminder_of_nothing_is_refused() -> None:
    with pytest.raises(TimeUnclear, match="what I am to remind you of"):
        call_for_act({"act": "remind", "when": "tomorrow at 9", "text": " "}, NOW)


@pytest.mark.parametrize("act", [{"act": "shell"}, {"act": ""}, {}])
def test_what_there_is_not_cannot_be_asked_for(act: dict[str, str]) -> None:
    for make in (call_for_need, lambda given: call_for_act(given, NOW)):
        with pytest.raises((ValueError, KeyError)):
            make(act)


@pytest.mark.parametrize(
    ("need", "call"),
    [
        ({"act": "reminders"}, ProgramCall("cron", {"mode": "list"})),
        ({"act": "recall", "text": "tea"}, ProgramCall("search_memories", {"query": "tea"})),
        ({"act": "changes"}, ProgramCall("list_changes", {})),
        ({"act": "fetch", "url": "http://x"}, ProgramCall("web_fetch", {"url": "http://x"})),
        ({"act": "ask", "text": "Which?"}, ProgramCall("ask_user", {"question": "Which?"})),
    ],
)
def test_what_is_needed_is_a_call(need: dict[str, str], call: ProgramCall) -> None:
    assert call_for_need(need) == call
