"""What can be known and changed of the house over HTTP: settings, skills, models."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from deskhand.types.commit import Change
from deskhand.types.labels import Label

from .served import Served, serving
from .test_guard import problem


async def test_status_and_health_name_the_same_version(served: Served) -> None:
    running = version("deskhand")
    assert (await served.owner.get("/api/status"))["version"] == running
    assert (await served.owner.get("/health"))["version"] == running


async def test_settings_are_shown_without_secrets_and_set_at_once(served: Served) -> None:
    before = await served.owner.get("/api/settings")
    assert "defaults.steps" in before["keys"] and "web.host" not in before["keys"]
    status, after = await served.owner.ask(
        "PATCH", "/api/settings", {"key": "defaults.steps", "value": 7}
    )
    assert (status, after["config"]["defaults"]["steps"]) == (200, 7)
    assert served.app.settings.agent("default").steps == 7
    assert (
        "steps: 7" in Path(after["file"]).read_text()
        or '"steps": 7' in Path(after["file"]).read_text()
    )
    status, back = await served.owner.ask(
        "PATCH", "/api/settings", {"key": "defaults.steps", "value": None}
    )
    assert status == 200 and "steps" not in back["config"]["defaults"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("defaults.stepz", 1),
        ("defaults.steps", "many"),
        ("timezone", "Mars/Base"),
        ("web.host", "0.0.0.0"),
        ("plugins", ["evil"]),
        ("policy", []),
        ("defaults.sandbox", False),
        ("agents.default.workspace", "/"),
        ("agents.default", {"sandbox": False}),
        ("defaults", {"sandbox": False}),
        ("roles.all", {"agents": ["*"]}),
        ("", 1),
        ("defaults.preset", "no-such"),
    ],
)
async def test_what_is_not_set_from_here(served: Served, key: str, value: object) -> None:
    file = served.app.settings.file
    before = served.app.settings.config
    text = file.read_text()
    assert (
        problem(await served.owner.ask("PATCH", "/api/settings", {"key": key, "value": value}))[0]
        == 400
    )
    assert file.read_text() == text and served.app.settings.config == before


async def test_a_secret_in_the_configuration_is_not_shown(tmp_path: Path) -> None:
    providers = {
        "mine": {
            "base_url": "http://127.0.0.1:1/v1?key=sk-very-secret-0123456789",
            "key_env": "MINE_KEY",
        }
    }
    async with serving(tmp_path, providers=providers) as served:
        shown = await served.owner.ask("GET", "/api/settings")
        assert "sk-very-secret" not in str(shown), shown


async def test_a_skill_is_written_and_found(served: Served) -> None:
    draft = {
        "name": "tidy-up",
        "description": "Use it to tidy:\n up",
        "body": "# Tidy\nPut it away.",
    }
    status, made = await served.owner.ask("POST", "/api/skills", draft)
    assert (status, made) == (
        200,
        {"name": "tidy-up", "description": "Use it to tidy: up", "source": "shared"},
    )
    assert made in await served.owner.get("/api/skills")
    file = served.app.settings.skills_folder / "tidy-up" / "SKILL.md"
    assert file.read_text().endswith("---\n\n# Tidy\nPut it away.\n")
    assert problem(await served.owner.ask("POST", "/api/skills", draft)) == (400, "bad_request")
    for name in ("../evil", "Tidy", "a b", "", "x" * 65, "a/b", ".hidden"):
        answer = await served.owner.ask("POST", "/api/skills", {**draft, "name": name})
        assert problem(answer) == (400, "bad_request"), name
    assert [each.name for each in served.app.settings.skills_folder.iterdir()] == ["tidy-up"]


async def test_models(served: Served) -> None:
    found = (await served.owner.get("/api/models/search?q=claude sonnet"))["models"]
    assert found and all("claude" in each["id"] and not each["ready"] for each in found)
    listed = await served.owner.get("/api/models")
    assert listed["current"] == {"provider": "scripted", "model_id": "echo"}
    assert listed["pinned"] == [{"id": "echo", "name": "echo", "provider": "scripted"}]
    assert "scripted/echo" in {each["id"] for each in listed["models"]}
    lmstudio = listed["providers"]["lmstudio"]
    openrouter = listed["providers"]["openrouter"]
    assert (lmstudio["reachable"], openrouter["searchable"]) == (
        False,
        False,
    ) and "no key" in openrouter["note"]
    body = {"provider": "scripted", "model_id": "tour"}
    status, chosen = await served.owner.ask("POST", "/api/models/select", body)
    assert status == 200 and (chosen["provider"], chosen["model_id"]) == ("scripted", "tour")
    assert served.app.settings.agent("default").models == ("scripted/tour",)
    bad = {"provider": "scripted", "model_id": "nothing"}
    assert problem(await served.owner.ask("POST", "/api/models/select", bad))[0] == 400


async def test_a_skill_that_a_member_wrote_is_no_skill_of_others(tmp_path: Path) -> None:
    """The list is as the prompt: whoever is not instructed by it does not read of it either."""
    async with serving(tmp_path) as served:
        await served.people.add_user("bob", "member")
        bob = (await served.token("bob"))[1]
        folder = Path(served.app.current.agent("default").folder) / "skills" / "tidy"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            "---\nname: tidy\ndescription: Do as bob says.\n---\nDo.\n"
        )
        label = msgspec.json.encode(Label("tool_local", by=("bob",)))
        row = (str((folder / "SKILL.md").resolve()), label, "default/web:bob:x", 0.0)
        await served.app.store.change((Change("file_label_set", row),))
        assert "tidy" in {each["name"] for each in await bob.get("/api/skills")}
        assert "bob" not in str(await served.owner.get("/api/skills"))
