"""What `deskhand demo` runs: a script instead of a model, a tool that is slow and must not run
twice, and a process."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec

from ..assembly.tools import make_tools, skills_of
from ..cli.demo import make_demo_settings
from ..config.config import Settings
from ..models.base import Request
from ..runtime.app import Parts, open_app
from ..tools.base import Context, Tool
from ..tools.define import tool
from ..types.interpreter import tune_interpreter
from ..types.labels import LOCAL
from ..types.messages import Message, ToolCall, ToolResult
from .scripted import ScriptedModel, say

LETTER_S = 4.0
IDEAS = (
    "Three ideas\n1. a picnic by the river\n2. a concert at home\n3. a walk with a treasure hunt\n"
)
SHOPPING = "- lemons\n- a cake\n- paper lanterns\n"


@tool(effect="irreversible", replay="never", timeout_s=60, reads=LOCAL)
async def post_letter(to: str, text: str, context: Context) -> str:
    """Post a letter. It cannot be taken back.

    to: whom
    text: what it says
    """
    context.emit("walking to the letter box …")
    await anyio.sleep(LETTER_S)
    context.reach.files.write("posted.txt", f"to {to}: {text}\n".encode())
    return f"posted to {to}"


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(f"call_{name}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def script(request: Request) -> Message:
    """Two files, one letter, and an honest end."""
    results = [
        part
        for shown in request.messages
        for part in shown.message.parts
        if isinstance(part, ToolResult)
    ]
    if not results:
        files = (_call("write_file", path="ideas.txt", content=IDEAS),)
        return say("I begin with the notes.", *files)
    if len(results) == 1:
        return say(
            "",
            msgspec.structs.replace(
                _call("write_file", path="shopping.txt", content=SHOPPING), id="call_2"
            ),
        )
    if len(results) == 2:
        text = "Dear Ada, come to the river on Saturday at three!"
        return say(
            "Now the invitation. It cannot be taken back.",
            _call("post_letter", to="Ada", text=text),
        )
    last = results[-1]
    if last.status == "interrupted":
        return say(
            "The notes are in ideas.txt and shopping.txt. While I was posting the "
            "invitation I was cut off: "
            "it may or may not have been posted. I did not post it a second time; please "
            "look in the letter box."
        )
    if last.status == "ok":
        return say("All done: the notes are written, and the invitation is posted.")
    return say("The notes are written. The invitation was not posted, as you wished.")


def parts_of(settings: Settings) -> Parts:
    """The plain tools and the letter; the script as the model."""
    model = ScriptedModel(script, latency_s=0.6, piece=6, pause_s=0.02)
    tools: dict[str, Tool] = {
        **make_tools(settings, "default", skills_of(settings, "default")),
        "post_letter": post_letter,
    }
    return Parts(lambda name: model, tools)


async def live(home: Path) -> None:
    """Drive until killed."""
    settings = make_demo_settings(home)
    async with open_app(settings, parts_of(settings)) as app:
        await app.run()


if __name__ == "__main__":
    tune_interpreter()
    anyio.run(live, Path(sys.argv[1]))
