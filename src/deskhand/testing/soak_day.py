"""A day in short: what people ask for, how the model does it, and what goes wrong meanwhile."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from .llm import FakeLLM
from .llm_script import NAMED, Behaviour, FakeCall

ASKED = re.compile(r"please do (m\d+)(?: with (http://[\w.:]+/\w+\?m\d+))?")
"""What people write, some of it with an address."""
_DONE = re.compile(r"\bdone((?: m\d+)+)")
_WORD = re.compile(r"\bm\d+\b")
PAGES = ("page", "rendered")
"""Kinds for which the message names an address."""
TOKENS = 1.0
"""So many tokens the model says that a character took: what was said before is summed up the
sooner."""
ASIDE = {
    "facts": [],
    "session_summary": "A day.",
    "knowledge": [],
    "learnings": [],
    "skills": [],
    "delete": [],
    "add": [],
}
"""An answer to each question that is asked aside."""
KINDS: dict[str, int] = {
    "plain": 40,
    "effect": 20,
    "read": 8,
    "write": 6,
    "memory": 4,
    "big": 4,
    "slow": 4,
    "dies": 2,
    "hangs": 2,
    "leaves": 3,
    "beside": 4,
    "terminal": 3,
}
MODEL_FAULTS: dict[str, int] = {
    "429": 4,
    "429_2": 6,
    "429_ms": 4,
    "429_date": 4,
    "429_google": 1,
    "429_9999": 1,
    "500": 3,
    "502": 2,
    "503": 3,
    "529": 2,
    "reset": 3,
    "cut": 3,
    "error_event": 3,
    "garbage": 2,
    "html": 2,
    "comments": 2,
}
HANGS: dict[str, int] = {"hang": 1, "hang_mid": 1, "headers_only": 1}
FAULTY = 0.06
HANGING = 0.006
"""So many of the model's answers fail, and so many never come or never end."""


def answered(text: str) -> list[str]:
    """The messages that a text of the model answers."""
    return [word for found in _DONE.findall(text) for word in found.split()]


def kind_of(number: int) -> str:
    """What the message of this number is about."""
    return random.Random(number).choices([*KINDS], [*KINDS.values()])[0]


class DayModel(FakeLLM):
    """Does what the messages of this day ask for, and fails now and then. `faulty` and `hanging`
    are the shares."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.faulty = FAULTY
        self.hanging = HANGING
        self.asked = self.failed = 0

    def decide(self, asked: Any) -> Behaviour:
        self.requests.clear()  # they are many, and nobody looks at them
        self.asked += 1
        chance = self._random.random()
        usual = self._usual(asked)
        if chance >= self.faulty + self.hanging:
            return usual
        self.failed += 1
        names = MODEL_FAULTS if chance < self.faulty else HANGS
        fault = NAMED[self._random.choices([*names], [*names.values()])[0]]
        return replace(fault, text=usual.text, calls=usual.calls, input_tokens=usual.input_tokens)

    def _usual(self, asked: Any) -> Behaviour:
        if not asked.get("tools"):
            return Behaviour(text=msgspec.json.encode(ASIDE).decode(), input_tokens=100)
        spoken = [message for message in asked["messages"] if message["role"] != "system"]
        tokens = int(TOKENS * len(msgspec.json.encode(spoken)))
        words, missing, links = owed(spoken)
        if missing:
            calls = tuple(called(word, links) for word in missing)
            return Behaviour(text="", calls=calls, input_tokens=tokens)
        gap_s = self._random.choice((0.0, 0.0, 0.05, 0.3))
        return Behaviour(text="done " + " ".join(words), chunks=8, gap_s=gap_s, input_tokens=tokens)


def owed(messages: Iterable[dict[str, Any]]) -> tuple[list[str], list[str], dict[str, str]]:
    """What was asked for since the last answer, what of it takes a call that was not made, and the
    addresses that were named with it."""
    words = list[str]()
    links = dict[str, str]()
    made = set[str]()
    for message in messages:
        if message["role"] == "user":
            for word, link in ASKED.findall(str(message["content"])):
                words += [word] if word not in words else []
                links |= {word: link} if link else {}
        elif message["role"] == "assistant":
            calls = message.get("tool_calls")
            made |= set(_WORD.findall(str(calls))) if calls else set()
            words = words if calls else []
    missing = [
        word
        for word in words
        if word not in made and (word in links or kind_of(int(word[1:])) != "plain")
    ]
    return words, missing, links


def called(word: str, links: dict[str, str]) -> FakeCall:
    """The call for one message. Its number stands in the arguments."""
    if word in links:
        tier = (
            {"tier": "rendered", "wait_s": 1} if "/rendered" in links[word] else {"tier": "plain"}
        )
        return _call("web_fetch", word, url=links[word], **tier)
    shell = {
        "effect": f"echo {word} >> effects.txt",
        "big": f"head -c 300000 /dev/zero | tr '\\0' x; echo {word}",
        "slow": f"sleep 3; echo {word}",
        "dies": f"echo {word}; kill -9 $$",
        "leaves": f"(setsid sleep 300 &) ; nohup sleep 300 & echo {word}",
    }
    kind = kind_of(int(word[1:]))
    match kind:
        case "read":
            return _call("search_files", word, text=word)
        case "write":
            return _call(
                "write_file",
                word,
                path=f"notes/{int(word[1:]) % 50}.md",
                content=f"# {word}\n" * 20,
            )
        case "memory":
            return _call(
                "save_memory", word, content=f"Of {word} it is known that it was asked for."
            )
        case "hangs":
            return _call("shell", word, command=f"sleep 600; echo {word}", timeout_s=5)
        case "beside":
            return _call("background_run", word, command=f"sleep 2; echo {word}")
        case "terminal":
            return _call("process", word, action="start", command="bash", name=word)
        case _:
            return _call("shell", word, command=shell[kind], timeout_s=30)


def _call(tool: str, word: str, **arguments: Any) -> FakeCall:
    return FakeCall(tool, msgspec.json.encode(arguments).decode(), f"c_{word}")
