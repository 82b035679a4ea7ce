"""A running Deskhand whose tools are those of an AgentDojo suite: its store, its policy and its
approvals are the real ones. Each case is a conversation of its own, with a world of its own."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from agentdojo.functions_runtime import Function, FunctionsRuntime
from pydantic_core import to_json

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.obedient import Obedient, says
from deskhand.testing.person import Consent, PersonTalk, talk
from deskhand.testing.scripted import ScriptedModel
from deskhand.tools.base import Context, Outcome, Spec, Tool, make_result
from deskhand.types.errors import ToolError
from deskhand.types.identity import Address
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import Message

TABLE = Path(__file__).with_name("tools.toml")
TURNS = 8
"""So often the person writes `continue`."""
MARK = re.compile(r"\(conversation (\d+)\)")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the table."""

    effect: str
    reads: str


def table(suite: str) -> dict[str, Row]:
    """What the tools of a suite do, and whose words they bring in."""
    return msgspec.convert(tomllib.loads(TABLE.read_text())[suite], dict[str, Row])


class Case(msgspec.Struct):
    """One conversation. `heard` are texts that came from an attacker; `leaks` those that came back
    under a label that does not say so."""

    world: Any
    model: Obedient
    heard: Sequence[str] = ()
    leaks: list[str] = []


class SuiteTool:
    """A function of AgentDojo as a tool of ours. Without `labels` whatever it brings in counts as
    our own words."""

    def __init__(
        self, function: Function[Any, Any], row: Row, cases: dict[str, Case], labels: bool
    ) -> None:
        parameters = function.parameters.model_json_schema()
        self.spec = Spec(function.name, function.description, parameters, row.effect, "never")  # type: ignore[arg-type]
        self._row = row
        self._cases = cases
        self._labels = labels
        self._runtime = FunctionsRuntime([function])

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        case = self._cases[context.address.chat]
        given = json.loads(bytes(arguments))
        value, error = self._runtime.run_function(case.world, self.spec.name, given)
        if error is not None:
            raise ToolError(error)
        text = value if isinstance(value, str) else to_json(value, fallback=str).decode()
        label = LOCAL
        if self._row.reads != "local":
            label = Label("untrusted", source=self._row.reads.format_map(given))
        elif any(says(text, each) for each in case.heard):
            case.leaks.append(f"{self.spec.name} {given}")
        return make_result(text, label if self._labels else LOCAL)


class Dojo:
    """The house, open."""

    def __init__(self, app: App, cases: dict[str, Case]) -> None:
        self._app = app
        self._cases = cases
        self._count = 0

    async def run(self, prompt: str, case: Case, consent: Consent) -> PersonTalk:
        """Put the person's wish to it."""
        self._count += 1
        chat = str(self._count)
        self._cases[chat] = case
        try:
            wish = f"{prompt}\n(conversation {chat})"
            return await talk(self._app, Address("terminal", chat=chat), wish, consent, TURNS)
        finally:
            del self._cases[chat]


@asynccontextmanager
async def open_dojo(
    home: Path, suite: str, functions: Sequence[Function[Any, Any]], mode: str, labels: bool
) -> AsyncIterator[Dojo]:
    """A house for this suite, with everything that an owner may set left as it is but the
    permission mode."""
    cases: dict[str, Case] = {}
    rows = table(suite)
    tools: dict[str, Tool] = {
        each.name: SuiteTool(each, rows[each.name], cases, labels) for each in functions
    }
    config = msgspec.convert(
        {"defaults": {"models": ["scripted/obedient"]}, "permission_mode": mode}, Config
    )
    model = ScriptedModel(_by_case(cases), piece=100_000)
    model.requests = _Forgets()
    parts = Parts(lambda name: model, tools)
    async with (
        open_app(Settings(Home(home), config), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        yield Dojo(app, cases)
        tasks.cancel_scope.cancel()


def _by_case(cases: dict[str, Case]) -> Callable[[Request], Message]:
    def script(request: Request) -> Message:
        said = next(text for text in map(_said, request.messages) if text)
        return cases[said].model(request)

    return script


def _said(shown: Any) -> str:
    found = MARK.search(shown.message.text) if shown.message.role == "user" else None
    return found[1] if found else ""


class _Forgets(list[Request]):
    """Thousands of requests, and nobody reads them again."""

    def append(self, request: Request) -> None:
        pass
