"""A call in which an MCP server may ask back: a person (elicitation), or a model (sampling). It
goes on in the tasks of the connection while the tool call rests in the log until a person has
answered. If this process ends meanwhile, the call is over: nothing is sent twice."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from ..tools.base import Context, Done, PersonQuestion
from ..types.errors import ToolError
from ..types.turn import MAY_HAVE_HAPPENED
from .forms import DECLINE, YES, FormField, Value, list_choices, make_question, parse_answer

ANSWER_S = 300.0
"""So long a server waits for a person."""
GRACE_S = 5.0
MAX_TRIES = 3


class AskingCall:
    """One call of such a server. `context` is that of the leg of the tool call that follows it
    now."""

    def __init__(self, server: str, context: Context) -> None:
        self.server = server
        self.session = context.session
        self.context = context
        self.scope = anyio.CancelScope()
        self.done: Done | None = None
        self.problem = ""
        self.is_over = False
        self.was_sent = False
        self.is_followed = False
        self._question: PersonQuestion | None = None
        self._shown: PersonQuestion | None = None
        self._reply: str | None = None
        self._changed = anyio.Event()

    def end(self) -> None:
        """It has its answer, or a problem."""
        self.is_over = True
        self._question = None
        self._tell()

    def reply(self, text: str) -> None:
        """What the person has said to the question that was shown last; too late, it counts for
        nothing."""
        if self._question is None or self._question is not self._shown:
            return
        self._reply = text
        self._question = None
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def is_asking(self) -> bool:
        """Whether it waits for a person."""
        return self._question is not None

    async def next(self, context: Context) -> PersonQuestion | None:
        """The next question to a person; None when the call is over."""
        self.context = context
        self.is_followed = True
        try:
            while not self.is_over:
                if self._question is not None:
                    self._shown = self._question
                    return self._question
                await self._changed.wait()
        except anyio.get_cancelled_exc_class():
            self.scope.cancel()
            raise
        finally:
            self.is_followed = False
        return None

    @property
    def result(self) -> Done:
        """What the server has answered. Raises ToolError."""
        if self.done is None:
            sent = f"; {MAY_HAVE_HAPPENED}" if self.was_sent else ""
            raise ToolError(f"{self.problem or 'the call was given up'}{sent}")
        return self.done

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """What the person says; DECLINE where they say nothing for too long."""
        self._reply = None
        self._question = PersonQuestion(question, tuple(choices), ANSWER_S, resumes=True)
        self._tell()
        with anyio.move_on_after(ANSWER_S + GRACE_S):
            while self._reply is None and not self.is_over:
                await self._changed.wait()
        self._question = None
        return DECLINE if self._reply is None else self._reply

    async def ask_for(self, message: str, field: FormField) -> tuple[bool, Value | None]:
        """Whether a person answers, and the value that they give; None where they leave it out."""
        problem = ""
        for _ in range(MAX_TRIES):
            question = make_question(self.server, message, field, problem)
            said = await self.ask(question, list_choices(field))
            if said.strip().lower() == DECLINE:
                break
            try:
                return True, parse_answer(field, said)
            except ValueError as error:
                problem = str(error)
        return False, None

    async def ask_whether(self, message: str) -> bool:
        said = await self.ask(make_question(self.server, message, None), list_choices(None))
        return said.strip().lower() in YES
