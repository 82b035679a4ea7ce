"""The first steps, as the page takes them: on a real home, with a real server where a provider
would be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deskhand.assembly.models import Models, facts_of
from deskhand.config.config import read_settings
from deskhand.models.weights import WeightsFolder
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.onboarding import DEMO_MODEL, EXAMPLE_REQUESTS, Onboarding
from deskhand.testing import tour
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.testing.telegram.server import TelegramServer
from deskhand.types.commit import Change
from deskhand.types.errors import ConfigError, ModelUnknown
from deskhand.web.setup_views import Key, NewChannel


@asynccontextmanager
async def beginning(home: Path, config: str = "") -> AsyncIterator[tuple[App, Onboarding]]:
    home.mkdir(exist_ok=True)
    (home / "deskhand.yaml").write_text(config)
    settings = read_settings(
        None, {"DESKHAND_HOME": str(home), "DESKHAND_CACHE": str(home / "cache"), "HOME": str(home)}
    )
    async with Models(settings, demo=DEMO_MODEL) as models, anyio.create_task_group() as tasks:
        async with open_app(settings, Parts(models.open, renew=models.renew)) as app:
            yield app, Onboarding(app, models, tasks, app.current.reload)
        tasks.cancel_scope.cancel()


async def test_before_anything_is_chosen_a_script_answers(tmp_path: Path) -> None:
    async with beginning(tmp_path) as (_, steps):
        view = await steps.view()
        assert (view.model, view.demo, view.permission_mode) == ("", True, "workspace-free")
        assert view.examples == list(EXAMPLE_REQUESTS) == list(tour.EXAMPLES)
        assert {"openai", "anthropic"} <= {provider.name for provider in view.providers}
        assert [offer.kind for offer in view.offers][-1] == "download"
        assert (await steps.probe_model("")).ok


async def test_what_was_used_before_is_offered_until_it_was_taken_over(tmp_path: Path) -> None:
    async with beginning(tmp_path) as (app, steps):
        assert (await steps.view()).moving == ""
        for folder, file in ((".operator", "operator.yaml"), (".operator-use", "crons.json")):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / file).write_text("{}")
        both = "operator-ai (~/.operator) and operator-use (~/.operator-use) were used here."
        assert (await steps.view()).moving == both
        await app.store.change([Change("moved_once", ("operator-ai", "agent", "a", "a", 1.0))])
        assert (await steps.view()).moving == "operator-use was used here (~/.operator-use)."


async def test_a_key_is_kept_tried_and_used_at_once(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        fake.script(Behaviour(calls=(FakeCall("weather", '{"city": "Paris"}'),)))
        async with beginning(tmp_path, f"providers: {{groq: {{base_url: '{fake.url}'}}}}\n") as (
            _,
            steps,
        ):
            probe = await steps.add_provider(Key("groq", "gsk-secret-value"))
            model = probe.model
            view = await steps.view()
    assert probe.ok and probe.tools and probe.whole_s >= probe.first_s > 0
    assert model.startswith("groq/") and (view.model, view.demo) == (model, False)
    assert fake.requests[0].headers["authorization"] == "Bearer gsk-secret-value"
    assert "GROQ_API_KEY=gsk-secret-value" in (tmp_path / ".env").read_text()
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert "gsk-secret-value" not in (tmp_path / "deskhand.yaml").read_text()
    assert next(provider for provider in view.providers if provider.name == "groq").has_key


async def test_a_key_that_is_refused_changes_nothing_and_the_answer_is_told(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        fake.script(
            Behaviour(text="hello", times=1),
            Behaviour(status=401, error='{"error": {"message": "no such key {key}"}}'),
        )
        async with beginning(tmp_path, f"providers: {{groq: {{base_url: '{fake.url}'}}}}\n") as (
            _,
            steps,
        ):
            before = (await steps.add_provider(Key("groq", "gsk-good-value"))).model
            files = [(tmp_path / name).read_text() for name in (".env", "deskhand.yaml")]
            probe = await steps.add_provider(Key("groq", "gsk-wrong-value", "other"))
            unreachable = await steps.add_provider(
                Key("groq", "gsk-third-value", "", "http://127.0.0.1:9/v1")
            )
            assert (await steps.view()).model == before
    assert not probe.ok and "groq" in probe.problem and "gsk-wrong-value" not in probe.problem
    assert not unreachable.ok and unreachable.problem
    assert [(tmp_path / name).read_text() for name in (".env", "deskhand.yaml")] == files


async def test_an_address_of_ones_own_and_whether_its_model_sees_are_kept_with_the_key(
    tmp_path: Path,
) -> None:
    async with FakeLLM() as fake:
        fake.script(Behaviour(text="hello"), Behaviour(text="hello"))
        async with beginning(tmp_path) as (app, steps):
            with pytest.raises(ConfigError, match="name a model"):
                await steps.add_provider(Key("proxy", "p-secret", "", fake.url))
            probe = await steps.add_provider(
                Key("proxy", "p-secret", "seer-1", fake.url, vision=True)
            )
            assert (probe.ok, (await steps.view()).model) == (True, "proxy/seer-1")
            assert facts_of(app.settings, "proxy/seer-1").vision
            assert (
                await steps.add_provider(
                    Key("proxy", vision=False, model="seer-1", base_url=fake.url)
                )
            ).ok
            assert not facts_of(app.settings, "proxy/seer-1").vision
    assert "PROXY_API_KEY=p-secret" in (tmp_path / ".env").read_text()
    assert [each.headers["authorization"] for each in fake.requests] == ["Bearer p-secret"] * 2


@pytest.mark.parametrize(
    ("provider", "key", "error"),
    [("nobody", "x", "there is no provider 'nobody'"), ("groq", "two\nlines", "one line")],
)
async def test_a_key_that_cannot_be_changes_nothing(
    tmp_path: Path, provider: str, key: str, error: str
) -> None:
    async with beginning(tmp_path) as (_, steps):
        with pytest.raises(ConfigError, match=error):
            await steps.add_provider(Key(provider, key))
        assert (await steps.view()).demo
    assert not (tmp_path / ".env").exists() or "GROQ" not in (tmp_path / ".env").read_text()


async def test_a_model_that_is_here_is_used_and_one_that_cannot_be_is_refused(
    tmp_path: Path,
) -> None:
    async with beginning(tmp_path) as (app, steps):
        await steps.choose_model("scripted/echo")
        assert app.settings.agent("default").models == ("scripted/echo",)
        with pytest.raises((ConfigError, ModelUnknown)):
            await steps.choose_model("nobody/none")
        assert app.settings.agent("default").models == ("scripted/echo",)


async def test_a_download_that_fails_says_why_and_the_model_stays(tmp_path: Path) -> None:
    blocked = tmp_path / "cache" / "models"
    blocked.parent.mkdir()
    blocked.write_text("not a folder")
    async with beginning(tmp_path) as (app, steps):
        name = next(iter(WeightsFolder(tmp_path).known))
        await steps.choose_model(f"embedded/{name}")
        with anyio.fail_after(20):
            while not ((view := await steps.view()).pull and view.pull.problem):
                await anyio.sleep(0.01)
        assert app.settings.agent("default").models == ()


async def test_who_and_how_free(tmp_path: Path) -> None:
    async with beginning(tmp_path) as (app, steps):
        await steps.set_owner("Ada", "Europe/Berlin")
        await steps.set_permission_mode("ask-me")
        view = await steps.view()
        assert (view.person, view.timezone, view.permission_mode) == (
            "Ada",
            "Europe/Berlin",
            "ask-me",
        )
        assert app.settings.config.permission_mode == "ask-me"
        with pytest.raises(ConfigError, match="read-only"):
            await steps.set_permission_mode("reckless")
        with pytest.raises(ConfigError, match="did you mean"):
            await steps.set_owner("", "Europe/Berlim")
        assert (await steps.view()).permission_mode == "ask-me"
    assert "ask-me" in (tmp_path / "deskhand.yaml").read_text()


async def test_the_examination_has_remedies(tmp_path: Path) -> None:
    async with beginning(tmp_path) as (_, steps):
        found = await steps.run_checks()
    assert {check.level for check in found} <= {"good", "note", "bad"} and len(found) > 5


async def test_a_bot_is_met_before_its_token_is_kept(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        url = server.base_url.removesuffix("/bot")
        config = f"channels: {{telegram: {{base_url: '{url}', enabled: false}}}}\n"
        async with beginning(tmp_path, config) as (app, steps):
            with pytest.raises(ConfigError, match="token"):
                await steps.connect_channel(NewChannel("telegram", {"token_env": "1:no"}))
            assert not (tmp_path / ".env").exists() and not app.restart.requested.is_set()
            told = {"token_env": server.token}
            met = await steps.connect_channel(NewChannel("telegram", told))
            assert met.link == f"https://t.me/{met.name}" and met.qr_svg.startswith("<svg")
            assert app.settings.config.channels["telegram"].enabled
            with anyio.fail_after(10):
                await app.restart.requested.wait()
    assert server.token in (tmp_path / ".env").read_text()
    assert server.token not in (tmp_path / "deskhand.yaml").read_text()
