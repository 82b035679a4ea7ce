"""A shim until the watch comes."""

from __future__ import annotations

from typing import Self

import msgspec

from ..types.commit import Change
from .base import Context
from .guarded import Guarded
from .undo import Snapshot


class Looked(msgspec.Struct, frozen=True):
    changed: tuple[str, ...] = ()
    rows: tuple[Change, ...] = ()
    said: str = ""


class Watch:
    def __init__(self, context: Context, guarded: Guarded, snapshot: Snapshot) -> None:
        self._context, self._guarded, self._snapshot = context, guarded, snapshot

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    @classmethod
    async def of(cls, context: Context, what: str, tool: str = "shell") -> Watch:
        return cls(context, await Guarded.of(context.reach), await Snapshot.of(context.reach))

    async def so_far(self) -> Looked:
        return Looked(said=await self._guarded.put_back())

    async def over(self) -> Looked:
        return Looked((), await self._snapshot.changes(self._context), await self._guarded.put_back())
