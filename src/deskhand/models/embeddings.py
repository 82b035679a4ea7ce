"""What compares meanings: models that make a vector of a text. Needs numpy, which the extra
`[memory]` brings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from ..types.errors import MalformedReply
from ..types.messages import clean_text
from .encode import to_json
from .faults import FailedCall
from .settings import ModelSpec
from .transport import Transport

Vectors = npt.NDArray[np.float32]
TextKind = Literal["query", "passage"]
"""What is looked for, or what is found: some models want to know."""
BATCH = 64
TEXT_CHARS = 8_000
MAX_COMPONENT = 1e9


class Embedder(Protocol):
    """`name` stands for all that its vectors depend on: those of another name cannot be compared
    with them. `floor` is the cosine of two texts that have nothing to do with each other."""

    @property
    def name(self) -> str: ...

    @property
    def floor(self) -> float: ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        """A row for each text, of length one. Never blocks the event loop. Raises ModelError."""
        ...


def normalize_rows(vectors: npt.ArrayLike) -> Vectors:
    """The rows, each of length one; one without a direction stays nothing."""
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return scaled


class _Row(msgspec.Struct, frozen=True):
    embedding: list[float]
    index: int = -1


class _Answer(msgspec.Struct, frozen=True):
    data: list[_Row]


_decode = msgspec.json.Decoder(_Answer).decode


class ApiEmbedder:
    """A model behind an endpoint as OpenAI has it.
    https://platform.openai.com/docs/api-reference/embeddings/create

    Of a vector that is longer than `dimensions` (0: any) the begin is taken.
    """

    def __init__(
        self, transport: Transport, spec: ModelSpec, dimensions: int = 0, floor: float = 0.1
    ) -> None:
        headers = dict[str, str]()
        if spec.key and spec.quirks.auth == "bearer":
            headers["Authorization"] = f"Bearer {spec.key}"
        elif spec.key:
            headers[spec.quirks.auth] = spec.key
        url = f"{spec.base_url.rstrip('/')}/embeddings"
        self._call = FailedCall(spec.provider, spec.name, url, headers, spec.key)
        self._transport = transport
        self._spec = spec
        self._dimensions = dimensions
        self.name = f"{spec.provider}/{spec.name}:{dimensions}"
        self.floor = floor

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = list[list[float]]()
        for at in range(0, len(texts), BATCH):
            rows += await self._embed_batch(texts[at : at + BATCH])
        if len({len(row) for row in rows}) > 1:
            raise MalformedReply(f"{self._spec.name} returned vectors of different lengths")
        if not rows:
            return np.zeros((0, 0), np.float32)
        numbers = np.array(rows, np.float64)
        is_finite = bool(np.isfinite(numbers).all())
        if not is_finite or np.abs(numbers).max(initial=0.0) > MAX_COMPONENT:
            raise MalformedReply(f"{self._spec.name} returned vectors with invalid numbers")
        return normalize_rows(numbers)

    async def _embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        body: dict[str, Any] = {
            "model": self._spec.name,
            "input": [clean_text(text[:TEXT_CHARS]) or " " for text in texts],
        }
        if self._dimensions and "embedding-3" in self._spec.name:
            body["dimensions"] = self._dimensions
        answer = b""
        async with aclosing(self._transport.stream(self._call, to_json(body))) as stream:
            async for payloads in stream:
                answer += b"".join(payloads)
        try:
            rows = _decode(answer).data
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedReply(f"{self._spec.name} did not return vectors: {error}") from error
        if len(rows) != len(texts) or not all(row.embedding for row in rows):
            raise MalformedReply(
                f"{self._spec.name} returned {len(rows)} vectors for {len(texts)} texts"
            )
        ordered = sorted(rows, key=lambda row: row.index)
        return [row.embedding[: self._dimensions or None] for row in ordered]
