"""Chooses the sandbox of this machine: the strongest one that holds, or none at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import msgspec

from ..types.errors import SandboxUnavailable
from ..types.marked_texts import mark_text
from .base import Sandbox
from .bubblewrap import Bubblewrap
from .kernel import landlock_abi
from .landlocked import NEEDED_ABI, Landlocked
from .launcher import find_pythons
from .self_test import ProbeVerdict, probe_sandbox


class Proven(msgspec.Struct, frozen=True):
    """A sandbox that held, and the verdicts on it and on the stronger ones that did not."""

    sandbox: Sandbox
    verdicts: tuple[ProbeVerdict, ...]


async def open_sandbox(
    bwrap: str | None = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin"),
    abi: Callable[[], int] = landlock_abi,
) -> Proven:
    """The strongest sandbox that proves itself here. `bwrap`: where bubblewrap is; `abi`: which
    Landlock there is.

    Raises SandboxUnavailable, saying why each one does not do: nothing is ever run bare.
    """
    landlock = abi()
    candidates = list[Bubblewrap | Landlocked]()
    # Without Landlock uid 0 would own the kernel's settings, which are files.
    if bwrap is not None and (landlock > 0 or os.getuid() != 0):
        candidates += [Bubblewrap(bwrap, python, landlock > 0) for python in find_pythons()]
    if landlock >= NEEDED_ABI:
        candidates += [Landlocked(python) for python in find_pythons()]
    verdicts: list[ProbeVerdict] = []
    for candidate in candidates:
        verdict = await probe_sandbox(candidate, candidate.python)
        verdicts.append(verdict)
        if not verdict.problem:
            return Proven(candidate, tuple(verdicts))
    reasons = [f"{each.sandbox}: {each.problem}" for each in verdicts]
    reasons += (
        [mark_text("bubblewrap is not installed (apt-get install bubblewrap)")]
        if bwrap is None
        else []
    )
    reasons += (
        [
            mark_text(
                "the kernel's Landlock is version {version_number}, {needed_number} is needed"
            ).format(version_number=landlock, needed_number=NEEDED_ABI)
        ]
        if landlock < NEEDED_ABI
        else []
    )
    raise SandboxUnavailable(
        mark_text("No sandbox works on this machine, so commands are not run. {why_text}.").format(
            why_text="; ".join(reasons)
        )
    )
