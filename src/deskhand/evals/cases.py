"""Cases: recorded turns as tests, with what is expected of each.

A case only names its turn in the log. When the conversation is erased there, the case says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..config.parse import read_data
from ..config.yaml_edit import dump_yaml
from ..models.base import Request
from ..types.errors import ConfigError, Refused
from ..types.messages import Usage
from ..types.private_files import write_private_file
from .recordings import Course, Made
from .replay import Replayed
from .runner import Replayer, ReplayOptions

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
ASKED_CHARS = 120
MAX_WORDS = 5
HEADING = """# A test from a recorded turn. Run it: deskhand cases run {name}
# `calls` are tools that must be called; one may be pinned down: {{tool: read_file, arguments: {{path: notes.md}}}}
# `words` must stand in the answer and `absent` must not; `steps` and `tokens` are what it may use at most.
"""  # noqa: E501
_SALIENT = re.compile(
    r"`([^`\n]{2,60})`|(?<![\w.])((?:/|\./|~/)[\w./-]{3,60})|(?<![\w.,:-])(\d[\d.,:]*\d)(?![\w-])"
)


class ExpectedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that must be made, with at least these arguments."""

    tool: str
    arguments: dict[str, Any] = {}


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is expected of a turn. `ended` is the reason with which it must end."""

    ended: str = "done"
    calls: tuple[ExpectedCall | str, ...] = ()
    words: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    steps: int | None = None
    tokens: int | None = None


class SavedCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A recorded turn and what is expected of it. `began` is the event that opened it, `prompt` a
    fingerprint of what the model was asked when the case was made. While that is the same, its
    reply is the recorded one."""

    session: str
    turn: int
    began: int
    asked: str
    prompt: str
    expect: Expect


class Verdict(msgspec.Struct, frozen=True):
    """The result of a case. `wrong` says what is not as expected, `spent` is what models used."""

    name: str
    wrong: tuple[str, ...]
    replayed: Replayed | None = None
    spent: Usage = Usage()


def derive_expectations(was: Course, redact: Callable[[str], str]) -> Expect:
    """What a recorded turn lets one expect: the tools that worked, and the figures, paths and code
    in its answer."""
    tools = dict.fromkeys(call.tool for call in was.calls if call.status == "ok")
    words = dict.fromkeys("".join(groups) for groups in _SALIENT.findall(redact(was.answer)))
    return Expect("done", tuple(tools), tuple(words)[:MAX_WORDS])


def find_failures(expect: Expect, course: Course) -> tuple[str, ...]:
    """What is not as expected, in sentences."""
    wrong = []
    if course.reason != expect.ended:
        wrong.append(f"it ended with {course.reason}, not {expect.ended}")
    for each in expect.calls:
        call = ExpectedCall(each) if isinstance(each, str) else each
        if not any(_matches_call(made, call) for made in course.calls):
            arguments = ""
            if call.arguments:
                arguments = f" with {msgspec.json.encode(call.arguments).decode()}"
            wrong.append(f"{call.tool} was not called{arguments}")
    answer = _fold_case(course.answer)
    wrong += [
        f"the answer lacks {word!r}" for word in expect.words if _fold_case(word) not in answer
    ]
    wrong += [f"the answer has {word!r}" for word in expect.absent if _fold_case(word) in answer]
    if expect.steps is not None and course.steps > expect.steps:
        wrong.append(f"it took {course.steps} steps, more than {expect.steps}")
    if expect.tokens is not None and course.tokens > expect.tokens:
        wrong.append(f"it used {course.tokens} tokens, more than {expect.tokens}")
    return tuple(wrong)


def _fold_case(text: str) -> str:
    return " ".join(text.split()).casefold()


def _matches_call(made: Made, call: ExpectedCall) -> bool:
    if made.tool != call.tool:
        return False
    try:
        given = msgspec.json.decode(made.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return not call.arguments
    return all(given.get(name) == value for name, value in call.arguments.items())


def fingerprint_request(request: Request, model: str) -> str:
    """A short digest of what a model would be asked."""
    asked = (
        model,
        request.system,
        request.messages,
        request.tools,
        request.thinking,
        request.temperature,
    )
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:24]


class Cases:
    """The cases in a private folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_names(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return sorted(file.stem for file in self._folder.glob("*.yaml"))

    def path(self, name: str) -> Path:
        """Raises ConfigError for an invalid name."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{name[:80]!r} cannot be the name of a case: use lower case, digits and hyphens, "
                "such as disk-check"
            )
        return self._folder / f"{name}.yaml"

    def read(self, name: str) -> SavedCase:
        """Raises ConfigError when there is none, or it is not valid."""
        path = self.path(name)
        try:
            return msgspec.convert(read_data(path), SavedCase, strict=False)
        except FileNotFoundError:
            raise ConfigError(
                f"no case {name!r}; list the cases with: deskhand cases list"
            ) from None
        except msgspec.ValidationError as error:
            raise ConfigError(f"{str(path)!r}: {error}") from error

    def write(self, name: str, case: SavedCase) -> Path:
        """Raises ConfigError when there is one of this name, OSError."""
        path = self.path(name)
        if path.exists():
            raise ConfigError(
                f"there is a case {name!r} already; choose another name, or remove it with: "
                f"deskhand cases remove {name}"
            )
        write_private_file(path, HEADING.format(name=name) + dump_yaml(msgspec.to_builtins(case)))
        return path

    def remove(self, name: str) -> None:
        """Raises ConfigError when there is none."""
        try:
            self.path(name).unlink()
        except FileNotFoundError:
            raise ConfigError(
                f"no case {name!r}; list the cases with: deskhand cases list"
            ) from None


def make_case(
    found: Replayed, model: str, redact: Callable[[str], str], words: Iterable[str] = ()
) -> SavedCase:
    """Make a case of a turn, for an agent that answers with `model`. The answer must have `words`.
    Raises Refused for a turn that is not over, or in which no model was asked."""
    recorded = found.recording
    if found.was.reason == "open" or not found.requests:
        raise Refused("only a finished turn in which a model was called can become a case")
    expect = derive_expectations(found.was, redact)
    expect = replace(
        expect, ended=found.was.reason, words=tuple(dict.fromkeys((*words, *expect.words)))
    )
    asked = redact(" ".join(recorded.asked.split()))[:ASKED_CHARS]
    prompt = fingerprint_request(found.requests[0], model)
    return SavedCase(
        session=recorded.session,
        turn=recorded.number,
        began=recorded.tape[0].n,
        asked=asked,
        prompt=prompt,
        expect=expect,
    )


async def run_case(
    name: str, case: SavedCase, replayer: Replayer, wanted: ReplayOptions, *, again: bool = False
) -> Verdict:
    """Replay a case. Nothing is spent while a model would be asked what it was asked when the case
    was made. Otherwise, or with `again`, it is really asked: by default the agent's first model."""
    try:
        recorded = await replayer.load_recording_at(case.session, case.began)
    except Refused as error:
        return Verdict(
            name,
            (
                (
                    f"its turn no longer exists: {error}. To remove the case: deskhand cases "
                    f"remove {name}"
                ),
            ),
        )
    found = await replayer.run(recorded)
    first = replayer.models(case.session)[0]
    changed = not found.requests or fingerprint_request(found.requests[0], first) != case.prompt
    if again or changed or wanted.model or wanted.system or wanted.skills:
        found = await replayer.run(recorded, replace(wanted, model=wanted.model or first))
    return Verdict(name, find_failures(case.expect, found.now), found, found.spent)
