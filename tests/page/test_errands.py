"""Twenty errands of `docs/design/page.md`, each done by a newcomer with at most five clicks.

With DESKHAND_PICTURES set to a folder, the way of each is kept there as pictures.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Desk, answer
from .newcomer import Newcomer

pytestmark = pytest.mark.timeout(180)
Errand = Callable[[Newcomer, Desk], None]
ERRANDS: dict[str, Errand] = {}


def errand(said: str) -> Callable[[Errand], Errand]:
    def keep(way: Errand) -> Errand:
        ERRANDS[said] = way
        return way

    return keep


@errand("Ask something, and see the answer.")
def ask(me: Newcomer, desk: Desk) -> None:
    me.ask("What is in my notes?")
    me.sees("You said: What is in my notes?")


@errand("Send me the chart as a picture: find what was made, and download it.")
def find_what_was_made(me: Newcomer, desk: Desk) -> None:
    me.ask("work")
    me.click("Files", "Panels")
    me.click("packing.md", "Files")
    me.sees("socks")
    saved = me.save("Download")
    assert saved.suggested_filename == "packing.md"


@errand("Undo what you did an hour ago.")
def undo(me: Newcomer, desk: Desk) -> None:
    me.ask('call write_file {"path":"diary.txt","content":"a sunny day"}')
    written = desk.home / "agents" / "default" / "workspace" / "diary.txt"
    assert written.exists()
    me.page.goto("/#/")
    me.click("Settings")
    me.click("Changes")
    me.sees("diary.txt")
    me.click("Undo", "Changes")
    me.sees("Undone")
    assert not written.exists()


@errand("Let my sister use it.")
def let_in(me: Newcomer, desk: Desk) -> None:
    me.click("Settings")
    me.click("People")
    me.click("Add person")
    me.write("hanna", "Name")
    me.sees("Give this link to hanna")


@errand("Why did this cost a dollar?")
def cost(me: Newcomer, desk: Desk) -> None:
    me.ask("what does this cost?")
    me.click("Settings")
    me.click("Usage and cost")
    me.click("scripted/desk", "By model")
    me.sees("What were the tokens of scripted/desk used for?")
    me.sees("The dearest conversations come first.")


@errand("Use a better model for this conversation.")
def choose_model(me: Newcomer, desk: Desk) -> None:
    me.click("Model:")
    me.click("scripted/desk", "Model")
    me.sees("desk")


@errand("Think harder about this one.")
def think_harder(me: Newcomer, desk: Desk) -> None:
    me.click("Effort:")
    me.click("High")
    expect(me.find("Effort: High")).to_be_visible()


@errand("Never ask me again about this command.")
def never_ask_again(me: Newcomer, desk: Desk) -> None:
    me.write("post it")
    me.sees("Allow it to use post letter?")
    me.click("Always allow exactly this")
    me.sees("The letter:")


@errand("What have I allowed, and how do I take it back?")
def take_back(me: Newcomer, desk: Desk) -> None:
    me.write("post it again")
    me.click("Always allow exactly this")
    me.sees("The letter:")
    me.click("Settings")
    me.click("Approvals")
    me.sees("post_letter")
    me.click("Revoke", "Approvals")


@errand("Find what we said about the roof.")
def find_words(me: Newcomer, desk: Desk) -> None:
    me.ask("the roof leaks above the kitchen")
    me.page.goto("/#/")
    me.write("roof leaks", "Search everything")
    me.click("the roof leaks", "What was found")
    expect(answer(me.page, "You said: the roof leaks")).to_be_visible()


@errand("Put this conversation where I find it again: pin it, or into a folder.")
def pin(me: Newcomer, desk: Desk) -> None:
    me.ask("the plan of the year")
    me.click("What to do with this conversation")
    me.click("Pin to the top")
    me.sees("Pinned")
    expect(me.find("the plan of the year", "Pinned")).to_be_visible()


@errand("Get rid of a conversation without losing it.")
def archive(me: Newcomer, desk: Desk) -> None:
    me.ask("done with this now")
    me.click("What to do with this conversation")
    me.click("Move to archive")
    expect(me.find("done with this now", "Today")).to_have_count(0)
    me.click("Archive", "Folders")
    me.sees("done with this now")


@errand("Send this conversation to a friend, for a week.")
def share(me: Newcomer, desk: Desk) -> None:
    me.ask("a recipe for bread")
    me.click("What to do with this conversation")
    me.click("Share")
    me.click("Create the link")
    link = me.page.get_by_label("The link", exact=True)
    expect(link).to_be_visible()
    assert me.page.request.get(link.input_value()).ok


@errand("Save this conversation as a file.")
def save(me: Newcomer, desk: Desk) -> None:
    me.ask("a recipe for soup")
    me.click("What to do with this conversation")
    me.click("Save as a file")
    saved = me.save("Markdown")
    assert "You said: a recipe for soup" in Path(saved.path()).read_text()


@errand("I wrote nonsense while it works: take it back.")
def withdraw(me: Newcomer, desk: Desk) -> None:
    me.write("hold it")
    me.sees("The first half of it.")
    me.click("Queue")
    me.write("nonsense")
    me.click("Take this message back")
    expect(me.page.get_by_text("nonsense")).to_have_count(0)


@errand("The answer is bad: try again, then read the first one once more.")
def try_again(me: Newcomer, desk: Desk) -> None:
    me.ask("tell me a joke")
    me.click("Try this turn again")
    expect(me.page.get_by_role("group", name="Versions")).to_contain_text("2/2")
    me.click("The version before")
    me.sees("1/2")


@errand("What does it know about me? Forget one thing.")
def forget(me: Newcomer, desk: Desk) -> None:
    me.ask('call save_memory {"content":"The owner has a dog that is called Rex."}')
    me.click("Settings")
    me.click("Memory", "Settings")
    me.sees("a dog that is called Rex")
    me.click("a dog that is called Rex", "Memory")
    me.click("Forget", "Memory")
    me.sees("It is forgotten.")


@errand("Do this every morning.")
def every_morning(me: Newcomer, desk: Desk) -> None:
    me.click("Settings")
    me.click("Jobs")
    me.click("New job")
    me.click("Morning brief")
    me.click("Create job")
    me.sees("It has not run yet.")


@errand("What waits for me?")
def inbox(me: Newcomer, desk: Desk) -> None:
    me.write("post it once more")
    me.sees("Allow it to use post letter?")
    me.page.goto("/#/")
    me.click("Inbox")
    me.sees("Waits for you")
    me.click("Answer")
    me.click("Do not allow")


@errand("Something is wrong: what should I do?")
def health(me: Newcomer, desk: Desk) -> None:
    me.click("Settings")
    me.click("Health")
    me.sees(re.compile(r"All is well|things? needs? you"))


@pytest.mark.parametrize("said", ERRANDS, ids=[way.__name__ for way in ERRANDS.values()])
def test_a_newcomer_does_it(page: Page, desk: Desk, said: str) -> None:
    folder = os.environ.get("DESKHAND_PICTURES", "")
    me = Newcomer(page, said, Path(folder) if folder else None)
    try:
        ERRANDS[said](me, desk)
    finally:
        clean_up(page)


def clean_up(page: Page) -> None:
    """Others share this Deskhand: no standing answer, no job and no sister stays."""
    headers = {"X-Deskhand": "1", "Origin": page.evaluate("location.origin")}
    for job in page.request.get("/api/jobs").json():
        if not job["builtin"]:
            page.request.delete(f"/api/jobs/{job['name']}", headers=headers)
    page.request.delete("/api/users/hanna", headers=headers)
    for grant in page.request.get("/api/grants").json():
        page.request.delete(f"/api/grants/{grant['id']}", headers=headers)


def test_all_of_them_are_written_down() -> None:
    design = Path(__file__).parents[2] / "docs" / "design" / "page.md"
    rows = re.findall(r"^\| \d+ \| (.*) \|$", design.read_text(), re.MULTILINE)
    assert [said for said in rows if said not in ERRANDS] == []
    assert len(rows) == 20
