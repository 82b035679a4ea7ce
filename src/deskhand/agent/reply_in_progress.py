"""What the model has said so far in the call that is going on, shown piece by piece."""

from __future__ import annotations

from typing import Literal

from ..models.base import TextDelta, ThinkingDelta
from ..models.stops import StopTexts
from ..types.door import Progress
from ..types.secret_search import SecretStream
from .protocols import Runtime


class ReplyInProgress:
    """The pieces of one call. `key` names the call for ever: event `n` of the session, and the
    `attempt` at it, 0 for the first. `begun`: the model has answered something."""

    def __init__(
        self, session: str, model: str, n: int, attempt: int, recalled: int, runtime: Runtime
    ) -> None:
        """`recalled` is how many memories the model was told with this call."""
        self.model = model
        self.n = n
        self.attempt = attempt
        self.key = f"{session}#{n}.{attempt}"
        self.begun = False
        self.stops: StopTexts | None = None
        self.chars = 0
        """How much of the text came before a stop text, secrets and all."""
        self._session = session
        self._publisher = runtime.publisher
        self._new_stream = runtime.secrets.stream
        self._secrets = runtime.secrets.stream()
        self._thought_secrets: SecretStream | None = None
        self._pieces: list[str] = []
        self._offset = 0
        self._recalled = recalled
        self._is_first = True

    def snapshot(self) -> Progress | None:
        """All of the text so far; None where there is none."""
        if not self._pieces:
            return None
        return Progress("snapshot", self.n, self.attempt, 0, "".join(self._pieces))

    def show(self, delta: TextDelta | ThinkingDelta) -> None:
        """Show one piece, without secrets."""
        self.begun = True
        if isinstance(delta, TextDelta):
            self._show_text(delta.text)
        else:
            self._show_thought(delta.text)

    def take_text(self) -> str:
        """All of the text, with what was held back as the possible beginning of a secret: no more
        comes."""
        held = self._secrets.close() if self._secrets is not None else ""
        return "".join(self._pieces) + held

    def reset(self) -> None:
        """Tell who follows that the text is void: another attempt begins anew."""
        if self._pieces:
            self._publisher.publish(self._session, Progress("reset", self.n, self.attempt))

    def _show_text(self, text: str) -> None:
        if self.stops is not None:
            text = self.stops.feed(text)
        self.chars += len(text)
        if self._secrets is not None:
            text = self._secrets.feed(text)
        if text:
            self._pieces.append(text)
            self._publish("text", text, self._offset)
            self._offset += len(text)

    def _show_thought(self, text: str) -> None:
        if self._thought_secrets is None:
            self._thought_secrets = self._new_stream()
        if self._thought_secrets is not None:
            text = self._thought_secrets.feed(text)
        if text:
            self._publish("thinking", text, 0)

    def _publish(self, kind: Literal["text", "thinking"], text: str, offset: int) -> None:
        """The first piece says who answers."""
        if self._is_first:
            self._is_first = False
            piece = Progress(
                kind,
                self.n,
                self.attempt,
                offset,
                text,
                model=self.model,
                recalled=self._recalled,
            )
        else:
            piece = Progress(kind, self.n, self.attempt, offset, text)
        self._publisher.publish(self._session, piece)
