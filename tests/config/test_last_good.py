"""The configuration while it is being edited: followed without a restart, and never lost to a
mistake."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deskhand.assembly.models import Models
from deskhand.config.config import Settings, read_settings
from deskhand.config.last_good import (
    good_copy_path,
    read_settings_or_last_good,
    reread_settings,
    save_good_copy,
)
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.supervision.logs import logging_to_file
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ConfigError, ModelKeyRefused
from deskhand.types.health import HealthFact, HealthState
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text

GOOD = "defaults: {models: [scripted/echo], steps: 5}\n"


class Home:
    """A home whose configuration is edited."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "deskhand.yaml"
        self.env = {"DESKHAND_HOME": str(root), "HOME": str(root)}

    def write(self, text: str) -> None:
        self.root.mkdir(exist_ok=True, mode=0o700)
        self.file.write_text(text)

    def settings(self) -> Settings:
        return read_settings_or_last_good(None, self.env)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.write(GOOD)
    return made


def test_the_last_good_one_holds_where_the_file_is_broken(home: Home) -> None:
    save_good_copy(home.settings())
    copy = good_copy_path(home.settings().home, home.file)
    assert copy.stat().st_mode & 0o777 == 0o600
    home.write("defaults: {steps: many}\n")
    found = home.settings()
    assert found.config.defaults.steps == 5 and found.file == home.file
    assert str(home.file) in found.problem and "defaults.steps" in found.problem
    with pytest.raises(ConfigError, match=r"defaults\.steps"):
        save_good_copy(found)
    assert copy.read_text() == GOOD, "what is broken is never kept"
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    home.write("")
    assert home.settings().problem == "", "an empty file says nothing wrong"


def test_without_a_good_one_the_defaults_hold_and_keys_are_found(home: Home) -> None:
    home.write("defaults: [\n")
    (home.root / ".env").write_text("OPENAI_API_KEY=sk-12345678\n")
    found = home.settings()
    assert found.problem and found.config.defaults.steps is None
    assert found.environment["OPENAI_API_KEY"] == "sk-12345678"
    home.env["DESKHAND_STEPS"] = "many"
    found = home.settings()
    assert found.problem and found.home.root == home.root, "the environment may be what is wrong"


def test_a_mistake_that_only_shows_in_use_is_one_too(home: Home) -> None:
    home.write("skills_folder: state\n")
    assert "skills_folder" in home.settings().problem


def test_reading_again_takes_up_what_was_removed_and_keeps_what_was_chosen(home: Home) -> None:
    (home.root / ".env").write_text("SOME_KEY=abcdefgh\n")
    settings = home.settings().with_model("scripted/other")
    (home.root / ".env").write_text("")
    again = reread_settings(settings)
    assert "SOME_KEY" not in again.environment and again.agent("default").models == (
        "scripted/other",
    )
    home.file.unlink()
    assert reread_settings(settings).config.defaults.steps is None


@asynccontextmanager
async def running(
    home: Home, channel: MemoryChannel, script: Callable[[Request], Message]
) -> AsyncIterator[tuple[App, list[str]]]:
    """An app, and the names of the models that it opened, with a word for each time the settings
    were renewed."""
    opened: list[str] = []

    def open_model(name: str) -> ScriptedModel:
        opened.append(name)
        return ScriptedModel(script)

    owner = Principal("ann", ("owner",))

    def renewed(settings: Settings) -> None:
        opened.append("renewed")

    parts = Parts(open_model, channels=(channel,), authorize=lambda inbound: owner, renew=renewed)
    async with open_app(home.settings(), parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app, opened
        tasks.cancel_scope.cancel()


async def fact_of(app: App) -> HealthFact:
    return next(fact for fact in (await app.health()).facts if fact.name == "configuration")


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not true():
            await anyio.sleep(0.01)


async def test_a_change_holds_from_the_next_drive_on(home: Home) -> None:
    """The model, the limits, the rules, the tools and what is said after a turn; nobody is cut
    off."""
    asked: list[Request] = []

    def script(request: Request) -> Message:
        asked.append(request)
        return say(f"answer {len(asked)}")

    channel = MemoryChannel()
    async with running(home, channel, script) as (app, opened):
        channel.write("one")
        await until(lambda: len(channel.sent) == 1)
        assert opened == ["scripted/echo"] and any(tool.name == "shell" for tool in asked[-1].tools)
        home.write(
            "defaults: {models: [scripted/new], steps: 7, tools: [read_file]}\nshow_usage: true\n"
            "policy: [{verdict: deny, tool: read_file}]\nagents: {main: {}, other: {}}\n"
        )
        await until(lambda: app.settings.config.defaults.steps == 7)
        channel.write("two")
        await until(lambda: len(channel.sent) == 2)
        assert opened[1:] == ["renewed", "scripted/new"] and [
            tool.name for tool in asked[-1].tools
        ] == ["read_file"]
        said = "".join(part.text for part in channel.sent[-1][0].parts if isinstance(part, Text))
        assert said.startswith("answer 2") and "Usage:" in said
        assert app.current.agent("other").limits.steps == 7
        assert (await fact_of(app)).state == "ok"


async def test_what_is_broken_changes_nothing_and_is_told(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    channel = MemoryChannel()
    async with running(home, channel, lambda request: say("fine")) as (app, _):
        await until(good_copy_path(app.settings.home, home.file).exists)
        home.write("defaults: {models: [scripted/echo], steps: many}\n")
        await until(lambda: "The configuration was not reloaded" in caplog.text)
        fact = await fact_of(app)
        assert (fact.state, fact.detail) == ("degraded", "the last valid configuration is used")
        assert str(home.file) in fact.last_error and "defaults.steps" in fact.last_error
        assert fact.last_error_at is not None and app.settings.config.defaults.steps == 5
        with pytest.raises(ConfigError, match=r"defaults\.steps"):
            await app.current.reload()
        channel.write("one")
        await until(lambda: len(channel.sent) == 1)
        assert good_copy_path(app.settings.home, home.file).read_text() == GOOD
        home.write("defaults: {models: [scripted/echo], steps: 6}\n")
        await until(lambda: app.settings.config.defaults.steps == 6)
        assert (await fact_of(app)).state == "ok"


async def test_what_a_model_failed_at_before_the_change_is_not_held_against_it(home: Home) -> None:
    def script(request: Request) -> Message:
        raise ModelKeyRefused("no")

    async def state(app: App) -> HealthState:
        return next(
            fact.state for fact in (await app.health()).facts if fact.name == "model scripted"
        )

    channel = MemoryChannel()
    async with running(home, channel, script) as (app, _):
        channel.write("one")
        await until(lambda: len(channel.sent) == 1)
        assert await state(app) == "degraded"
        home.write("defaults: {models: [scripted/new], steps: 5}\n")
        await until(lambda: app.settings.config.defaults.models == ("scripted/new",))
        assert await state(app) == "ok"


async def test_what_needs_a_restart_is_told(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    async with running(home, MemoryChannel(), lambda request: say("fine")) as (app, _):
        home.write(GOOD + "web: {port: 9000}\n")
        await until(lambda: "Restart Deskhand to apply these settings: web" in caplog.text)
        fact = await fact_of(app)
        assert (fact.state, fact.detail) == ("degraded", "a restart is needed for: web")
        home.write(GOOD)
        await until(lambda: app.settings.config.web.port == 8000)
        assert (await fact_of(app)).state == "ok"


async def test_a_new_key_is_a_secret_at_once_and_a_new_level_holds(home: Home) -> None:
    """It stands neither in the log nor in the health, and the model is opened anew with it."""
    with logging_to_file(home.settings()):
        async with running(home, MemoryChannel(), lambda request: say("fine")) as (app, _):
            (home.root / ".env").write_text("OPENAI_API_KEY=sk-brand-new-key\n")
            home.write(GOOD + "log_level: warning\n")
            await until(lambda: app.settings.config.log_level == "warning")
            await until(lambda: "OPENAI_API_KEY" in app.settings.environment)
            logging.getLogger("deskhand.x").warning("it was refused: sk-brand-new-key")
            logging.getLogger("deskhand.x").info("not this")
            assert app.redact("a sk-brand-new-key") == "a {{secret:OPENAI_API_KEY}}"
    text = app.settings.home.log.read_text()
    assert (
        "it was refused: {{secret:OPENAI_API_KEY}}" in text
        and "brand-new" not in text
        and "not this" not in text
    )


async def test_models_are_opened_anew_only_where_their_settings_changed(home: Home) -> None:
    async with Models(home.settings()) as models:
        one = models.open("litellm/x")
        home.write("timezone: Europe/Berlin\n")
        models.renew(read_settings(None, home.env))
        assert models.open("litellm/x") is one
        home.write("providers: {litellm: {base_url: 'http://127.0.0.1:9/v1'}}\n")
        models.renew(read_settings(None, home.env))
        assert models.open("litellm/x") is not one
