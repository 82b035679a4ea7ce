"""Who erases a conversation erases what was remembered of it alone, wherever that had come to
stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from deskhand.memory.facts import NewFact, add_fact, close_fact
from deskhand.runtime.app import App
from deskhand.testing.temporary_home import script
from deskhand.types.commit import Change
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER
from deskhand.workspace.erase import Gone, erase_session

from .gathered import STAFF, Study, facts, texts

ONE = "default/terminal:1"
TWO = "default/terminal:2"
BOB = Principal("bob", ("member",))


def fact(text: str, session: str = ONE, n: int = 1, **more: Any) -> NewFact:
    given: dict[str, Any] = {
        "scope": "user",
        "owner": "owner",
        "label": OWNER,
        "writer": "tool",
        "key": text,
    } | more
    return NewFact(text=text, session=session, n=n, **given)


async def two_talks(study: Study, app: App) -> None:
    await study.chat(app, "my cat is called Zephyr", chat="1")
    await study.chat(app, "good morning", chat="2")


async def gone(app: App, session: str = ONE, by: Principal = STAFF) -> Gone:
    return await erase_session(app.store, by, session, app.parts.clock.now())


async def test_what_was_made_of_it_alone_goes_and_all_else_stays(tmp_path: Path) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        rows = [
            fact("the cat is Zephyr"),
            fact("the cat eats fish", writer="harvester", pinned=True),
            fact("the dog is Rex", TWO),
            fact("written by hand", "", 0, writer="person"),
            fact("an old plan"),
            fact("a fair at nine", scope="agent", owner="default"),
        ]
        await app.store.change([row for each in rows for row in add_fact(each, 1.0)])
        await app.store.change([close_fact(5, 2.0, "forgotten")])
        done = await gone(app)
        assert (done.memories, done.kept) == (4, 0) and done.events >= 3
        assert done.summary == "4 memories made of it alone are gone with it."
        assert texts(await facts(app, all_=True)) == ["the dog is Rex", "written by hand"], (
            "with its history"
        )
    for file in (tmp_path / "state").glob("deskhand.db*"):
        assert b"Zephyr" not in file.read_bytes() and b"fish" not in file.read_bytes(), file.name


async def test_what_was_also_said_elsewhere_stays(tmp_path: Path) -> None:
    study = Study(tmp_path)
    study.answers["harvest"] = lambda text: {
        "facts": [
            {
                "text": "The cat is called Zephyr",
                "n": int(text[text.index("[") + 1 :].split("]")[0]),
            }
        ]
    }
    async with study.running() as app:
        await study.chat(app, "my cat is called Zephyr", chat="1")
        await app.features.learning.gatherer.harvest()
        await study.chat(app, "as I said, my cat is called Zephyr", chat="2")
        await app.features.learning.gatherer.harvest()
        assert [fact.session for fact in await facts(app)] == [ONE]
        done = await gone(app)
        assert (done.memories, done.kept) == (0, 1)
        assert done.summary == "1 memory stays: it has another source, or another owner."
        assert [(fact.session, fact.text) for fact in await facts(app)] == [
            (TWO, "The cat is called Zephyr")
        ]
        assert (await gone(app, TWO)).memories == 1 and await facts(app, all_=True) == []


async def test_what_the_model_was_told_again_has_two_sources(tmp_path: Path) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        study.talk = script
        await app.store.change(add_fact(fact("The cat is Zephyr"), 1.0))
        assert "known already: #1" in await study.call(
            app, "save_memory", chat="2", content="the cat is Zephyr"
        )
        assert (await gone(app)).kept == 1 and texts(await facts(app)) == ["The cat is Zephyr"]


async def test_what_was_put_together_comes_from_all_of_its_parts(tmp_path: Path) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        merged: dict[str, Any] = {"writer": "cleaner", "n": 1}
        await app.store.change(add_fact(fact("cat Zephyr"), 1.0))
        await app.store.change(add_fact(fact("cat eats fish"), 1.0))
        await app.store.change(
            add_fact(fact("cat Zephyr eats fish", replaces=(1, 2), **merged), 2.0)
        )
        await app.store.change(add_fact(fact("dog Rex", TWO), 1.0))
        await app.store.change(
            add_fact(fact("dog Rex and cat Zephyr", TWO, replaces=(3, 4), **merged), 3.0)
        )
        done = await gone(app)
        assert (done.memories, texts(await facts(app, all_=True))) == (
            3,
            ["dog Rex", "dog Rex and cat Zephyr"],
        )
        await gone(app, TWO)
        assert await facts(app, all_=True) == []


async def test_of_two_sources_the_one_that_is_left_counts(tmp_path: Path) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        await app.store.change(add_fact(fact("dog Rex", TWO), 1.0))
        await app.store.change(add_fact(fact("cat Zephyr"), 1.0))
        await app.store.change(
            add_fact(fact("dog and cat", writer="cleaner", replaces=(1, 2)), 2.0)
        )
        assert (await gone(app)).memories == 1 and "dog and cat" in texts(await facts(app))
        await gone(app, TWO)
        assert await facts(app, all_=True) == []


async def test_a_member_takes_only_their_own_along(tmp_path: Path) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        await app.store.change(
            [
                *add_fact(fact("bob likes tea", owner="bob"), 1.0),
                *add_fact(fact("ann likes tea"), 1.0),
            ]
        )
        await app.store.change(
            add_fact(fact("the fair is at nine", scope="agent", owner="default"), 1.0)
        )
        await app.store.change([_joined("bob")])
        done = await gone(app, by=BOB)
        assert (done.memories, done.kept) == (1, 2)
        assert texts(await facts(app)) == ["ann likes tea", "the fair is at nine"]


def _joined(who: str) -> Any:
    return Change("session_join", (ONE, who))


@pytest.mark.parametrize("kind", ["harvest", "reflect"])
async def test_what_a_model_makes_of_it_meanwhile_is_not_written(tmp_path: Path, kind: str) -> None:
    """It was asked before the erasing, and answers after it: facts, summaries and the note of a
    day."""
    study = Study(tmp_path, reflection={"quiet_minutes": 0})
    async with study.running() as app:
        for said in ("my cat is called Zephyr", "and it eats fish"):
            await study.chat(app, said)

        def erased_meanwhile(answer: Any) -> Any:
            def script(text: str) -> Any:
                db = apsw.Connection(str(study.settings.home.database))
                db.execute("UPDATE event SET body = NULL, salt = NULL WHERE session = ?", (ONE,))
                return answer

            return script

        found = {"topic": "cat", "content": "The cat is Zephyr", "confidence": 1}
        study.answers["reflect"] = erased_meanwhile(
            {"session_summary": "about Zephyr", "knowledge": [found], "learnings": [], "skills": []}
        )
        study.answers["harvest"] = erased_meanwhile(
            {"facts": [{"text": "The cat is Zephyr", "n": 1}]}
        )
        learning = app.features.learning
        await (learning.gatherer.harvest() if kind == "harvest" else learning.reflecting.reflect())
        assert [asked for asked, _ in study.asked] == [kind]
        assert await facts(app, all_=True) == []
        assert await app.store.query("gathered_get", (kind, ONE)) == []


async def test_nothing_of_it_is_left_in_the_files(tmp_path: Path) -> None:
    study = Study(tmp_path, reflection={"quiet_minutes": 0})
    async with study.running() as app:
        for said in ("my cat is called Zephyr", "and it eats fish"):
            await study.chat(app, said)
        found = {"topic": "cat", "content": "It is called Zephyr", "confidence": 1}
        study.answers["reflect"] = lambda text: {
            "session_summary": "We talked about Zephyr",
            "knowledge": [found],
            "learnings": [],
            "skills": [],
        }
        await app.features.learning.reflecting.reflect()
        await app.store.change(add_fact(fact("Zephyr is a cat", pinned=True), 1.0))
        await app.features.learning.notebook.sync()
        folder = study.settings.home.workspace("default") / "memory"
        named = {file.name for file in folder.iterdir() if "Zephyr" in file.read_text()}
        assert named == {"MEMORY.md", "knowledge.md", "2025-11-22.md", "index.json"}
        await gone(app)
        await app.features.learning.notebook.sync()
        assert [file.name for file in folder.iterdir() if "Zephyr" in file.read_text()] == []
    for file in (tmp_path / "state").glob("deskhand.db*"):
        assert b"Zephyr" not in file.read_bytes(), file.name


@pytest.mark.parametrize("keep", [True, False])
async def test_memories_can_be_kept(tmp_path: Path, keep: bool) -> None:
    study = Study(tmp_path)
    async with study.running() as app:
        await two_talks(study, app)
        await app.store.change(add_fact(fact("the cat is Zephyr"), 1.0))
        done = await erase_session(app.store, STAFF, ONE, 1.0, memories=not keep)
        assert done.memories == int(not keep) and len(await facts(app)) == int(keep)
