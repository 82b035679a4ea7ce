"""`run_script`: the tool with which a model runs a script that calls tools."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ..subagents.delegation import NewTask
from ..subagents.kinds import RUN_SCRIPT, SCRIPT
from ..subagents.tasks import Subagents
from ..tools.base import Context, Delegated, Outcome, Spec
from ..tools.define import decode_arguments, make_schema


class ScriptArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    script: Annotated[
        str,
        msgspec.Meta(
            description="Python. Each of your tools is a function that returns its text: "
            "read_file('a.txt'). call_all([(name, arguments), ...]) calls several at once. A call "
            "that fails raises ToolError. What is printed comes back to you."
        ),
    ]
    label: str = ""


class RunScript:
    """One for all agents."""

    spec = Spec(
        RUN_SCRIPT,
        "Run a Python script that calls your tools, for work of many calls: loops, filters, sums. "
        "It sees no files and no network but through tools.",
        make_schema(ScriptArguments),
        replay="commit",
    )

    def __init__(self, subagents: Subagents) -> None:
        self._subagents = subagents

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ScriptArguments, RUN_SCRIPT)
        wish = NewTask(given.script, label=given.label, plays=SCRIPT)
        name, row = await self._subagents.plan_task(wish, context)
        return Delegated(name, (row,), wait_s=LIFE_S)


LIFE_S = 24 * 3600.0
"""So long the call waits for its script."""
