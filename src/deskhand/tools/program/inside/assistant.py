"""What a program can ask of the assistant beside files: each becomes a call of a tool when the
program has been run.

Nothing happens here. What gives something back (`recall`, `fetch`, `ask`, ...) stops the program
the first time, with what it needs; it is run again with the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .values import Stop


class Needs(Exception):
    """The program cannot go on without the answer to this."""

    def __init__(self, act: str, given: dict[str, Any]) -> None:
        super().__init__(act)
        self.act = act
        self.given = given


class Assistant:
    """`answers` are what was needed in earlier runs of the same program, in turn; `acts` what it
    wants done."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = answers
        self._known: dict[str, str] = {}
        self.acts: list[dict[str, Any]] = []

    def remind(self, when: str, text: str) -> None:
        """Say something once, at a time in words."""
        self._act("remind", when=str(when), text=str(text))

    def every(self, schedule: str, text: str) -> None:
        """Say something again and again."""
        self._act("every", when=str(schedule), text=str(text))

    def reminders(self) -> list[str]:
        """What will be said later: a line for each, `name: what (when)`."""
        jobs = re.split(r"^- ", self._need("reminders"), flags=re.MULTILINE)[1:]
        return [_render_reminder(job) for job in jobs]

    def cancel(self, text: str = "") -> None:
        """Cancel the reminder in which these words occur; the only one where nothing is said."""
        found = choose_line(self.reminders(), text, "reminder")
        self._act("cancel", which=found)

    def remember(self, text: str) -> None:
        """Keep a fact for later conversations."""
        self._act("remember", text=str(text))

    def recall(self, question: str) -> list[str]:
        """What is remembered about something."""
        lines = self._need("recall", text=str(question)).splitlines()
        return [re.sub(r"^#\d+ \([^)]*\) ", "", line) for line in lines if line.startswith("#")]

    def forget(self, text: str) -> None:
        """Forget a fact."""
        found = self._need("recall", text=str(text)).splitlines()
        memories = [line for line in found if line.startswith("#")]
        self._act("forget", which=choose_line(memories, text, "memory"))

    def changes(self) -> list[str]:
        """What was changed lately: a line for each, the latest first."""
        lines = self._need("changes").splitlines()
        return [line for line in lines if line.strip() and not line.startswith("nothing ")]

    def undo(self) -> None:
        """Take the latest change back."""
        self._act("undo")

    def fetch(self, url: str) -> str:
        """The text of a page of the web."""
        return self._need("fetch", url=str(url))

    def send(self, text: str, to: str = "") -> None:
        """Send a message."""
        self._act("send", text=str(text), to=str(to))

    def ask(self, question: str) -> str:
        """What the person answers to a question."""
        return self._need("ask", text=str(question))

    def _act(self, act: str, **given: Any) -> None:
        wanted = {"act": act, **given}
        if wanted not in self.acts:
            self.acts.append(wanted)

    def _need(self, act: str, **given: Any) -> str:
        key = repr((act, given))
        if key not in self._known:
            if len(self._known) == len(self._answers):
                raise Needs(act, given)
            self._known[key] = self._answers[len(self._known)]
        return self._known[key]


def _render_reminder(job: str) -> str:
    told = dict(line.strip().split(": ", 1) for line in job.splitlines()[1:] if ": " in line)
    name = job.split(" ", 1)[0].strip()
    return f"{name}: {told.get('what', '')} ({told.get('when', '')})"


_STOP_WORDS_TEXT = """
the a an my me to of about for that this it please reminder reminders remind memory fact alarm one
can could you so has cancel delete remove drop stop skip scrap any more need not and off is are
was i we he she its
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


def choose_line(lines: Sequence[str], text: str, what: str) -> str:
    """The line that is meant: the only one, or the one with most of the words. Raises Stop where
    that is not clear."""
    if not lines:
        raise Stop(f"there is no {what}" + (f" about {text}" if text else ""))
    wanted = {word for word in re.findall(r"\w+", str(text).lower()) if word not in _STOP_WORDS}
    if not wanted:
        if len(lines) == 1:
            return lines[0]
        raise Stop(
            f"there are {len(lines)} of them; say which {what} you mean: " + "; ".join(lines)
        )
    hits = [(sum(_is_similar(word, line) for word in wanted), line) for line in lines]
    most = max(count for count, _ in hits)
    best = [line for count, line in hits if count == most]
    if not most:
        raise Stop(f"there is no {what} about {text}")
    if len(best) > 1:
        raise Stop(f"there are {len(best)} of them; say which {what} you mean: " + "; ".join(best))
    return best[0]


def _is_similar(word: str, line: str) -> bool:
    """Whether the word occurs, in its form or a little longer or shorter one."""
    others = re.findall(r"\w+", line.lower())
    if len(word) < MIN_STEM_CHARS:
        return word in others
    stem = word[: max(MIN_STEM_CHARS, len(word) - 2)]
    return any(other.startswith(stem) for other in others)


MIN_STEM_CHARS = 4
"""A shorter word occurs as it is, or not at all."""
