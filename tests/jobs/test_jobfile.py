"""JOB.md: read as people and operator-ai write it, written back without loss, and told in words
where it is broken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.jobs.job_file import parse_job, render_job_file, with_enabled
from deskhand.types.errors import JobInvalid
from deskhand.types.identity import Address
from deskhand.types.jobs import (
    Hooks,
    Job,
    format_slot,
    is_contained_path,
    session_job_name,
    validate_job,
)

from ..examples import examples

OPERATOR = """---
name: daily-summary
description: Summarize today's activity
schedule: "0 9 * * *"
agent: operator
model: "anthropic/claude-sonnet-4-6"
max_iterations: 12
hooks:
  prerun: scripts/check.sh
  postrun: scripts/notify.sh
enabled: true
---

Summarize the key events from the last 24 hours.
"""

OURS = """---
for: ann
timezone: Europe/Berlin
every: 90s
on: [webhook, {file: notes/*.md}]
kind: deliver
to: {channel: telegram, account: bot, chat: 12345, group: true}
models: [a/b, gemini/c]
timeout: 5m
grace: 2h
misfire: run_all
overlap: queue_one
session: chat
tokens: 5000
tools: read_file
delete_after_run: yes
alert: false
owner_note: [kept, as, it, is]
---
Good morning.
"""


def test_a_job_of_operator_ai_is_read_as_it_stands() -> None:
    assert parse_job(OPERATOR, "daily-summary").job == Job(
        "daily-summary",
        "Summarize the key events from the last 24 hours.",
        "Summarize today's activity",
        "0 9 * * *",
        agent="operator",
        models=("anthropic/claude-sonnet-4-6",),
        steps=12,
        hooks=Hooks("scripts/check.sh", "scripts/notify.sh"),
    )


def test_all_that_can_be_said_of_a_job() -> None:
    parsed = parse_job(OURS.replace("yes", "true"), "morning")
    assert parsed.job == Job(
        "morning",
        "Good morning.",
        schedule="every 90s",
        timezone="Europe/Berlin",
        on=("webhook", "file notes/*.md"),
        person="ann",
        kind="deliver",
        session="chat",
        to=Address("telegram", "bot", "12345", group=True),
        models=("a/b", "google/c"),
        timeout_s=300.0,
        tokens=5000,
        misfire="run_all",
        grace_s=7200.0,
        overlap="queue_one",
        tools=("read_file",),
        delete_after_run=True,
        alert=False,
        more={"owner_note": ["kept", "as", "it", "is"]},
    )
    assert parsed.notes == ("the key 'owner_note' means nothing here",)
    assert parse_job(render_job_file(parsed.job), "morning").job == parsed.job


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Just a text.", "it has no front matter; it must begin like this"),
        ("---\nschedule: daily 09:00\nNo end.", "it has no front matter"),
        ("---\nschedule: */30 * * * *\n---\nx", "needs quotes"),
        ("---\na: [1\n---\nx", "cannot be read"),
        ("---\n- a\n---\nx", "holds no keys and values"),
        ("---\nschedule: 0 30 2 *\n---\nx", "'0 30 2 \\*' has 4 fields"),
        ("---\nschedule: 0 0 30 2 *\n---\nx", "no month that it names has such a day"),
        ("---\nschedule: daily 09:00\ntimezone: Mars\n---\nx", "unknown timezone 'Mars'"),
        ("---\nschedule: daily 09:00\n---\n  \n", "it has no text"),
        ("---\nmisfire: often\n---\nx", "`misfire: often` must be one of: skip, run_once, run_all"),
        ("---\nsteps: many\n---\nx", "`steps` must be a whole number, and is one line of text"),
        ("---\nsteps: 0\n---\nx", "`steps: 0` is out of range"),
        ("---\ntimeout: soon\n---\nx", "`timeout: soon` is no duration"),
        ("---\ntimeout: 900d\n---\nx", "out of range"),
        ("---\nkind: deliver\n---\nx", "needs `to:`"),
        ("---\nsession: chat\n---\nx", "`session: chat` needs `to:`"),
        ("---\nsession: a b\n---\nx", "cannot name a session"),
        ("---\nto: telegram\n---\nx", "names no chat"),
        ("---\nto: {room: 5}\n---\nx", "`to` has no 'room'"),
        ("---\nhooks: {prerun: ../../bin/sh}\n---\nx", "must be a path within the folder"),
        ("---\nhooks: {prerun: /bin/sh}\n---\nx", "must be a path within the folder"),
        (
            "---\nhooks: {before: a.sh}\n---\nx",
            "`hooks` has no 'before'; it has prerun and postrun",
        ),
        ("---\nenabled: maybe\n---\nx", "`enabled: maybe` must be true or false"),
        ("---\nschedule: [1, 2]\n---\nx", "`schedule` must be one line of text, and is a list"),
        ("---\nhooks: a.sh\n---\nx", "`hooks` must be keys and values, and is one line of text"),
        (
            "---\nschedule: daily 09:00\nat: 2030-01-01\n---\nx",
            "says again, and differently, what 'schedule' is",
        ),
        ("---\nmodel: a/b\nmodels: [c/d]\n---\nx", "says again, and differently, what 'models' is"),
        ("---\ntimezone: Mars\n---\nx", "unknown timezone 'Mars'"),
        ("---\ntimeout: 2d\n---\nx", "`timeout: 172800` seconds is out of range"),
        ("---\nkind: chore\n---\n", "needs `chore:`"),
        ("---\na: &a [*a]\n---\nx", "refers to itself"),
        ("---\non: [[a]]\n---\nx", "write one line of text"),
    ],
)
def test_what_is_broken_is_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(JobInvalid, match=told):
        parse_job(text, "x")


@pytest.mark.parametrize(
    ("word", "on"), [("off", False), ("No", False), ("0", False), ("ON", True), ("yes", True)]
)
def test_switches_are_written_as_people_write_them(word: str, on: bool) -> None:
    job = parse_job(f"---\nEnabled: {word}\nalert: {word}\n---\nx", "x").job
    assert (job.enabled, job.alert) == (on, on)


def test_what_is_odd_is_noted_and_kept() -> None:
    parsed = parse_job("---\nname: other\nshedule: daily 09:00\n---\nx", "mine")
    assert parsed.notes == (
        "the key 'shedule' means nothing here; did you mean 'schedule'?",
        "it is called like its folder, 'mine', and not 'other'",
        "it has neither a schedule nor an event, so it runs only when somebody runs it",
    )
    assert parse_job(render_job_file(parsed.job), "mine").job == parsed.job


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "a b", "x" * 65, "a\n"])
def test_what_cannot_name_a_folder_names_no_job(name: str) -> None:
    with pytest.raises(JobInvalid, match="cannot name a job"):
        validate_job(Job(name, "x"))


def test_switching_off_changes_one_line() -> None:
    kept = OPERATOR.replace("enabled: true", "# mind the gap\nenabled: true")
    assert with_enabled(kept, False) == kept.replace("enabled: true", "enabled: false")
    bare = "---\nschedule: daily 09:00\n---\n\nText: enabled: maybe\n---\n"
    off = with_enabled(bare, False)
    assert (
        not parse_job(off, "x").job.enabled
        and parse_job(off, "x").job.prompt == parse_job(bare, "x").job.prompt
    )
    assert parse_job(with_enabled(off, True), "x").job.enabled
    assert not parse_job(with_enabled("---\n---\nText", False), "x").job.enabled


_words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)


@given(
    words=st.tuples(_words, _words.filter(str.strip), _words),
    at=st.sampled_from(("0 9 * * *", "*/5 * * * *", "every 90s", "startup", "at 2030-01-01T09:00")),
    steps=st.none() | st.integers(1, 10_000),
    hook=st.sampled_from(("", "scripts/a.sh", "b c.py")),
    switches=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_written_is_read_as_the_same(
    words: tuple[str, str, str],
    at: str,
    steps: int | None,
    hook: str,
    switches: tuple[bool, bool, bool],
) -> None:
    description, prompt, agent = words
    off, alert, once = switches
    about = {
        "description": description.strip(),
        "schedule": at,
        "agent": agent.strip(),
        "steps": steps,
    }
    job = Job(
        "j",
        prompt.strip(),
        **about,  # type: ignore[arg-type]
        hooks=Hooks(hook),
        enabled=off,
        alert=alert,
        delete_after_run=once,
    )
    assert parse_job(render_job_file(job), "j").job == job


@given(st.text(max_size=60) | st.text("-:\n []{}&*#!|>'\"aschedul", max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_any_file_is_a_job_or_a_sentence(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nDo it."):
        try:
            parse_job(whole, "x")
        except JobInvalid as error:
            assert str(error)


def test_names_of_paths_slots_and_sessions() -> None:
    assert [
        is_contained_path(path) for path in ("a.sh", "a/b.sh", "/a", "../a", "a/../../b", "~/a", "")
    ] == [
        True,
        True,
    ] + [False] * 5
    assert (
        format_slot(1773469800.0) == "2026-03-14T06:30:00Z"
        and format_slot(0.25) == "1970-01-01T00:00:00.250Z"
    )
    assert (
        session_job_name("default/job:morning:1773469800") == "morning"
        and session_job_name("default/web:owner:job:x") == ""
    )
