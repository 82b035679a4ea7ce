"""Feeds every function that takes text, with nothing open to it that could be written or
started."""

from __future__ import annotations

import inspect
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import msgspec

from .filling import Cannot, Filling, call, hints_of
from .outside import CAPPED, KEPT_OFF, OURS, TOO_DEEP, drivers
from .patterns import as_arguments, patterns
from .source import SOURCE, files, module_of

SECONDS = 0.7
"""Of the processor's time, after which one call is ended."""
SMALL = 2_000
LARGE = 8_000
LARGER = 32_000
LARGEST = 1_024_000
LONG_ONES = 6
"""So many patterns are fed up to the largest size."""
QUICK_S = 0.005
SLOW_S = 0.1
RATIO = 8.0
"""What takes less is not measured more closely; what takes more is too much whatever it grows
by, on a machine that counts to a hundred thousand in BARE_S."""
BARE_S = 0.0014
ARGUED = frozenset(("bytes", "arguments", "Raw"))

LONG_S = 0.25
LONG_RATIO = 12.0
"""For long texts: what is done sooner is quick enough, and what is large falls out of the
caches."""

Kind = Literal["grows", "heavy", "deep"]


class Finding(msgspec.Struct, frozen=True):
    function: str
    kind: Kind
    pattern: str
    small_s: float = 0.0
    large_s: float = 0.0


class _Ended(BaseException):
    pass


class Measure:
    """Calls, with nothing open to them."""

    def __init__(self) -> None:
        self._armed = False
        signal.signal(signal.SIGVTALRM, self._end)
        sys.addaudithook(self._audit)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            raise _Ended

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        reads = event == "open" and str(given[0]).endswith(
            (".py", ".pyc", ".toml", ".md", ".yaml", ".sql", ".json")
        )
        if not reads and event.startswith(_REACHING):
            raise PermissionError(event)

    def slowness(self) -> float:
        """How many times slower than BARE_S this machine is at the moment, at least 1."""
        return max(1.0, min(self.seconds(_count)[0] for _ in range(3)) / BARE_S)

    def seconds(self, run: Callable[[], None]) -> tuple[float, BaseException | None]:
        """How long it took, at most about SECONDS, and how it failed."""
        failed: BaseException | None = None
        began = time.thread_time()
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            self._armed = True
            try:
                run()
            except BaseException as error:  # noqa: BLE001 -- whatever it does with such arguments, it is measured
                failed = error
            self._armed = False
        except _Ended as error:
            failed = error
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        took = time.thread_time() - began
        return (10 * SECONDS if isinstance(failed, _Ended) else took), failed


def _count() -> None:
    for _ in range(100_000):
        pass


_REACHING = (
    *(
        "open",
        "socket.",
        "subprocess.",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.link",
        "os.symlink",
    ),
    *(
        "os.system",
        "os.exec",
        "os.fork",
        "os.posix_spawn",
        "os.spawn",
        "os.kill",
        "os.chmod",
        "os.chown",
        "os.utime",
    ),
    *(
        "os.truncate",
        "os.scandir",
        "os.listdir",
        "os.setxattr",
        "glob.",
        "shutil.",
        "signal.",
        "sqlite3.",
        "_thread.",
    ),
)


class Fed(msgspec.Struct, frozen=True):
    name: str
    run: Callable[[str, bytes], None]
    argued: bool = False


def fed() -> Iterator[Fed]:
    """Every function of a module that takes text and does not wait, and those that need more to be
    called."""
    for path, _ in files():
        if path.startswith(tuple(KEPT_OFF)):
            continue
        module = module_of(path)
        for name, function in sorted(vars(module).items()):
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
                continue
            try:
                hints = hints_of(function)
            except NameError:
                continue
            said = {str(hint) for key, hint in hints.items() if key != "return"} | set(hints)
            if any(
                "str" in each or "bytes" in each or "deskhand" in each or "Any" in each
                for each in said
            ):
                argued = any(word in each for each in said for word in ARGUED)
                yield Fed(f"{path}:{name}", _caller(function), argued)
    for name, run in drivers().items():
        yield Fed(name, run)


def _caller(function: Callable[..., Any]) -> Callable[[str, bytes], None]:
    return lambda text, data: call(function, Filling(text, data, OURS))


def grown(measure: Measure, one: Fed, whole: bool) -> Iterator[Finding]:
    """What of one function grows too fast: at most three patterns."""
    _, failed = measure.seconds(lambda: one.run("a", b"a"))
    if isinstance(failed, Cannot | PermissionError):
        return
    cap = next((cap for start, (cap, _) in CAPPED.items() if one.name.startswith(start)), 0)
    tried = [(*each, LARGER if whole else LARGE) for each in patterns(few=not whole)]
    tried += [(*each, LARGEST) for each in patterns(few=True)][:LONG_ONES] if whole else []
    found = 0
    for name, make, largest in tried:
        for argued in (False, True) if one.argued else (False,):
            finding = _finding(measure, one, Pattern(name, make, argued), cap, largest)
            if finding is not None:
                yield finding
                found += 1
        if found >= 3:
            return


class Pattern(msgspec.Struct, frozen=True):
    name: str
    make: Callable[[int], str]
    argued: bool


def _finding(
    measure: Measure, one: Fed, pattern: Pattern, cap: int, largest: int
) -> Finding | None:
    def took(chars: int, times: int = 1) -> tuple[float, BaseException | None]:
        text = pattern.make(chars)
        data = as_arguments(text) if pattern.argued else text.encode("utf-8", "surrogatepass")
        runs = [measure.seconds(lambda: one.run(text, data)) for _ in range(times)]
        return min(seconds for seconds, _ in runs), runs[0][1]

    small, large = (cap // 4, cap) if cap else (SMALL, LARGE)
    while True:
        seconds, failed = took(large)
        if isinstance(failed, RecursionError) and not one.name.startswith(tuple(TOO_DEEP)):
            return Finding(one.name, "deep", pattern.name)
        if seconds > QUICK_S:
            before = took(small)[0]
            slow_s = SLOW_S
            for times in (3, 5, 9):  # what seems too much is measured more closely
                if _fits(before, seconds, large, cap, slow_s):
                    break
                before = min(before, took(small, times)[0])
                seconds = min(seconds, took(large, times)[0])
                slow_s = SLOW_S * measure.slowness()
            if not _fits(before, seconds, large, cap, slow_s):
                kind: Kind = "heavy" if cap or seconds <= RATIO * max(before, 1e-4) else "grows"
                return Finding(one.name, kind, pattern.name, before, seconds)
        if cap or large >= largest or seconds * RATIO >= SECONDS:  # more would be cut off
            return None
        small = large
        large = large * 4


def _fits(small_s: float, large_s: float, large: int, cap: int, slow_s: float) -> bool:
    slow_s *= max(1, large // LARGE)
    if cap:
        return large_s <= slow_s
    if large > LARGER and large_s <= LONG_S:
        return True
    ratio = RATIO if large <= LARGER else LONG_RATIO
    return large_s <= slow_s and large_s <= ratio * max(small_s, 1e-4)


def reached(measure: Measure, some: Iterable[Fed]) -> Iterator[str]:
    """The functions of ours that are run by these."""
    seen = set[tuple[str, str]]()

    def note(frame: FrameType, event: str, given: Any) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    texts = [
        "a",
        "a b. c: 1\n- d\n[a](http://b.c) `x`",
        '{"command": "ls", "url": "http://b.c", "path": "a/b"}',
    ]
    for one in some:
        for text in texts:

            def run(one: Fed = one, text: str = text) -> None:
                sys.setprofile(note)
                try:
                    one.run(text, text.encode())
                finally:
                    sys.setprofile(None)

            measure.seconds(run)
    root = str(SOURCE)
    for file, name in seen:
        if file.startswith(root):
            yield f"{Path(file).relative_to(SOURCE).as_posix()}:{name.replace('.<locals>', '')}"
