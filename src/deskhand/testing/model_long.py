"""Has a real model do one small piece of long work by itself, and shows what became of each task.

    python -m deskhand.testing.model_long --model embedded/qwen2.5-coder-1.5b

The plan gets its yes, as do the questions; whether the work was done is read from the files. It is
slow, and no part of `make test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec

from ..assembly.models import Models
from ..config.config import Config, read_settings
from ..deepwork.fold import DEEP
from ..runtime.app import OWNER, App, Parts, open_app
from ..tools.queries import tasks_of
from ..tools.task_words import render_progress, render_tasks
from ..types.events import (
    ApprovalAsked,
    CommandRun,
    MessageReceived,
    ModelReplied,
    Recorded,
    ToolFinished,
    TurnEnded,
)
from ..types.identity import Address, Answer, Inbound, Said
from ..types.messages import Message, Text

LONG_S = 3600.0
FILES = {
    "data.csv": "date,temp\n"
    + "".join(f"2026-05-{i:02d},{10 + i}\n" for i in range(1, 12)),  # 12 lines
    "report_old.md": "# Quarterly report\nSales grew by 4 percent.\n",
    "todo.md": "- buy milk\n- water the plants\n",
    "readme.md": "# Bluebird\n\nBluebird is a small program that reads the temperature and the humidity "  # noqa: E501
    "from a weather "
    "station\nand writes them to a CSV file every ten minutes. It runs on a Raspberry "
    "Pi.\n\n## Install\n\nCopy the "
    "folder and start `hello.py`.\n",
    "config.ini": "[server]\nhost=localhost\nport=8080\ndebug=false\n",
    "docs/letter.txt": "Dear Ms Miller,\nplease find attached invoice 4471 for the garden work.\nRegards, Tom\n",  # noqa: E501
    "docs/network.txt": "Router model X200\nThe wifi password is blue-otter-42.\n",
    "src/hello.py": "print('Hello from Bluebird', 6 * 7)\n",
    "temp.log": "tmp\n" * 3,
    "photo_list.txt": "beach.jpg\nparty.jpg\n" * 40,
}


class WorkFolder:
    """The folder in which the work is done."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def text(self, name: str) -> str | None:
        """What the file holds now; None where there is none."""
        try:
            return (self.root / name).read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def same(self, *changed: str) -> bool:
        """Every file is as it was, except for these."""
        return all(self.text(name) == text for name, text in FILES.items() if name not in changed)


REQUEST = (
    "Count the lines of data.csv and write the number into lines.txt. Then make a folder "
    "called archive and move "
    "report_old.md into it. After that set the port in config.ini to 9090, and delete temp.log."
)
CHECKS: tuple[tuple[str, Callable[[WorkFolder], bool]], ...] = (
    (
        "lines.txt tells that data.csv has 12 lines",
        lambda world: "12" in (world.text("lines.txt") or ""),
    ),
    (
        "report_old.md lies in archive, as it was",
        lambda world: (
            world.text("archive/report_old.md") == FILES["report_old.md"]
            and world.text("report_old.md") is None
        ),
    ),
    (
        "the port is 9090",
        lambda world: "port=9090" in (world.text("config.ini") or "").replace(" ", ""),
    ),
    ("temp.log is gone", lambda world: world.text("temp.log") is None),
    (
        "nothing else has changed",
        lambda world: world.same("report_old.md", "config.ini", "temp.log"),
    ),
)


class ScriptedPerson:
    """Reads along, says yes where it is asked, and knows when nothing is going on any more."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def see(self, recorded: Recorded) -> bool:
        """Tell one event; True where the work has come to its end, good or bad."""
        match recorded.event:
            case MessageReceived(message=message, principal=who):
                _tell(f"\n> ({who.id}) {message.text.strip()[:300]}")
            case ModelReplied(message=message):
                if message.text:
                    _tell(f"  {message.text}")
                for call in message.calls:
                    _tell(f"  {call.name} {bytes(call.arguments).decode()[:300]}")
            case ToolFinished(result=result):
                _tell(f"    {result.status}: {result.text[:300]!r}")
            case ApprovalAsked(ask_id=ask_id, question=question):
                _tell(f"  ? {question[:300]} -> yes")
                self.asked.append(ask_id)
            case TurnEnded(reason=reason, said=said):
                _tell(f"  = {reason} {said}".rstrip())
            case CommandRun(name=name, args=args, reply=reply):
                _tell(f"  · {name}: {reply or args}")
                return name == DEEP
            case _:
                pass
        return False


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def work(app: App, request: str) -> str:
    """Give it the work, and follow until the runtime says that it is over. The session."""
    address = Address("terminal", chat="long")
    door = app.door
    clock = app.parts.clock
    asked = Said(Message("user", (Text(f"/deep {request}"),)))
    receipt = await door.submit(Inbound("1", address, "owner", clock.now(), asked))
    follower = ScriptedPerson()
    async with aclosing(door.follow(receipt.session, OWNER, receipt.after)) as items:
        async for item in items:
            if isinstance(item, Recorded) and await follower.see(item):
                break
            for ask_id in follower.asked:
                yes = Answer(ask_id, "once")
                await door.submit(
                    Inbound(f"yes {ask_id}", address, "owner", clock.now(), yes, receipt.session)
                )
            follower.asked.clear()
    return receipt.session


async def run(model: str, request: str) -> bool:
    """Whether all of it was done."""
    usual = read_settings()
    with tempfile.TemporaryDirectory(prefix="deskhand-long-") as place:
        world = WorkFolder(Path(place, "work"))
        defaults = msgspec.structs.replace(
            usual.config.defaults, models=(model,), workspace=str(world.root)
        )
        home = msgspec.structs.replace(usual.home, root=Path(place, "home"))
        settings = msgspec.structs.replace(usual, home=home, config=Config(defaults=defaults))
        async with (
            Models(settings) as models,
            open_app(settings, Parts(models.open)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            with anyio.move_on_after(LONG_S):
                session = await work(app, request)
                graph = tasks_of(app.store, session)
                _tell(f"\n{render_tasks(graph)}\n{render_progress(graph)}")
                for task in graph.values():
                    _tell(f"#{task.id} {task.status}: {task.result}")
            tasks.cancel_scope.cancel()
        good = [(words, check(world)) for words, check in CHECKS] if request == REQUEST else []
        for words, true in good:
            _tell(f"{'ok ' if true else 'BAD'} {words}")
        return all(true for _, true in good)


def main() -> None:
    """Run from the command line. Ends with 1 where something was not done."""
    parser = argparse.ArgumentParser(
        description="One small piece of long work on a real model, checked by state."
    )
    parser.add_argument("--model", default="embedded/qwen2.5-coder-1.5b", help="provider/name")
    parser.add_argument(
        "--request", default=REQUEST, help="other work; then only shown, not checked"
    )
    given = parser.parse_args()
    sys.exit(0 if anyio.run(run, given.model, given.request) else 1)


if __name__ == "__main__":
    main()
