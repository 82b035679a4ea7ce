"""What a person does in a conversation: answer, attach, edit, go back, branch; and what they see of
the work."""

from __future__ import annotations

import base64
import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from .conftest import Desk, answer, say

pytestmark = pytest.mark.timeout(120)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def test_an_approval_shows_the_exact_call_and_what_a_yes_means(
    context: BrowserContext, page: Page
) -> None:
    say(page, "post it")
    card = page.get_by_role("region", name="Permission needed")
    exact = 'post_letter {"to":"Ada","text":"Come to the river on Saturday at three."}'
    expect(card.get_by_label("The exact call")).to_have_text(exact)
    expect(card).to_contain_text("You are asked because")
    card.get_by_role("button", name="Always allow exactly this").hover()
    expect(card).to_contain_text("Identical calls are allowed without asking")
    expect(page.get_by_role("alert").filter(has_text="Permission needed")).to_have_count(1)
    page.wait_for_url("**/#/c/**")
    other = context.new_page()
    other.goto(page.url)
    other.get_by_role("region", name="Permission needed").wait_for()
    card.get_by_role("button", name="Allow once").click()
    for tab in (page, other):
        expect(answer(tab, "The letter: posted to Ada")).to_be_visible()
        expect(tab.get_by_role("region", name="Permission needed")).to_have_count(0)
        expect(tab.locator(".ask.answered")).to_contain_text("Allowed once · owner")
    expect(page.locator(".did")).to_contain_text("Used post_letter")


def test_several_calls_are_one_question(page: Page) -> None:
    """Each is shown byte for byte; one answer is for all of them, and who wants to is asked one by
    one."""
    say(page, "invite Ada Bob Cy")
    card = page.get_by_role("region", name="Permission needed")
    exact = card.get_by_label("The exact call")
    expect(card.get_by_role("heading")).to_have_text("Allow these 3 calls?")
    expect(exact).to_have_text([f'invite {{"who":"{who}"}}' for who in ("Ada", "Bob", "Cy")])
    expect(card.get_by_role("button")).to_have_text(
        ["Allow all oncey", "Ask one by onee", "Allow nonen"]
    )
    card.get_by_role("button", name="Allow all once").click()
    expect(answer(page, "All are told.")).to_be_visible()
    expect(page.locator(".ask.answered")).to_contain_text("3 calls")
    say(page, "invite Dan Eve")
    card.get_by_role("button", name="Ask one by one").click()
    for who, choice in (("Dan", "Do not allow"), ("Eve", "Allow once")):
        expect(exact).to_have_text([f'invite {{"who":"{who}"}}'])
        card.get_by_role("button", name=choice).click()
    expect(answer(page, "All are told.")).to_have_count(2)
    expect(page.locator(".ask.answered").filter(has_text="Asked one by one")).to_have_count(1)


def test_no_is_told_and_done_nothing(page: Page) -> None:
    say(page, "post it")
    page.get_by_role("button", name="Do not allow").click()
    expect(page.locator(".did")).to_contain_text("1 call not allowed")
    expect(page.locator(".ask.answered")).to_contain_text("Not allowed")


def test_a_question_is_answered_by_a_button_or_in_words(page: Page) -> None:
    say(page, "choose")
    page.get_by_role("button", name="By the river").click()
    expect(answer(page, "Then By the river.")).to_be_visible()
    say(page, "choose again")
    page.get_by_label("Your answer in your own words").fill("Up the hill")
    page.keyboard.press("Enter")
    expect(answer(page, "Then Up the hill.")).to_be_visible()


def test_a_call_is_a_card_with_live_output(page: Page, desk: Desk) -> None:
    say(page, "count")
    card = page.locator(".tool.running")
    expect(card.locator(".tool-live")).to_contain_text("counted to")
    card.get_by_role("button").click()
    expect(card.locator(".tool-body pre")).to_contain_text("counted to")
    desk.release()
    expect(answer(page, "All counted.")).to_be_visible()
    done = page.locator(".tool.ok")
    expect(done.locator(".tool-body pre")).to_have_text("counted to the end")
    expect(page.locator(".did")).to_contain_text("Used count_slowly · ")


def test_the_line_under_an_answer_comes_from_the_log(page: Page) -> None:
    say(page, "work")
    expect(page.locator(".did")).to_contain_text(
        "Read notes.txt, looked around once, changed packing.md, 1 call failed"
    )
    expect(page.locator(".tool.error")).to_contain_text("failed")


def test_the_tasks_are_shown_with_how_far_they_are(page: Page) -> None:
    say(page, "tasks")
    expect(answer(page, "One is left.")).to_be_visible()
    page.get_by_role("button", name="Tasks").click()
    panel = page.get_by_role("complementary", name="Tasks")
    expect(panel.get_by_role("status")).to_have_text("1 of 2 tasks done (50 %)")
    expect(panel.get_by_role("progressbar", name="How much is done")).to_have_attribute(
        "value", "50"
    )
    expect(panel.locator("li")).to_have_text(
        ["[x] done: #1 Pitch the tent", "[ ] to be done: #2 Light <b>the stove</b>"]
    )
    say(page, "tasks")  # two more: it is asked again by itself
    expect(panel.locator("li")).to_have_count(4)


def test_a_long_work_can_be_followed(page: Page) -> None:
    """What it is at, which task, how far, what it has used and what is left."""
    say(page, "/goal light the stove")
    expect(page.get_by_text("The goal is set.")).to_be_visible()
    expect(page.get_by_text("The goal waits for you: bring matches")).to_be_visible()
    say(page, "/deep on")
    expect(page.get_by_text("Deep work is on")).to_be_visible()
    say(page, "tasks")
    page.get_by_role("button", name="Tasks").click()
    panel = page.get_by_role("complementary", name="Tasks")
    expect(panel.locator(".work")).to_contain_text("Deep work")
    expect(panel.locator(".work")).to_contain_text("of 1,500,000 tokens used")
    expect(panel.locator(".work")).to_contain_text("Goal: light the stove")
    head = panel.locator(".panel-head").bounding_box()
    assert head is not None and head["height"] < 100, (
        "the list looks as it does, and not the panel around it"
    )
    expect(panel.get_by_role("progressbar", name="How much is done")).to_have_attribute(
        "value", "50"
    )


def test_a_failure_says_what_to_do_next(page: Page) -> None:
    say(page, "fail")
    note = page.locator(".note.bad")
    expect(note).to_contain_text("The provider says: the key is wrong")
    expect(note.get_by_role("button", name="Try again")).to_be_visible()
    note.get_by_role("link", name="Use another model").click()
    expect(page.get_by_role("heading", name="Models and skills")).to_be_visible()


def test_a_long_wait_for_a_model_says_until_when(page: Page) -> None:
    say(page, "busy")
    until = re.compile(r"The provider is overloaded. Trying again at .*\d:\d\d")
    wait = page.locator(".note.warn", has_text=until)
    expect(wait).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".did")).to_contain_text("Stopped")
    expect(wait).to_be_visible()


def test_edit_retry_undo_and_branch(page: Page) -> None:
    say(page, "first")
    expect(answer(page, "You said: first")).to_be_visible()
    say(page, "second")
    expect(answer(page, "You said: second")).to_be_visible()
    page.get_by_role("button", name="Edit and send again").last.click()
    page.get_by_label("Your message", exact=True).fill("third")
    page.keyboard.press("Enter")
    expect(answer(page, "You said: third")).to_be_visible()
    expect(answer(page, "You said: second")).to_have_count(0)
    versions = page.get_by_role("group", name="Versions")
    expect(versions).to_contain_text("2/2")
    versions.get_by_role("button", name="The version before").click()
    expect(answer(page, "You said: second")).to_be_visible()
    expect(answer(page, "You said: third")).to_have_count(0)
    expect(versions).to_contain_text("1/2")
    versions.get_by_role("button", name="The version after").click()
    page.get_by_role("button", name="Try this turn again").click()
    expect(versions).to_contain_text("3/3")
    expect(answer(page, "You said: third")).to_have_count(1)
    for text in ("third", "second"):
        versions.get_by_role("button", name="The version before").click()
        expect(answer(page, f"You said: {text}")).to_be_visible()
    expect(versions.get_by_role("button", name="The version before")).to_be_disabled()
    page.get_by_role("button", name="Undo to here").first.click()
    expect(page.get_by_role("button", name="3 turns undone")).to_be_visible()
    expect(page.locator(".turn:not(.undone) .answer")).to_have_count(1)
    before = page.url
    page.get_by_role("button", name="Branch from here").first.click()
    expect(page.get_by_text("Branched here")).to_be_visible()
    assert page.url != before
    expect(page.get_by_role("heading", level=1)).to_have_text("first (2)")
    expect(page.locator(".bubble")).to_have_text("first")
    say(page, "in the branch")
    expect(answer(page, "You said: in the branch")).to_be_visible()
    page.goto(before)
    expect(answer(page, "You said: first")).to_be_visible()
    expect(answer(page, "You said: in the branch")).to_have_count(0)


def test_files_are_attached_and_pictures_pasted(page: Page) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files({"name": "list.txt", "mimeType": "text/plain", "buffer": b"milk\n"})
    expect(page.locator(".composer .chip")).to_contain_text("list.txt")
    page.evaluate(
        """(bytes) => {
          const data = new DataTransfer();
          const image = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
          data.items.add(new File([image], "dot.png", {type: "image/png"}));
          document.getElementById("composer").dispatchEvent(
            new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
        }""",
        base64.b64encode(PIXEL).decode(),
    )
    expect(page.locator(".composer .chip")).to_have_count(2)
    expect(page.locator(".composer .chip").last).to_contain_text("70 B")
    say(page, "see these")
    expect(answer(page, "You said: see these")).to_be_visible()
    picture = page.get_by_role("img", name="dot.png")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1)  # once its bytes have come
    expect(page.locator(".bubble .file-card")).to_contain_text("list.txt")


def test_sub_agents_stand_below_the_call_that_began_them(page: Page, desk: Desk) -> None:
    """A line for each, live; its conversation is a click away, and what it has begun below it."""
    say(page, 'call spawn_agent {"task": "count the letters"}')
    line = page.locator(".subagent")
    expect(line).to_contain_text("default: count the letters")
    expect(line).to_contain_text("works")
    expect(line).to_contain_text("count_slowly")
    expect(page.get_by_role("navigation").get_by_text("subagent")).to_have_count(0)
    line.get_by_role("button", name="What default: count the letters has begun").click()
    expect(line).to_contain_text("It has begun no others.")
    expect(line.locator(".outcome")).to_have_count(0)
    (desk.home / "go").touch()
    expect(line).to_contain_text("done")
    expect(line.locator(".outcome")).to_have_text("All counted.")
    expect(line.locator(".doing")).to_have_count(0)
    expect(answer(page, "That is done.")).to_be_visible()
    line.get_by_role("link").click()
    expect(answer(page, "All counted.")).to_be_visible()
    page.go_back()
    expect(line).to_contain_text("done")


def test_a_sub_agent_is_stopped_from_its_line(page: Page, desk: Desk) -> None:
    (desk.home / "go").unlink(missing_ok=True)
    say(page, 'call spawn_agent {"task": "count the letters"}')
    line = page.locator(".subagent")
    expect(line).to_contain_text("works")
    line.get_by_role("button", name="Stop").click()
    line.get_by_role("button", name="Stop it").click()
    expect(line).to_contain_text("stopped")
    expect(line.locator(".outcome")).to_have_text("stopped by owner")
    expect(answer(page, "That is done.")).to_be_visible()


def test_why_a_sub_agent_failed_is_said_below_it(page: Page) -> None:
    say(page, 'call spawn_agent {"task": "fail"}')
    line = page.locator(".subagent")
    expect(line.locator(".outcome.bad")).to_contain_text("The provider says: the key is wrong")


def test_a_question_says_in_plain_words_what_would_be_done(page: Page) -> None:
    module = "import('/js/plain-words.js').then((words) => words.describeCall(%s))"
    for call, words in (
        ("{name: 'edit_file', args: {path: 'a/report.md'}}", "change the file a/report.md"),
        ("{name: 'shell', args: {command: '/usr/bin/rm -rf x'}}", "a command that begins with rm"),
        ("{name: 'shell', args: {command: '$(x) y'}}", "run a command"),
        ("{name: 'request_host', args: {host: 'pypi.org'}}", "let its commands reach pypi.org"),
        ("{name: 'web_fetch', args: {url: 'https://a.example/b?c'}}", "open a page of a.example"),
        ("{name: 'write_file', args: {path: 'a\\u202egpj.sh'}}", "write the file a\ufffdgpj.sh"),
        ("{name: 'write_file', args: null}", "write the file "),
        ("{name: 'my_tool', args: {}}", "use my tool"),
    ):
        assert words in page.evaluate(module % call)
    say(page, "post it")
    asked = page.get_by_role("region", name="Permission needed")
    expect(asked.get_by_role("heading")).to_have_text("Allow it to use post letter?")
    expect(asked.get_by_label("The exact call")).to_contain_text('post_letter {"to":"Ada"')
    page.get_by_role("button", name="Do not allow").click()


PLAN = "# Tidy the notes\\n\\n1. read `notes.txt`\\n2. write **one list**"


def plan(page: Page) -> Locator:
    page.get_by_role("button", name="Permissions").click()
    page.get_by_role("menuitemradio", name="Plan first").click()
    say(page, f'call exit_plan_mode {{"plan":"{PLAN}"}}')
    card = page.get_by_role("region", name="Permission needed")
    expect(card.get_by_role("heading", name="Approve this plan?")).to_be_visible()
    return card


def test_a_plan_is_read_and_approved(page: Page) -> None:
    card = plan(page)
    expect(card.get_by_role("heading", name="Tidy the notes")).to_be_visible()
    expect(card.locator("ol > li")).to_have_count(2)
    expect(card.locator("strong")).to_have_text("one list")
    card.get_by_role("button", name="Approve").click()
    expect(answer(page, "That is done.")).to_be_visible()
    expect(page.locator(".ask.answered")).to_contain_text("Plan: Tidy the notes")
    expect(page.get_by_role("button", name="Permissions: Usual")).to_be_visible()


def test_a_plan_is_changed(page: Page) -> None:
    card = plan(page)
    card.get_by_role("button", name="Change").click()
    text = card.get_by_label("Write what should be different")
    expect(text).to_have_value(PLAN.replace("\\n", "\n"))
    text.fill("1. only read them")
    card.get_by_role("button", name="Send the change").click()
    expect(answer(page, "You said: Change the plan to this:")).to_be_visible()
    expect(page.get_by_role("button", name="Permissions: Plan first")).to_be_visible()
    expect(card).to_have_count(0)
