"""One schema for each blueprint: its form, its command, its words for a model and its prompt have
the same blanks."""

from __future__ import annotations

import shlex

import pytest

from deskhand.jobs.blueprints import (
    BLUEPRINTS,
    CRON_DAYS,
    Blueprint,
    describe_blueprint,
    fill_blueprint,
    get_blueprint,
    make_form_schema,
    render_command,
)
from deskhand.jobs.triggers.spec import parse_trigger
from deskhand.types.errors import JobInvalid
from deskhand.types.schedules import Cron, Every, parse_schedule

EXAMPLES = {
    "inbox": "the folder inbox",
    "url": "https://example.org/news",
    "folder": "backups",
    "text": "call Ann",
    "when": "2027-01-31T17:00",
}


def given(of: Blueprint) -> dict[str, str]:
    return {slot.name: EXAMPLES[slot.name] for slot in of.slots if slot.required}


def test_there_are_six() -> None:
    names = [each.name for each in BLUEPRINTS]
    assert names == [
        "morning-brief",
        "inbox-triage",
        "watch-page",
        "backup-check",
        "weekly-review",
        "reminder",
    ]
    with pytest.raises(
        JobInvalid, match=r"no blueprint 'x'; there are: morning-brief, inbox-triage"
    ):
        get_blueprint("x")


@pytest.mark.parametrize("of", BLUEPRINTS, ids=lambda of: of.name)
def test_form_command_words_and_prompt_have_the_same_blanks(of: Blueprint) -> None:
    names = [slot.name for slot in of.slots]
    drawn = make_form_schema(of)
    assert list(drawn["properties"]) == names
    assert drawn["required"] == [slot.name for slot in of.slots if slot.required] == list(given(of))
    lines = describe_blueprint(of).splitlines()[1:]
    assert [line.split(":")[0].strip().rstrip("?") for line in lines] == names
    typed = shlex.split(render_command(of, given(of), "telegram:1"))
    assert typed[:5] == ["deskhand", "jobs", "add", "--blueprint", of.name] and typed[-2:] == [
        "--to",
        "telegram:1",
    ]
    assert dict(word.split("=", 1) for word in typed[6:-2:2]) == given(of)
    filled = fill_blueprint(of, given(of))
    assert "{" not in filled.prompt + filled.schedule + "".join(filled.on)
    for slot in of.slots:
        if slot.kind == "text":
            marked = fill_blueprint(of, {**given(of), slot.name: "MARKED {time} words"})
            assert "MARKED {time} words" in marked.prompt, (
                "a blank says what it says, and is filled in once"
            )
    if filled.schedule:
        parse_schedule(filled.schedule, "Europe/Berlin")
    for line in filled.on:
        parse_trigger(line)
    assert filled.schedule or filled.on


def test_blanks_become_schedules() -> None:
    brief = fill_blueprint(get_blueprint("morning-brief"), {"time": "7:05", "days": "Weekdays"})
    assert parse_schedule(brief.schedule, "Asia/Tokyo") == Cron("5 7 * * 1-5", "Asia/Tokyo")
    assert (
        fill_blueprint(get_blueprint("weekly-review"), {"days": "sunday"}).schedule == "0 16 * * 0"
    )
    assert parse_schedule(
        fill_blueprint(get_blueprint("inbox-triage"), {"inbox": "x", "every": "30 m"}).schedule
    ) == Every(1_800_000)
    assert fill_blueprint(
        get_blueprint("watch-page"), {"url": "https://x.org/", "every": "2h"}
    ).on == ("page https://x.org/ 2h",)
    once = fill_blueprint(get_blueprint("reminder"), {"text": "x", "when": "2027-01-31T17:00"})
    assert (once.schedule, once.once, once.deliver) == ("at 2027-01-31T17:00", True, True)
    again = fill_blueprint(get_blueprint("reminder"), {"text": "x", "when": "every 2h"})
    assert (again.schedule, again.once) == ("every 2h", False)
    for day in CRON_DAYS:
        parse_schedule(fill_blueprint(get_blueprint("morning-brief"), {"days": day}).schedule)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("reminder", {"when": "daily 09:00"}, "'text' is missing: What should I remind you of?"),
        ("reminder", {"text": " ", "when": "x"}, "'text' is missing"),
        ("reminder", {"text": "x" * 2001, "when": "x"}, "too long"),
        ("reminder", {"text": "x", "when": "x\ny"}, "one line"),
        ("reminder", {"text": "x", "whne": "x"}, "has no slot 'whne'; it has: text, when"),
        (
            "reminder",
            {"text": "x", "when": "tomorrow"},
            "'when' (when) cannot be 'tomorrow': it is neither a time nor a schedule",
        ),
        (
            "reminder",
            {"text": "x", "when": "every 2 months"},
            "'when' (when) cannot be 'every 2 months'",
        ),
        (
            "morning-brief",
            {"time": "25:00"},
            "(at what time) cannot be '25:00': it is not a time of day; write one such as 07:30",
        ),
        ("morning-brief", {"time": "7"}, "not a time of day"),
        ("morning-brief", {"days": "someday"}, "choose one of: every day"),
        ("inbox-triage", {"inbox": "x", "every": "0m"}, "not a duration; write one such as 1h"),
        (
            "watch-page",
            {"url": "javascript:alert(1)"},
            "not the URL of a page; write one such as https",
        ),
        ("watch-page", {"url": "https://me:pw@x.org"}, "password"),
        ("watch-page", {"url": "https://x.org 1s"}, "not the URL of a page"),
        ("watch-page", {"url": "http://[x"}, "not a URL"),
        (
            "backup-check",
            {"folder": "../../etc"},
            "a path in the workspace; write one such as backups",
        ),
        ("backup-check", {"folder": "b", "hours": "-1"}, "not a number"),
    ],
)
def test_a_wrong_blank_is_named(name: str, values: dict[str, str], said: str) -> None:
    with pytest.raises(JobInvalid) as caught:
        fill_blueprint(get_blueprint(name), values)
    assert said in str(caught.value)
