"""The programs of a small model on the page: what they did, how they were tried, and what is asked
before a loss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, expect

from .conftest import Desk, answer, desk_at, say, state_of, watched
from .states import LOOKS
from .test_fold import finished, folded, received, replied
from .test_looks import AXE, RUN

pytestmark = pytest.mark.timeout(120)
BEFORE = "rain\nmore rain\n"
WORDS = """async ([name, args, status, text]) => {
  const { lineOf } = await import("/js/programs.js");
  return lineOf({ name, args }, status, text);
}"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A Deskhand whose model is a small one."""
    home = tmp_path_factory.mktemp("small")
    (home / "small").touch()
    found = desk_at(home)
    yield found
    found.kill()


@pytest.fixture(scope="module")
def state(browser: Browser, small: Desk) -> StorageState:
    return state_of(browser, small)


@pytest.fixture
def context(browser: Browser, small: Desk, state: StorageState) -> Iterator[BrowserContext]:
    small.release()
    made = browser.new_context(
        storage_state=state, base_url=small.url, reduced_motion="reduce", bypass_csp=True
    )
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    opened = context.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_label("Message to Deskhand").wait_for()
    yield opened
    assert broken == []


@pytest.fixture
def workspace(small: Desk) -> Path:
    found = small.home / "agents" / "default" / "workspace"
    (found / "tally.txt").unlink(missing_ok=True)
    (found / "sum.txt").unlink(missing_ok=True)
    (found / "diary.txt").write_text(BEFORE)
    return found


def tell(page: Page, text: str) -> None:
    """Say it, and wait for the end: each rehearsal starts a process in the sandbox."""
    say(page, text)
    page.locator(".did").wait_for()


def look(page: Page) -> None:
    """Nothing serious stands in the way in any look, and nothing is wider than the screen."""
    page.evaluate(AXE.read_text())
    for scheme, width, height in LOOKS.values():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        assert page.evaluate(RUN) == []
        assert page.evaluate("() => document.querySelector('.scroll').scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_run_is_one_line_that_opens(page: Page, workspace: Path) -> None:
    tell(page, "program tally")
    run = page.locator(".tool", has_text="Made tally.txt").last
    expect(run).to_be_visible()
    assert (workspace / "tally.txt").read_text() == "1 line\n"
    heads = page.locator(".tools > li > .tool > .tool-head > :is(.tool-name, .tool-line)")
    expect(heads).to_have_text(
        ["Looked at the files", "3 rehearsals", "the last would make tally.txt", "Made tally.txt"]
    )
    run.get_by_role("button").click()
    expect(run.locator(".diff .plus")).to_have_text("+1 line")
    expect(run.locator("pre.program")).to_contain_text("say(f'I counted {len(found)} line.')")
    expect(run.locator(".tool-body")).to_contain_text("I counted 1 line.")
    expect(run).not_to_contain_text('"program"')
    expect(page.locator(".did")).to_contain_text(
        "Looked around once, rehearsed 3 programs, changed tally.txt · "
    )
    look(page)


def test_rehearsals_fold_together_and_never_show_json(page: Page, workspace: Path) -> None:
    tell(page, "program tally")
    page.get_by_role("button", name="3 rehearsals").click()
    rows = page.get_by_label("Rehearsals").locator(".tool")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("Rehearsed: stopped: there is no file nothing.txt")
    expect(rows.last).to_contain_text("Rehearsed: would make tally.txt")
    for row in (rows.first, rows.last):
        row.get_by_role("button").click()
    expect(rows.first.locator(".tool-body")).to_contain_text(
        "It stopped: there is no file nothing.txt"
    )
    expect(rows.last.locator(".tool-body")).to_contain_text("Would make tally.txt")
    expect(rows.last.locator(".tool-body")).to_contain_text("Read notes.txt")
    expect(rows.last.locator(".diff .plus")).to_have_text("+1 line")
    expect(page.locator(".tools")).not_to_contain_text('{"')
    look(page)


def test_one_rehearsal_is_a_line(page: Page, workspace: Path) -> None:
    tell(page, "program answer")
    expect(answer(page, "It has 1 line.")).to_be_visible()
    expect(page.locator(".tool-line").last).to_have_text("Rehearsed: says It has 1 line.")


def test_what_the_model_writes_is_seen_at_once(page: Page, small: Desk, workspace: Path) -> None:
    small.hold()
    say(page, "program answer")
    page.locator(".thinking").wait_for()
    expect(page.locator(".thinking summary")).to_have_text("Writing a program")
    expect(page.locator(".thought")).to_contain_text("# a program\n# a program")
    page.reload()
    expect(page.locator(".thinking summary")).to_have_text("Writing a program")
    expect(page.locator(".working")).to_have_count(0)
    small.release()
    answer(page, "It has 1 line.").wait_for()
    expect(page.locator(".thinking")).to_have_count(0)


def test_a_loss_is_asked_about_in_words(page: Page, workspace: Path) -> None:
    say(page, "program diary")
    card = page.get_by_role("region", name="Permission needed")
    card.wait_for()
    expect(card).to_contain_text("It overwrites diary.txt and its 2 lines")
    expect(card.locator(".diff").first.locator("span")).to_have_text(
        ["@@ -1,2 +1 @@", "-rain", "-more rain", "+a sunny day"]
    )
    expect(card.get_by_text("write('sum.txt'").first).not_to_be_visible()
    expect(card.get_by_label("The exact call")).not_to_be_visible()
    card.get_by_text("It would also make sum.txt").click()
    expect(card.locator(".diff").nth(1)).to_contain_text("+one day")
    card.get_by_text("The program").click()
    expect(card.locator("pre.program")).to_contain_text("write('sum.txt', ['one day'])")
    card.get_by_text("Exact call", exact=True).click()
    expect(card.get_by_label("The exact call")).to_contain_text('run_program {"program":"write(')
    expect(card.get_by_label("The exact call")).to_contain_text('"digest":"f4dec5dae939b940')
    look(page)
    assert (workspace / "diary.txt").read_text() == BEFORE
    card.get_by_role("button", name="Allow once").click()
    page.get_by_role("button", name="Changed diary.txt, made sum.txt").wait_for()
    assert (workspace / "diary.txt").read_text() == "a sunny day\n"
    expect(page.locator(".ask.answered summary")).to_contain_text("Change diary.txt, make sum.txt")


def test_a_no_leaves_it_as_it_is(page: Page, workspace: Path) -> None:
    say(page, "program diary")
    page.get_by_role("button", name="Do not allow").click()
    page.locator(".did").wait_for()
    expect(page.locator(".tool.denied .tool-line")).to_have_text("Change diary.txt, make sum.txt")
    assert (workspace / "diary.txt").read_text() == BEFORE


@pytest.mark.parametrize(
    ("name", "args", "status", "text", "line"),
    [
        ("run_program", {"program": "x", "changes": []}, "ok", "", "Changed nothing"),
        ("run_program", {"program": "x"}, "running", "", "Change nothing"),
        (
            "run_program",
            {"program": "x", "changes": [{"path": "a\u202eb", "kind": "moved", "to": "c\nd"}]},
            "ok",
            "",
            "Moved a\\u202eb to c\\nd",
        ),
        (
            "run_program",
            {"program": "x", "changes": [{"path": "a", "kind": "constructor"}]},
            "ok",
            "",
            None,
        ),
        ("run_program", {"program": 1, "changes": "x"}, "ok", "", None),
        ("run_program", "{", "error", "", None),
        ("rehearse_program", {"program": "x"}, "running", "", "Rehearsing a program"),
        (
            "rehearse_program",
            {"program": "x"},
            "error",
            "the program is empty",
            "Rehearse a program",
        ),
        ("rehearse_program", {"program": "x"}, "ok", '{"said":"cut', "Rehearsed"),
        ("rehearse_program", {"program": "x"}, "ok", '{"said":5}', "Rehearsed"),
        ("rehearse_program", {"program": "x"}, "ok", "{}", "Rehearsed: comes to nothing"),
        ("rehearse_program", {}, "ok", '{"failed":"line 2"}', "Rehearsed: failed: line 2"),
        (
            "rehearse_program",
            {},
            "ok",
            '{"needs":{"tool":"ask_user"}}',
            "Rehearsed: needs ask_user first",
        ),
        ("rehearse_program", {}, "ok", '{"calls":[{"tool":"cron"}]}', "Rehearsed: would use cron"),
        ("survey_files", {}, "running", "", "Looking at the files"),
        ("shell", {"command": "ls"}, "ok", "", None),
    ],
)
def test_the_line_of_a_call(
    page: Page, name: str, args: object, status: str, text: str, line: str | None
) -> None:
    assert page.evaluate(WORDS, [name, args, status, text]) == line


def test_the_line_under_a_turn(page: Page) -> None:
    made = '{"program":"x","changes":[{"path":"a.txt","kind":"new"},{"path":"b","kind":"moved","to":"c.txt"}]}'  # noqa: E501
    turn = folded(
        page,
        received("go"),
        replied("", ("c1", "rehearse_program", '{"program":"x"}')),
        finished("c1"),
        replied("", ("c2", "run_program", made), ("c3", "run_program", '{"changes":[null,4,"x"]}')),
        finished("c2"),
        finished("c3"),
    )
    assert turn["did"] == ["Rehearsed 1 program, changed a.txt and c.txt"]
