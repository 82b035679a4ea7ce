"""Jobs on the page: made from a few blanks, run, switched, changed and removed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect

from .conftest import Desk

pytestmark = pytest.mark.timeout(120)


def test_a_newcomer_sees_what_jobs_are_good_for(page: Page) -> None:
    """Each card says when it runs and what it costs, and its button opens the filled form."""
    page.goto("/#/settings/jobs")
    brief = page.locator(".blueprint", has_text="Morning brief")
    expect(brief).to_contain_text("One short message that begins the day")
    expect(brief).to_contain_text("at 07:30 every day")
    expect(brief).to_contain_text("30 runs in 30 days")
    expect(page.locator(".blueprint", has_text="Reminder")).to_contain_text("asks no model")
    watch = page.locator(".blueprint", has_text="Watch a page")
    expect(watch).to_contain_text("when the page has changed")
    brief.get_by_role("button", name="Set up Morning brief").click()
    expect(page.get_by_label("At what time?")).to_have_value("07:30")
    expect(page.get_by_role("status").filter(has_text="Forecast")).to_contain_text("07:30")
    page.get_by_role("button", name="Back").click()
    watch.get_by_role("button", name="Set up Watch a page").click()
    expect(page.get_by_label("Which page?")).to_have_value("")
    expect(page.get_by_role("status").filter(has_text="Forecast")).to_have_count(0)


def test_a_job_is_made_run_switched_and_removed(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/jobs")
    expect(page.get_by_text("There are no jobs yet.")).to_be_visible()
    page.get_by_role("button", name="New job").click()
    kinds = page.get_by_role("list", name="Kinds of jobs")
    expect(kinds).to_have_count(1)
    expect(kinds.get_by_role("button")).to_have_count(7)
    expect(kinds.get_by_role("button").first).to_be_focused()
    kinds.get_by_role("button", name="Weekly review").click()
    expect(page.get_by_label("On which day?")).to_have_value("friday")
    page.get_by_label("At what time?").fill("17:30")
    page.get_by_label("What should it look at?").fill("all that we said")
    page.get_by_label("Send answers to").focus()
    shown = page.get_by_role("status").filter(has_text="Forecast")
    expect(shown).to_contain_text("at 17:30 on Friday")
    expect(shown).to_contain_text("--blueprint weekly-review")
    page.get_by_role("button", name="Create job").click()
    row = (
        page.get_by_role("region", name="Jobs")
        .get_by_role("listitem")
        .filter(has_text="weekly-review")
        .first
    )
    expect(row).to_contain_text("at 17:30 on Friday")
    expect(row).to_contain_text("It has not run yet.")
    page.get_by_role("button", name="Run weekly-review now").click()
    expect(row).to_contain_text(re.compile(r"done: You said"), timeout=30_000)
    row.get_by_role("link", name="read").first.click()
    expect(page.get_by_text("all that we said").first).to_be_visible()
    page.goto("/#/settings/jobs")
    page.get_by_role("switch", name="weekly-review is on").click()
    expect(page.get_by_role("switch", name="weekly-review is on")).to_have_attribute(
        "aria-checked", "false"
    )
    page.get_by_role("button", name=re.compile(r"^weekly-review.*at 17:30")).click()
    file = page.get_by_label("Its file")
    expect(file).to_have_value(re.compile("enabled: false"))
    expect(page.get_by_text("So far: 1 run.")).to_be_visible()
    file.fill(file.input_value().replace("30 17", "61 17"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("minute")
    file.fill(file.input_value().replace("61 17", "45 17"))
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("at 17:45 on Friday")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Yes, remove it").click()
    expect(page.get_by_text("There are no jobs yet.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("at 17:45 on Friday")
    expect(page.get_by_text("weekly-review is removed.")).to_have_count(0)


def test_paused_jobs_say_why_and_are_resumed(page: Page, desk: Desk) -> None:
    env = {**os.environ, "DESKHAND_HOME": str(desk.home), "HOME": str(desk.home)}
    subprocess.run(
        [sys.executable, "-m", "deskhand", "jobs", "pause", "on holiday"], env=env, check=True
    )
    page.goto("/#/settings/jobs")
    note = page.get_by_role("status").filter(has_text="All jobs are paused: on holiday.")
    expect(note).to_be_visible()
    page.goto("/#/settings/health")
    expect(page.get_by_role("listitem").filter(has_text="paused: on holiday")).to_contain_text(
        "deskhand jobs resume"
    )
    page.goto("/#/settings/jobs")
    page.get_by_role("button", name="Resume").click()
    expect(note).to_have_count(0)
    page.goto("/#/settings/health")
    expect(page.get_by_text("paused: on holiday")).to_have_count(0)


def test_what_reached_nobody_is_shown_until_it_is_dismissed(page: Page, desk: Desk) -> None:
    """Here no channel reaches the owner."""
    file = desk.home / "jobs" / "broken" / "JOB.md"
    file.parent.mkdir()
    file.write_text("---\nschedule: daily 09:00\nfor: ghost\n---\n\nsay hello\n")
    page.goto("/#/settings/jobs")
    page.get_by_role("button", name="Run broken now").click()
    row = (
        page.get_by_role("region", name="Jobs")
        .get_by_role("listitem")
        .filter(has_text="broken")
        .first
    )
    expect(row).to_contain_text("went wrong", timeout=30_000)
    page.reload()
    banner = page.get_by_role("status", name="Alerts")
    expect(banner).to_contain_text("The job 'broken' failed")
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Run broken now")).to_be_visible()
    expect(banner).to_have_count(0)
    shutil.rmtree(file.parent)


def test_a_blank_that_is_wrong_says_so_before_anything_is_made(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/jobs")
    page.get_by_role("button", name="New job").click()
    page.get_by_role("button", name="Reminder").click()
    page.get_by_label("What should I remind you of?").fill("<b>call Ann</b>")
    page.get_by_label("When?").fill("soon")
    page.get_by_label("Send answers to").focus()
    expect(page.locator("p.note[role=alert]")).to_contain_text("'soon'")
    page.get_by_label("When?").fill("every 2h")
    page.get_by_label("Send answers to").focus()
    expect(page.get_by_role("status").filter(has_text="Forecast")).to_contain_text("no tokens")
    expect(page.locator("p.note[role=alert]")).to_have_count(0)
