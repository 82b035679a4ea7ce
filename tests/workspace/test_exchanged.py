"""A command exchanges names as fast as it can, while prompts are made: they hear nothing that is
held back, neither then nor afterwards."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deskhand.assembly.factory import Abilities
from deskhand.assembly.file_cache import Texts
from deskhand.assembly.knowledge_index import Knowledge
from deskhand.config.clock import SystemClock
from deskhand.skills.skill import Skills, SkillSource
from deskhand.tools.notes import PendingLabel
from deskhand.types.labels import Label
from deskhand.workspace.quarantine import HeldBack

WORD = "kanari"
TRIES = 400
SKILL = "---\nname: helper\ndescription: {0}\n---\n{0}\n"
FILES = {"SOUL.md": "{0}\n", "knowledge/mail.md": "{0}\n", "skills/helper/SKILL.md": SKILL}
EXCHANGED = {
    "SOUL.md": ("SOUL.md", "other/SOUL.md"),
    "a topic": ("knowledge/mail.md", "other/knowledge/mail.md"),
    "knowledge": ("knowledge", "other/knowledge"),
    "a skill": ("skills/helper", "other/skills/helper"),
    "skills": ("skills", "other/skills"),
    "the file of a skill": ("skills/helper/SKILL.md", "other/skills/helper/SKILL.md"),
}


def exchange(one: Path, other: Path) -> None:
    ctypes.CDLL(None, use_errno=True).renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    over = threading.Event()
    count = 0

    def swap() -> None:
        nonlocal count
        while not over.is_set():
            exchange(one, other)
            count += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if count % 2:
            exchange(one, other)


def furnished(work: Path) -> HeldBack:
    """A workspace, in which all that lies in `other` is held back, as is what a command moves that
    knows of it."""
    for name, text in FILES.items():
        for path, said in ((work / name, "plain"), (work / "other" / name, WORD)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(said))
    stood = {str(path.relative_to(work)): path.lstat().st_ino for path in work.rglob("*")}
    time.sleep(0.05)  # what comes next is later by the kernel's clock too
    word = PendingLabel(
        time.time_ns(),
        None,
        Label("untrusted"),
        root=str(work),
        stood=lambda path: stood.get(path, 0),
    )
    return HeldBack(frozenset(str(work / "other" / name) for name in FILES), (word,))


@pytest.mark.parametrize("way", EXCHANGED)
def test_prompts_hear_nothing_that_is_held_back(tmp_path: Path, way: str) -> None:
    work = tmp_path.resolve()
    held = furnished(work)
    texts, knowledge = Texts(work), Knowledge(work, SystemClock())
    able = Abilities(Skills((SkillSource("agent", work, "skills"),)), "")
    prompts: tuple[Callable[[], str], ...] = (
        lambda: texts("SOUL.md", held),
        lambda: knowledge.render_index(held),
        lambda: able(held),
    )
    with exchanging(*(work / name for name in EXCHANGED[way])):
        for _ in range(TRIES):
            for prompt in prompts:
                assert WORD not in prompt()
    after = HeldBack(held.paths)
    for prompt in (
        lambda: texts("SOUL.md", after),
        lambda: knowledge.render_index(after),
        lambda: able(after),
    ):
        assert WORD not in prompt()
