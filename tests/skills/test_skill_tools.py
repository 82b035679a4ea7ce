"""The tools with which an agent runs and writes skills, and the versions that are kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.skills.run import RunSkill, make_command
from deskhand.skills.skill import Skill, Skills, SkillSource
from deskhand.testing.temporary_home import OWNER, TemporaryHome, wait_for
from deskhand.testing.tools import owner_context
from deskhand.types.errors import ToolError
from deskhand.types.identity import Principal

SKILL = "---\nname: {name}\ndescription: Fills forms.\n---\n\n{body}\n"
PROGRAM = """
import os, sys
print(sys.argv[1:], os.getcwd() == os.environ["HOME"], os.path.isfile(os.environ["SKILL_DIR"] + "/SKILL.md"))
print(sorted(name for name in os.environ if "KEY" in name or "TOKEN" in name or "OPERATOR" in name))
open("made.txt", "w").write("made")
try:
    open(os.environ["SKILL_DIR"] + "/SKILL.md", "a")
    print("it could write")
except OSError as error:
    print(type(error).__name__)
"""  # noqa: E501


@pytest.fixture
def desk(tmp_path: Path) -> TemporaryHome:
    made = TemporaryHome(tmp_path / "h")
    made.settings.environment.update({"TELEGRAM_TOKEN": "1:canary", "OPERATOR_HOME": "/x"})  # type: ignore[attr-defined]
    folder = made.settings.skills_folder / "forms"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name="forms", body="Run the program."))
    (folder / "scripts" / "fill.py").write_text(PROGRAM)
    return made


async def test_a_program_of_a_skill_runs_in_the_sandbox(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        said = await desk.call(
            app, "run_skill", skill="forms", command="python scripts/fill.py 'a b' $SKILL_DIR; id"
        )
        folder = desk.settings.skills_folder / "forms"
        first, second, third = said.splitlines()
        assert first == f"['a b', '{folder};', 'id'] True True", "there is no shell"
        assert second == "[]" and third in ("OSError", "PermissionError")
        workspace = desk.settings.home.workspace("default")
        assert (workspace / "made.txt").read_text() == "made"
        (effect,) = await app.tool_wiring.effects.timeline(OWNER)
        assert effect.tool == "run_skill" and effect.what.startswith(
            "forms: python scripts/fill.py"
        )
        direct = await desk.call(
            app, "run_skill", name="forms", command="scripts/fill.py", timeout=9
        )
        assert direct.startswith("[] True True")


async def test_it_is_called_by_another_name(desk: TemporaryHome) -> None:
    async with desk.running() as app:
        said = await desk.call(app, "skill", name="forms", args="the tax form")
        assert "Run the program." in said and "scripts/fill.py" in said


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"skill": "none", "command": "x"}, "there is no skill 'none'"),
        ({"skill": "forms", "command": ""}, "the command is empty"),
        ({"skill": "forms", "command": "'"}, "the command cannot be read: No closing quotation"),
        ({"skill": "forms", "command": "not-there"}, "not-there"),
        ({"skill": "forms", "command": "cat scripts/../../forms/SKILL.md"}, "No such file"),
        ({"skill": "forms", "command": "sleep 60", "timeout": 1}, "timed out after 1 s"),
    ],
)
async def test_what_cannot_be_run(desk: TemporaryHome, given: dict[str, str], why: str) -> None:
    async with desk.running() as app:
        assert why in await desk.call(app, "run_skill", **given)


async def test_an_agent_writes_its_own_skills(desk: TemporaryHome) -> None:
    folder = desk.settings.home.workspace("default") / "skills" / "letters"
    async with desk.running() as app:
        config = SKILL.format(name="letters", body="Write kindly.")
        said = await desk.call(app, "manage_skill", action="create", name="letters", config=config)
        assert said == "ok, created skills/letters/SKILL.md; it can be used now"
        assert (folder / "SKILL.md").read_text() == config
        assert "Write kindly." in await desk.call(app, "read_skill", skill="letters")
        twice = await desk.call(app, "manage_skill", action="create", name="letters", config=config)
        assert twice == "there is a skill 'letters' already: update it"

        longer = SKILL.format(name="letters", body="Write kindly.\n" * 600)
        said = await desk.call(app, "manage_skill", action="update", name="letters", config=longer)
        assert said.startswith("ok, updated") and "move details into references/" in said
        listed = await desk.call(app, "manage_skill", action="list")
        assert "letters (agent): Fills forms." in listed and "forms (shared): Fills" in listed

        said = await desk.call(app, "manage_skill", action="delete", name="letters")
        assert said.startswith("ok, deleted skills/letters") and not folder.exists()
        refused = await desk.call(app, "manage_skill", action="delete", name="forms")
        assert refused == "you have no skill 'forms' of your own; create makes one"
        await desk.say(app, "/undo")
        await desk.say(app, "/undo")

        async def is_back() -> bool:
            return (folder / "SKILL.md").exists()

        await wait_for(is_back)
    assert (folder / "SKILL.md").read_text() == longer


@pytest.mark.parametrize(
    ("name", "config", "why"),
    [
        ("Big", SKILL, "cannot be the name of a skill"),
        ("a--b", SKILL, "cannot be the name of a skill"),
        ("a" * 65, SKILL, "cannot be the name of a skill"),
        ("other", SKILL.format(name="one", body="x"), "its front matter says the name 'one'"),
        ("plain", "no front matter", "it has no front matter"),
        ("empty", "---\nname: empty\n---\nx", "a skill needs a description"),
        ("long", f"---\nname: long\ndescription: {'x' * 1025}\n---\nx", "at most 1024 characters"),
        ("../up", SKILL, "cannot be the name of a skill"),
    ],
)
async def test_what_is_no_skill_is_not_written(
    desk: TemporaryHome, name: str, config: str, why: str
) -> None:
    async with desk.running() as app:
        config = config.replace("{name}", name)
        said = await desk.call(app, "manage_skill", action="create", name=name, config=config)
        assert why in said
    assert not [*desk.settings.home.workspace("default").glob("**/SKILL.md")]


async def test_earlier_versions_are_kept(desk: TemporaryHome) -> None:
    folder = desk.settings.home.workspace("default") / "skills" / "letters"
    folder.mkdir(parents=True)
    first, second, third = (SKILL.format(name="letters", body=f"Write {n}.") for n in "123")
    (folder / "SKILL.md").write_text(first)
    async with desk.running() as app:
        await desk.call(app, "write_file", path="skills/letters/SKILL.md", content=second)
        await desk.call(
            app,
            "edit_file",
            path=str(folder / "SKILL.md"),
            edits=[{"old": "Write 2.", "new": "Write 3."}],
        )
        shown = await desk.call(app, "read_skill", skill="letters")
        assert "Write 3." in shown and ".history" not in shown
    versions = sorted((folder / ".history").glob("*.md"))
    assert [each.read_text() for each in versions] == [first, second, third]
    differences = sorted((folder / ".history").glob("*.diff"))
    assert [each.stem for each in differences] == [each.stem for each in versions[1:]]
    assert "-Write 2.\n+Write 3.\n" in differences[-1].read_text()
    names = [each.name for each in versions]
    assert names == sorted(names) and all(name[10] == "T" for name in names)


async def test_what_is_put_back_is_kept_too(desk: TemporaryHome) -> None:
    folder = desk.settings.home.workspace("default") / "skills" / "letters"
    async with desk.running() as app:
        for n in "12":
            config = SKILL.format(name="letters", body=f"Write {n}.")
            action = "create" if n == "1" else "update"
            await desk.call(app, "manage_skill", action=action, name="letters", config=config)
        await desk.say(app, "/undo")

        async def is_back() -> bool:
            return "Write 1." in (folder / "SKILL.md").read_text()

        await wait_for(is_back)
        assert len([*(folder / ".history").iterdir()]) == 1


async def test_a_history_that_cannot_be_kept_stops_nothing(desk: TemporaryHome) -> None:
    folder = desk.settings.home.workspace("default") / "skills" / "letters"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name="letters", body="Write 1."))
    (folder / ".history").write_text("in the way")
    config = SKILL.format(name="letters", body="Write 2.")
    async with desk.running() as app:
        said = await desk.call(app, "manage_skill", action="update", name="letters", config=config)
        assert said.startswith("ok, updated") and (folder / "SKILL.md").read_text() == config
        assert await app.tool_wiring.effects.timeline(OWNER), "it can be undone"


async def test_only_the_owners_own_yes_gives_a_skill_secrets(desk: TemporaryHome) -> None:
    """Approvers allow calls, and not that a secret is used from now on."""
    folder = desk.settings.skills_folder
    declared = SKILL.replace("forms.\n---", "forms.\nmetadata:\n  deskhand-secrets: mail\n---")
    (folder / "forms" / "SKILL.md").write_text(declared.format(name="forms", body="Run it."))
    tool = RunSkill(Skills([SkillSource("shared", folder)]))
    given = {"skill": "forms", "command": "scripts/fill.py", "secrets": ["mail"]}
    arguments = msgspec.Raw(msgspec.json.encode(given))
    owner = Principal("owner", ("owner",))
    ann = Principal("ann", ("approver",))
    async with desk.running() as app:
        scope = await app.current.agent("default").workspace.open_scope()
        for asks, allows in ((owner, ann), (ann, owner), (owner, None)):
            context = owner_context(scope, principal=asks, approver=allows)
            with pytest.raises(ToolError, match="only the owner can let a skill use a secret"):
                await tool.run(arguments, context)


async def test_a_skill_that_becomes_a_link_shows_nothing_else(
    desk: TemporaryHome, tmp_path: Path
) -> None:
    """An agent may put a link where its skill was, while that is looked at."""
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace = desk.settings.home.workspace("default")
    (workspace / "skills").mkdir(parents=True)
    skill = Skill("own", "It is one.", "agent", workspace, "skills/own")
    (workspace / "skills" / "own").symlink_to(outside)
    async with desk.running() as app:
        scope = await app.current.agent("default").workspace.open_scope()
        command = make_command(skill, "python scripts/x.py", owner_context(scope))
        assert not any(str(outside) in each for each in command.argv)
        assert not any(each.path == str(outside) for each in command.mounts)
