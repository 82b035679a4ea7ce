"""`deskhand demo`: a minute that shows what durable means. No key, no model, no network."""

from __future__ import annotations

import sys
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import NoReturn

import anyio
import anyio.abc
import anyio.to_thread
import click
import msgspec
from rich.console import Console
from rich.panel import Panel
from rich.text import Text as Rich

from ..config.config import Config, Home, Settings
from ..runtime.app import OWNER, App, Parts, open_app
from ..store.sqlite import SqliteStore
from ..types import events as e
from ..types.door import Progress
from ..types.identity import Address, Answer, Inbound, Said
from ..types.messages import Message, Text
from .run import FAILED

REQUEST_TEXT = "Plan a small birthday party for Ada, keep the notes, and post the invitation."
PAUSE_S = 1.2
ADDRESS = Address("terminal", chat="demo")


@click.command()
@click.option("--yes", is_flag=True, help="Approve without asking you.")
def demo(yes: bool) -> None:
    """Watch an agent work, get killed during a tool call, and recover. Takes 60 seconds and needs
    no key.

    \b
    Example:
      deskhand demo
    """
    with tempfile.TemporaryDirectory(prefix="deskhand-demo-") as folder:
        sys.exit(anyio.run(Demo(Path(folder), yes or not sys.stdin.isatty()).run))


def make_demo_settings(home: Path) -> Settings:
    """A home of its own, on the scripted model."""
    config = msgspec.convert({"defaults": {"models": ["scripted/demo"]}}, Config, strict=False)
    return Settings(Home(home), config)


def _refuse_model(name: str) -> NoReturn:
    raise AssertionError("the child drives, not this process")


class Demo:
    """The parent: it writes, watches, answers and kills. The agent lives in a process of its
    own."""

    def __init__(self, home: Path, yes: bool) -> None:
        self._home = home
        self._yes = yes
        self._console = Console(highlight=False)
        self._child: anyio.abc.Process | None = None
        self._line = ""

    async def run(self) -> int:
        settings = make_demo_settings(self._home)
        self._print("The model is scripted; everything else is real.", "dim")
        async with open_app(settings, Parts(_refuse_model)) as app:
            await self._start()
            said = Said(Message("user", (Text(REQUEST_TEXT),)))
            inbound = Inbound("demo-1", ADDRESS, OWNER.id, app.parts.clock.now(), said)
            receipt = await app.door.submit(inbound)
            self._print(f"\nYou: {REQUEST_TEXT}\n", "bold")
            try:
                with anyio.fail_after(90):
                    done = await self._watch(app, receipt.session)
            finally:
                if self._child is not None and self._child.returncode is None:
                    self._child.kill()
                    await self._child.wait()
        return await self._print_outcome(done)

    async def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "deskhand.testing.demo", str(self._home)]
        self._child = await anyio.open_process(command, stdin=None, stdout=None, stderr=None)

    async def _watch(self, app: App, session: str) -> bool:
        """Show what happens until the turn has ended."""
        async with aclosing(app.door.follow(session, OWNER)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    continue
                event = item.event
                if isinstance(event, e.ModelReplied):
                    self._print_reply(event)
                elif isinstance(event, e.ApprovalAsked):
                    await self._answer(app, session, event)
                elif isinstance(event, e.ToolFinished):
                    style = "green" if event.result.status == "ok" else "yellow"
                    self._print(f"    {event.result.status}: {event.result.text}", style)
                elif isinstance(event, e.ToolStarted) and event.call_id == "call_post_letter":
                    await self._kill_and_restart()
                elif isinstance(event, e.TurnEnded):
                    return event.reason == "done"
        return False

    def _print_reply(self, event: e.ModelReplied) -> None:
        if event.message.text:
            self._print(f"Deskhand: {event.message.text}")
        for call in event.message.calls:
            self._print(f"  > {call.name} {bytes(call.arguments).decode()[:100]}", "cyan")

    async def _answer(self, app: App, session: str, asked: e.ApprovalAsked) -> None:
        question = f"{asked.question}\n\nWhy I ask: {asked.reason}"
        self._console.print(
            Panel(Rich(question), title="It needs your approval", border_style="yellow")
        )
        choice = "once"
        if self._yes:
            self._print("(answered: yes)", "dim")
            await anyio.sleep(PAUSE_S)
        else:
            yes = await anyio.to_thread.run_sync(
                lambda: click.confirm("Allow it once?", default=True)
            )
            choice = "once" if yes else "no"
        answer = Answer(asked.ask_id, choice)
        inbound = Inbound(
            f"answer-{asked.ask_id}", ADDRESS, OWNER.id, app.parts.clock.now(), answer, session
        )
        await app.door.submit(inbound)

    async def _kill_and_restart(self) -> None:
        """End the agent's process in the middle of the tool, then start it again."""
        if self._child is None:
            return
        self._print("    walking to the letter box …", "dim")
        await anyio.sleep(PAUSE_S)
        self._print(f"\n$ kill -9 {self._child.pid}", "bold red")
        self._child.kill()
        await self._child.wait()
        self._print("The process was killed while it was posting.", "red")
        await anyio.sleep(PAUSE_S)
        self._print("$ deskhand   (started again)\n", "bold green")
        await self._start()

    async def _print_outcome(self, done: bool) -> int:
        """What is on disk now."""
        store = SqliteStore(make_demo_settings(self._home).home.database)
        events, breaks = await store.audit()
        await store.close()
        workspace = make_demo_settings(self._home).home.workspace("default")
        files = ", ".join(sorted(path.name for path in workspace.iterdir()))
        self._print(f"\nIn the workspace: {files}", "dim")
        self._print(
            (
                f"In the log: {events} events; the hash chain "
                f"{'is intact' if not breaks else 'is broken'}."
            ),
            "dim",
        )
        self._print(
            "Nothing was lost or done twice, and the agent reported the call whose result is "
            "unknown.",
            "bold",
        )
        return 0 if done and not breaks else FAILED

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Rich(text), style=style or None)
