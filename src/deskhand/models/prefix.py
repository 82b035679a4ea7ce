"""Keeps on disk what the engine made of the stable prompts: reading them takes half a minute,
loading them a moment."""

from __future__ import annotations

from contextlib import aclosing
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from ..types.errors import ModelError
from .engine import CONTEXT_TOKENS, Engine, EngineModel, Serving
from .faults import FailedCall
from .settings import Facts
from .shim import ASSISTING_SLOT, MAIN_SLOT, PROMPTS, SORTING_SLOT, Shim
from .transport import Transport

SLOT_ORDER = (SORTING_SLOT, MAIN_SLOT, ASSISTING_SLOT)
"""As a first request needs them."""


class Prefixes:
    """Warms an engine that has just come up. `folder` is the one that the engine saves its slots
    in.

    Nobody else uses a slot before it is filled and saved: so nothing that a person said can be in
    it.
    """

    def __init__(self, engine: Engine, transport: Transport, folder: Path, weights: Path) -> None:
        self._engine = engine
        self._transport = transport
        self._folder = folder
        self._family = weights.stem[:12]
        self._name = f"{self._family}-{fingerprint()[:12]}"

    async def warm(self) -> None:
        """Load what an earlier life has saved; read and save what is missing. Raises ModelError."""
        serving = await self._engine.wait_ready()
        model = EngineModel(self._engine, self._transport, "warm", Facts(window=4096), early=True)
        shim = Shim(model)
        for slot in SLOT_ORDER:
            is_saved = (self._folder / self._file_name(slot)).exists()
            if not is_saved or not await self._post_action(serving, "restore", slot):
                await shim.fill(slot)
                for old in self._folder.glob(f"{self._family}-*-{slot}.bin"):
                    old.unlink(missing_ok=True)
                await self._post_action(serving, "save", slot)
            self._engine.mark_warm(slot)

    def _file_name(self, slot: int) -> str:
        return f"{self._name}-{slot}.bin"

    async def _post_action(self, serving: Serving, action: str, slot: int) -> bool:
        """Whether the engine did it; a file that does not fit any more is refused.

        https://github.com/ggml-org/llama.cpp/tree/master/tools/server#post-slotsid_slotactionsave-save-the-prompt-cache
        """
        url = f"{serving.base_url.removesuffix('/v1')}/slots/{slot}?action={action}"
        headers = {"Authorization": f"Bearer {serving.token}"}
        call = FailedCall("embedded", "slots", url, headers, serving.token)
        body = msgspec.json.encode({"filename": self._file_name(slot)})
        try:
            async with aclosing(self._transport.stream(call, body)) as answer:
                return bool([piece async for piece in answer])
        except ModelError:
            return False


def fingerprint() -> str:
    """Changes with everything that a saved slot depends on, but for the weights."""
    try:
        engine = version("xllamacpp")
    except PackageNotFoundError:
        engine = ""
    parts = (engine, CONTEXT_TOKENS, PROMPTS)
    return sha256(msgspec.json.encode(parts)).hexdigest()
