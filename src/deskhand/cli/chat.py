"""`deskhand`: the chat. It follows the session and hands in what is typed; what it shows is decided
in `view`."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from typing import NoReturn
from zoneinfo import ZoneInfo

import anyio
import click
import msgspec
from anyio.abc import TaskGroup

from ..config.config import Settings
from ..runtime.app import App
from ..tools.paths import Workspace
from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.events import MessageReceived, Recorded
from ..types.identity import Address, Inbound, Receipt, Said, session_key
from ..types.marked_texts import mark_text
from ..types.messages import Message, Text
from ..types.turn import JOINT_ASK_CHOICES, SINGLE_ASK_CHOICES
from .alerts import show_alerts
from .ask import Question, run_line_chat, set_session_model
from .asks import CONTINUE_WITH, resume_command, session_name, submit_answer
from .conversations import KnownConversations
from .edits import Edits
from .hints import Hint, Hints
from .key_bindings import Keys, hint_commands
from .mentions import attach_mentions, find_open_mention, find_paths, take_name
from .model import set_model as keep
from .paint import Paint
from .pictures import PicturePrinter
from .plain import escape_control
from .resume_picker import ResumePicker
from .run import ME, USAGE, fail, load_settings, resolve_agent, run
from .screen import Screen, open_history
from .session_facts import SessionFacts
from .status_line import format_duration, render_status
from .temporary_app import with_app
from .terminal_language import terminal_say
from .terminal_traits import TerminalTraits, guess_traits, read_traits
from .themes import choose_theme, detect_color_system
from .view import View
from .welcome import choose_model, list_offers

SHOWN_TURNS = 3
"""How much of an older conversation is shown when it goes on."""
ANSWER_GRACE_S = 0.4
"""A key pressed sooner after an approval appeared was meant for the line that was being typed."""
LEAVE_WINDOW_S = 2.0
LISTED_SESSIONS = 1000
SPINNER_S = 0.2
"""How often it is drawn again that something is going on."""
PATHS_TTL_S = 1.0
"""For so long a folder is taken to hold what it held."""


class Which(msgspec.Struct, frozen=True):
    """Which conversation is meant: that of a name, the `latest`, one that is chosen from a list
    (`resume`), or a fresh one."""

    session: str = ""
    latest: bool = False
    resume: bool = False


def chat(which: Which, *, agent: str, model: str, config: str | None) -> NoReturn:
    """Talk until the person leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail(
            (
                'a chat needs a terminal. Without one, use: deskhand ask "…"  (all commands: '
                "deskhand --help)"
            ),
            USAGE,
        )
    settings = load_settings(config)
    name = resolve_agent(settings, agent)
    if not (model or settings.agent(name).models):
        from .importing import find_import_hint

        if moving := find_import_hint(settings):
            click.echo(f"{escape_control(moving)}\n")
        chosen = run(settings, lambda: _choose_first_model(settings))
        if not chosen:
            sys.exit(0)
        settings = settings.with_model(chosen)

    async def use(app: App) -> None:
        key = await _resolve_session(app, settings, which, name)
        while key:
            app.dispatch.adopt(key)
            if model:
                await set_session_model(app, key, _address(key), model)
            await show_alerts(app, ZoneInfo(settings.config.timezone))
            if settings.environment.get("TERM", "dumb") == "dumb":
                await run_line_chat(app, Question("", name, key, interactive=True))
                return
            here = Chat(app, settings, key, app.current.agent_name(key))
            await here.run()
            if not here.wants_other:
                return
            key = await _pick_session(app, settings) or key

    with_app(settings, use)
    sys.exit(0)


async def _choose_first_model(settings: Settings) -> str:
    chosen = await choose_model(await list_offers(settings))
    if chosen and not chosen.startswith("scripted/"):
        keep(settings, chosen)
    return chosen


async def _pick_session(app: App, settings: Settings) -> str:
    """The conversation that the person chooses from the recent ones; '' where they leave."""
    rows = await app.store.sessions(ME, LISTED_SESSIONS)
    if not rows:
        click.echo(terminal_say(settings)(mark_text("No conversations yet. Start one: deskhand")))
        return ""
    if settings.environment.get("TERM", "dumb") == "dumb":
        fail("this terminal cannot show a list to choose from: deskhand sessions list", USAGE)
    dark = guess_traits(settings.environment).dark
    theme = choose_theme(settings.config.terminal.theme, dark=dark)
    if detect_color_system(settings.environment, settings.config.terminal.theme) is None:
        theme = choose_theme("none", dark=dark)
    picked = await ResumePicker(rows, app.store, settings, app.parts.clock.now()).run(theme)
    return picked.session if picked is not None else ""


async def _resolve_session(app: App, settings: Settings, which: Which, agent: str) -> str:
    """The session that is meant: by its whole key, by its name in this terminal, the latest, one
    that is chosen now, or a fresh one. '' where none was chosen."""
    if which.resume:
        return await _pick_session(app, settings)
    given = which.session
    known = await app.store.sessions(ME, LISTED_SESSIONS)
    if which.latest and not given:
        here = [row.session for row in known if row.agent == agent and row.channel == "terminal"]
        if here:
            return here[0]
    if "/" in given:
        if not any(row.session == given for row in known):
            fail(
                f"there is no conversation {given!r}; list conversations with: deskhand "
                "sessions list",
                USAGE,
            )
        return given
    if given:
        return session_key(agent, Address("terminal", chat=given))
    when = datetime.fromtimestamp(app.parts.clock.now(), ZoneInfo(settings.config.timezone))
    name = when.strftime("%b%d-%H%M").lower()
    taken = {row.session for row in known}
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    keys = (session_key(agent, Address("terminal", chat=each)) for each in names)
    return next(key for key in keys if key not in taken)


def _address(session: str) -> Address:
    """Where what is typed here comes from."""
    return Address("terminal", chat=session.partition("/terminal:")[2] or session)


_GREETING = mark_text("Write a message. / for commands, @ for files, Ctrl+C stops, Ctrl+D quits.")
_EARLIER = mark_text("… earlier: deskhand sessions show {session_name}")
_STILL_WORKING = mark_text(
    "It was still working. It continues when you come back, or while Deskhand is running."
)
_PRESS_AGAIN = mark_text("Press Ctrl+C again to quit.")
_STOPPING = mark_text("stopping …")
_WAITING_FOR_YOU = mark_text("waiting for you  Ctrl+C stops")
_WORKING = mark_text("working {duration}  Ctrl+C stops")
_ELSEWHERE = mark_text("connected to the running Deskhand")


class Chat:
    """One person, one session, one terminal."""

    def __init__(self, app: App, settings: Settings, session: str, agent: str) -> None:
        self._app = app
        self._settings = settings
        self._session = session
        self._agent = agent
        self._now = app.parts.clock.monotonic
        self._say = terminal_say(settings)
        self._theme = settings.config.terminal.theme
        self._facts = SessionFacts()
        self._pictures = PicturePrinter("", app.blobs.get, lambda: 80, far=False)
        self.hints = Hints(self._find_hints)
        self.screen = Screen(
            self._render_live,
            self._render_status,
            self.hints,
            open_history(settings.home.history),
        )
        paint = Paint(
            lambda: self.screen.columns,
            detect_color_system(settings.environment, self._theme),
        )
        self.view = View(
            paint,
            self._now,
            usage=settings.config.show_usage,
            zone=ZoneInfo(settings.config.timezone),
            say=self._say,
        )
        self._paint = paint
        self._tasks: TaskGroup | None = None
        self.wants_other = False
        self._stopping = False
        self._pressed_at = -LEAVE_WINDOW_S
        self._logged_inbox_ids: deque[int] = deque(maxlen=100)
        self._files: Workspace | None = None
        self._conversations = KnownConversations(app, settings, session)
        self._cached_names: tuple[str, float, list[str]] = ("", -PATHS_TTL_S, [])

    async def run(self) -> None:
        """Until the person leaves."""
        traits = await self._read_traits()
        theme = choose_theme(self._theme, dark=traits.dark)
        if self._paint.colours is None:
            theme = choose_theme("none", dark=traits.dark)
        self._paint.use_theme(theme)
        self._pictures = PicturePrinter(
            traits.pictures if self._settings.config.terminal.pictures else "",
            self._app.blobs.get,
            lambda: self.screen.columns,
            far="SSH_CONNECTION" in self._settings.started_with,
        )
        after = await self._find_start()
        await self._open_files()
        await self._conversations.refresh()
        self.screen.print(self._render_greeting(after))
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._follow, after)
            tasks.start_soon(self._animate)
            with suppress(EOFError):
                await self.screen.run(Keys(self).bindings, theme, traits.typed)
            tasks.cancel_scope.cancel()
        if not self.wants_other:
            self._print_goodbye()

    async def _read_traits(self) -> TerminalTraits:
        """What the terminal is like. It is not asked where the answer makes no difference."""
        terminal = self._settings.config.terminal
        plain = self._paint.colours is None or terminal.theme not in ("auto", "high-contrast")
        environment = self._settings.environment
        if plain and not terminal.pictures:
            return TerminalTraits()
        return await anyio.to_thread.run_sync(
            partial(read_traits, environment, sys.stdin.fileno(), sys.stdout.fileno())
        )

    async def _open_files(self) -> None:
        """Look up what the agent may reach now. Without a workspace no file is completed, and none
        attached."""
        try:
            agent = self._app.current.agent_of(self._session)
            self._files = (await agent.workspace.open_scope()).files
        except DeskhandError:
            self._files = None

    async def _find_start(self) -> int:
        """The event after which the last few turns begin."""
        events = await self._app.store.events(self._session)
        turns = [recorded.n for recorded in events if isinstance(recorded.event, MessageReceived)]
        after = turns[-SHOWN_TURNS] - 1 if len(turns) >= SHOWN_TURNS else 0
        for recorded in events:
            if recorded.n <= after:
                self._facts.see(recorded, self._settings)
        return after

    def _render_greeting(self, after: int) -> list[str]:
        model = next(iter(self._settings.agent(self._agent).models), "")
        lines = [self._paint.line(("deskhand", "bold"), (f"  {model}  {self._agent}", "quiet"))]
        lines.append(self._paint.line((self._say(_GREETING), "quiet")))
        if after:
            earlier = self._say(_EARLIER.format(session_name=self._session))
            lines.append(self._paint.line((earlier, "quiet")))
        return lines

    def _print_goodbye(self) -> None:
        if self.view.working:
            click.echo(self._say(_STILL_WORKING))
        command = escape_control(resume_command(self._session, self._settings))
        click.echo(self._say(CONTINUE_WITH.format(command=command)))

    # ------------------------------------------------------------------ what is seen

    async def _follow(self, after: int) -> None:
        edits = Edits(self._app, self._session)
        async with aclosing(self._app.door.follow(self._session, ME, after)) as items:
            async for item in items:
                if isinstance(item, Recorded):
                    self._facts.see(item, self._settings)
                    self._logged_inbox_ids.append(
                        getattr(item.event, "inbox_id", 0)
                    )  # it may come before its receipt
                self.screen.print(self.view.render(item, await edits.find_diff(item)))
                if isinstance(item, Recorded):
                    self.screen.print(await self._pictures.render(item))
                if not self.view.working:
                    self._stopping = False
                if not isinstance(item, Progress) or item.kind != "thinking":
                    self.screen.redraw()

    async def _animate(self) -> None:
        drove = False
        while True:
            await anyio.sleep(SPINNER_S)
            moves = (
                self.view.working or self._pressed_at + LEAVE_WINDOW_S + 2 * SPINNER_S > self._now()
            )
            if moves or drove != self._app.dispatch.is_driving:
                drove = self._app.dispatch.is_driving
                self.screen.redraw()

    def _render_live(self, height: int) -> list[str]:
        return self.view.render_live(height)

    def _render_status(self) -> str:
        facts = self._list_facts()
        return render_status(self._describe_state(), facts, self.screen.columns)

    def _describe_state(self) -> str:
        if self._now() - self._pressed_at < LEAVE_WINDOW_S:
            return self._say(_PRESS_AGAIN)
        if self._stopping:
            return self._say(_STOPPING)
        if self.view.ask is not None:
            return self._say(_WAITING_FOR_YOU)
        if self.view.working:
            took = format_duration(self._now() - self.view.since)
            return self._say(_WORKING.format(duration=took))
        return session_name(self._session, self._settings)

    def _list_facts(self) -> dict[str, str]:
        facts = {}
        current = self._app.current
        if current.agents:
            agent = current.agent_of(self._session)
            facts = self._facts.list_facts(agent, current.settings)
        if not self._app.dispatch.is_driving:
            facts["elsewhere"] = _ELSEWHERE
        return {name: self._say(fact) for name, fact in facts.items()}

    # ------------------------------------------------------------------ what is done

    @property
    def answer_choices(self) -> tuple[str, ...]:
        ask = self.view.ask
        if ask is None or not ask.approval or self._now() - ask.at < ANSWER_GRACE_S:
            return ()
        return JOINT_ASK_CHOICES if ask.together else SINGLE_ASK_CHOICES

    def submit(self, text: str) -> None:
        command = text.strip().lower()
        if command in ("/quit", "/resume"):
            self.wants_other = command == "/resume"
            self.leave()
            return
        ask = self.view.ask
        if (
            ask is not None
            and ask.choices
            and text.strip().isdigit()
            and 0 < int(text) <= len(ask.choices)
        ):
            self._start(self._answer, ask.id, ask.choices[int(text) - 1])
        else:
            self._start(self._submit_message, text)

    def answer(self, choice: str) -> None:
        if self.view.ask is not None:
            self._start(self._answer, self.view.ask.id, choice)

    def find_names(self, beginning: str) -> list[str]:
        asked, at, found = self._cached_names
        if asked != beginning or self._now() - at > PATHS_TTL_S:
            found = find_paths(self._files, beginning) if self._files is not None else []
            found += self._conversations.match(beginning)
            self._cached_names = (beginning, self._now(), found)
        return found

    def _find_hints(self, before: str) -> list[Hint]:
        beginning = find_open_mention(before)
        if beginning is None:
            return hint_commands(before, self._say)
        return [
            Hint(f"@{name}", take_name(before, name), self._conversations.title(name))
            for name in self.find_names(beginning)
        ]

    def interrupt(self) -> None:
        if self.view.working and not self._stopping:
            self._stopping = True
            self._start(self._stop)
        elif self._now() - self._pressed_at < LEAVE_WINDOW_S:
            self.leave()
        else:
            self._pressed_at = self._now()
            self.screen.redraw()

    def leave(self) -> None:
        self.screen.leave()

    def _start(self, what: Callable[..., Awaitable[Receipt]], *args: str) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._run_action, what, args)

    async def _run_action(
        self, what: Callable[..., Awaitable[Receipt]], args: tuple[str, ...]
    ) -> None:
        """Do it; what cannot be done is said, and the chat goes on."""
        try:
            receipt = await what(*args)
        except DeskhandError as error:
            self._print_error(str(error))
            return
        if receipt.status == "refused":
            self._print_error(receipt.reason)

    async def _submit_message(self, text: str) -> Receipt:
        address = _address(self._session)
        now = self._app.parts.clock.now()
        ids = self._app.parts.ids
        said = Said(await self._make_message(text))
        receipt = await self._app.door.submit(
            Inbound(ids.new("line"), address, "owner", now, said, self._session)
        )
        is_here = receipt.status == "accepted" and receipt.session == self._session
        if is_here and receipt.inbox_id not in self._logged_inbox_ids:
            self.view.queued[receipt.inbox_id] = escape_control(text)
        return receipt

    async def _make_message(self, text: str) -> Message:
        await self._open_files()
        if text.lstrip().startswith(("/", "!")):
            return Message("user", (Text(text),))
        await self._conversations.refresh()
        return await attach_mentions(
            text, self._files, self._app.blobs.put, self._conversations.read
        )

    async def _answer(self, ask_id: str, choice: str) -> Receipt:
        return await submit_answer(self._app, (self._session, ask_id), choice)

    async def _stop(self) -> Receipt:
        return await self._app.door.stop(self._session, ME)

    def _print_error(self, text: str) -> None:
        self._stopping = False
        self.screen.print([*self._paint.text(self._say(text), "warn"), ""])
