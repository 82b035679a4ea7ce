"""A model that does a long work, task by task, whatever becomes of the process in between: what it
says next follows from what it is shown alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ..models.base import Request
from ..tools.base import Context, Outcome, Spec, call_label, make_result
from ..types.messages import Message, ToolCall, ToolResult
from .scripted import say
from .tools import SCHEMA, NoteArguments

STOPS_EVERY = 7
"""After so many tasks it says that it is done, which it is not."""
_CREATED = re.compile(r"ok, \[ \] #(\d+) step (\d+)")
_COMPLETED = re.compile(r"ok, \[x\] #(\d+) step (\d+)")


class StepEffect:
    """Notes a step in a file, once: it must not be done twice. With `check` it looks whether it has
    been done."""

    def __init__(self, path: Path, *, check: bool = False) -> None:
        name = "check_step" if check else "do_step"
        self.spec = Spec(
            name,
            f"{name}.",
            SCHEMA,
            "none" if check else "local_write",
            "again" if check else "never",
        )
        self._path = path
        self._check = check

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        step = msgspec.json.decode(arguments, type=NoteArguments).text
        if self._check:
            lines = self._path.read_text().splitlines() if self._path.exists() else []
            return make_result(
                "it is done" if step in lines else "it is not done", call_label(context)
            )
        with self._path.open("a") as file:
            file.write(f"{step}\n")
        return make_result(f"did {step}", call_label(context))


class Steadfast:
    """A script for `ScriptedModel`: plans so many steps, shows the plan if it has to, and does them
    one by one. `lazy`: it stops in between."""

    def __init__(self, steps: int, *, lazy: bool = True) -> None:
        self.steps = steps
        self.lazy = lazy

    def __call__(self, request: Request) -> Message:
        messages = [shown.message for shown in request.messages]
        results = [
            part for message in messages for part in message.parts if isinstance(part, ToolResult)
        ]
        texts = [result.text for result in results]
        ids = {int(step): int(id_) for text in texts for id_, step in _CREATED.findall(text)}
        finished = {int(step) for text in texts for _, step in _COMPLETED.findall(text)}
        if not request.tools:
            return say(f"My steps for this turn are used up; {len(finished)} tasks are done.")
        number = sum(len(message.calls) for message in messages) + 1
        if missing := [step for step in range(1, self.steps + 1) if step not in ids]:
            return _call(number, "manage_tasks", action="create", title=f"step {missing[0]}")
        if any(
            tool.name == "exit_plan_mode" for tool in request.tools
        ) and "# Plan mode" in "\n".join(request.system):
            return _call(number, "exit_plan_mode", plan=f"{self.steps} steps")
        left = [step for step in range(1, self.steps + 1) if step not in finished]
        if not left:
            return say(f"All {self.steps} steps are done.")
        step = left[0]
        last = messages[-1]
        just_done = last.role == "tool" and bool(_COMPLETED.match(texts[-1]))
        if self.lazy and just_done and len(finished) % STOPS_EVERY == 0:
            return say(f"I did {len(finished)} steps.")
        return self._step(number, step, ids[step], _outcome(messages, step))

    def _step(self, number: int, step: int, id_: int, outcome: str) -> Message:
        """What is next for one step, by what came of the last call for it."""
        if outcome in (f"did step {step}", "it is done"):
            return _call(
                number,
                "manage_tasks",
                action="complete",
                task_id=id_,
                result=f"step {step} was done",
            )
        if outcome and outcome != "it is not done":  # nobody knows whether it has happened
            return _call(number, "check_step", text=f"step {step}")
        return _call(number, "do_step", text=f"step {step}")


def _outcome(messages: list[Message], step: int) -> str:
    """What came of the last call of `do_step` or `check_step` for this step; '' for none so far."""
    mine: set[str] = set()
    found = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall) and part.name in ("do_step", "check_step"):
                if msgspec.json.decode(part.arguments).get("text") == f"step {step}":
                    mine.add(part.id)
            elif isinstance(part, ToolResult) and part.call_id in mine:
                found = part.text
    return found


def _call(number: int, name: str, **arguments: Any) -> Message:
    return say("", ToolCall(f"c{number}", name, msgspec.Raw(msgspec.json.encode(arguments))))
