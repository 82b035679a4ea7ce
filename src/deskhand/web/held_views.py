"""Files that are held back from prompts, as an owner sees them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Path = Annotated[
    str, Meta(min_length=1, max_length=4096, description="a path that `GET /api/held` gave")
]


class HeldView(msgspec.Struct, frozen=True):
    """A file or the folder of a skill. `shown` is its path with what nobody sees written out; `why`
    is a clause."""

    path: str
    shown: str
    agent: str
    why: str


class SeenView(msgspec.Struct, frozen=True):
    """All that would be approved. `digest` is what is sent back with a yes; where it is empty,
    `problem` says why there can be none. `bound`: when it changes later, it is held back again."""

    path: str
    agent: str
    text: str
    digest: str
    problem: str
    why: str
    bound: bool


class WhichFile(msgspec.Struct, frozen=True):
    """One of those that are held back."""

    path: _Path


class Approved(msgspec.Struct, frozen=True):
    """What was seen, by the digest that came with it."""

    path: _Path
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
