"""The real chat and `ask` with a scripted model and tools that need approval: `desk.py HOME
chat|ask …`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import anyio
import msgspec

from deskhand.cli.ask import Question, run_question
from deskhand.cli.chat import Chat
from deskhand.config.config import read_settings
from deskhand.config.statements import load_statements
from deskhand.models.base import Model, Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Outcome, PersonQuestion
from deskhand.tools.define import tool
from deskhand.tools.files import edit_file, write_file
from deskhand.types.identity import Address, session_key
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall, ToolResult

MARKDOWN = """# A heading

Some **bold** words and `code`.

- one
- two

```python
def add(a, b):
    return a + b
```

| a | b |
|---|---|
| 1 | 2 |

The end of it.
"""
PROGRAM = "\n".join(
    [
        "Here it is:\n",
        "```python",
        *(f'print("This is line {n} of a program.")  # and a remark' for n in range(40)),
        "```\n",
        *(f"- Point {n} of what there is to say about it." for n in range(40)),
        "\nThe end of it.",
    ]
)
"""As long as an answer is that scrolls away: a block of code and a list."""
EVIL = "before \x1b[31mred\x1b[0m \x1b]0;owned\x07 \u202egnp.exe \x9b2J after"


@tool(effect="host", replay="never", reads=LOCAL)
async def shell(command: str) -> str:
    """Runs a command."""
    return f"ran {command}\n" + EVIL + "\nlast"


@tool(reads=LOCAL)
async def slow(seconds: float, context: Context) -> str:
    """Takes its time.

    seconds: how long
    """
    for number in range(int(seconds * 10)):
        context.emit(f"line {number}\n")
        await anyio.sleep(0.1)
    return "done at last"


@tool(effect="send_other", replay="never", reads=LOCAL)
async def tell(who: str) -> str:
    """Tells somebody."""
    return f"told {who}"


@tool
async def choose(question: str) -> Outcome:
    """Asks the person."""
    return PersonQuestion(question, ("red", "green \x1b[32m", "blue"))


def _call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call_{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def script(request: Request) -> Message:
    """Follows the last words of the person."""
    last = request.messages[-1].message
    text = next(
        (s.message.text for s in reversed(request.messages) if s.message.role == "user"), ""
    )
    text = re.sub(r"^\[.*?\] ", "", text)
    if isinstance(last.parts[0], ToolResult):
        return say(f"The tool said: {last.parts[0].text[:40]} ({last.parts[0].status})")
    if text.startswith("run "):
        return say("I will run it.", _call("shell", command=text[4:]))
    if text.startswith("call "):
        name, _, arguments = text[5:].partition(" ")
        return say(
            "", ToolCall(f"call_{len(request.messages)}", name, msgspec.Raw(arguments.encode()))
        )
    if text.startswith("tell "):
        raw = [
            (f"call_{who}", msgspec.Raw(msgspec.json.encode({"who": who})))
            for who in text[5:].split()
        ]
        return say("", *(ToolCall(call_id, "tell", arguments) for call_id, arguments in raw))
    if text.startswith("slow"):
        return say("", _call("slow", seconds=30))
    if text.startswith("choose"):
        return say("", _call("choose", question="Which colour?"))
    paragraphs = [f"Paragraph {n}." for n in range(300)]
    texts = {
        "markdown": MARKDOWN,
        "evil": EVIL,
        "long": "\n\n".join(paragraphs[:60]),
        "endless": "\n\n".join(paragraphs),
        "program": PROGRAM,
    }
    return say(texts.get(text, f"You said: {text}"))


async def main(home: Path, what: str, args: tuple[str, ...]) -> int:
    settings = read_settings(None, {**os.environ, "DESKHAND_HOME": str(home)}).with_model(
        "scripted/desk"
    )
    model = ScriptedModel(script, latency_s=0.05, piece=8, pause_s=0.02)

    def open_model(name: str) -> Model:
        return model

    tools = {each.spec.name: each for each in (shell, tell, slow, choose, write_file, edit_file)}
    code = 0
    async with (
        open_app(settings, Parts(open_model, tools, load_statements())) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        code = await use(app, what, args)
        tasks.cancel_scope.cancel()
    return code


async def use(app: App, what: str, args: tuple[str, ...]) -> int:
    if what == "ask":
        return await run_question(
            app,
            Question(
                args[0], "default", "test", wait="--wait" in args, interactive=sys.stdin.isatty()
            ),
        )
    await Chat(
        app, app.settings, session_key("default", Address("terminal", chat="test")), "default"
    ).run()
    return 0


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    sys.exit(anyio.run(main, Path(sys.argv[1]), sys.argv[2], tuple(sys.argv[3:])))
