"""The files that people fill in: made where they are missing, never written over, and some of them
by people alone."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.workspace_templates import (
    FILE_PURPOSES,
    TEMPLATES,
    WORKSPACE_TEMPLATES,
    create_agent_files,
)
from deskhand.config.config import Config, Home, Settings, workspace_of
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ConfigError
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))


def settings(home: Path, **config: Any) -> Settings:
    raw = {"defaults": {"models": ["scripted/test"]}, **config}
    return Settings(
        Home(home),
        msgspec.convert(raw, Config, strict=False),
        environment={"HOME": str(home.parent)},
    )


async def live(
    settings: Settings, *calls: tuple[str, dict[str, object]]
) -> tuple[list[str], list[Request]]:
    """One life, one message, in which these tools are called. What they said, and what the model
    was asked."""

    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool" or not calls:
            return say("done")
        made = (
            ToolCall(f"c{n}", name, msgspec.Raw(msgspec.json.encode(a)))
            for n, (name, a) in enumerate(calls)
        )
        return say("", *made)

    model, channel = ScriptedModel(script), MemoryChannel()
    async with (
        open_app(
            settings, Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: ANN)
        ) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        channel.write("go", external_id=os.urandom(4).hex())
        with anyio.fail_after(15):
            while not channel.sent:
                await anyio.sleep(0.005)
        tasks.cancel_scope.cancel()
    last = model.requests[-1].messages if calls else ()
    told = [
        part.text for shown in last for part in shown.message.parts if isinstance(part, ToolResult)
    ]
    return told, model.requests


def everything(folder: Path) -> dict[str, str]:
    """Name to hash, or to where a link leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = f"-> {path.readlink()}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


async def test_the_first_start_makes_what_is_missing(tmp_path: Path) -> None:
    chosen = settings(tmp_path, agents={"a": {}, "b": {}})
    _, requests = await live(chosen)
    for name in ("a", "b"):
        work = tmp_path / "agents" / name / "workspace"
        assert {path for path in WORKSPACE_TEMPLATES if (work / path).is_file()} == set(
            WORKSPACE_TEMPLATES
        )
        assert all(
            (work / folder).is_dir() for folder in ("memory", "knowledge", "skills", "tools")
        )
        assert (work / "shared").resolve() == (tmp_path / "shared").resolve()
        assert (tmp_path / "agents" / name / "AGENT.md").is_file()
    assert (tmp_path / "SYSTEM.md").stat().st_mode & 0o777 == 0o600
    stable = requests[0].system[0]
    assert "# RULES.md\n- What is private stays private" in stable, (
        "the rules hold from the first message on"
    )
    assert "SOUL" not in stable and "<!--" not in stable, "what nobody has filled in costs nothing"


async def test_nothing_is_written_over(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    await live(chosen)
    work = chosen.home.workspace("default")
    for path in (
        tmp_path / "SYSTEM.md",
        work / "RULES.md",
        work / "SOUL.md",
        work / "memory/MEMORY.md",
    ):
        path.write_text(f"mine: {path.name}")
    (work / "USER.md").write_text("")
    (work / "CODE.md").unlink()
    (work / "CODE.md").symlink_to("nowhere")
    (work / "shared").unlink()
    (work / "shared").mkdir()
    before = everything(work) | everything(tmp_path / "agents")
    assert create_agent_files(chosen, "default") == []
    _, requests = await live(chosen)
    assert everything(work) | everything(tmp_path / "agents") == before
    assert (
        requests[0].system[0].startswith("mine: SYSTEM.md")
        and "# RULES.md\nmine: RULES.md" in requests[0].system[0]
    )
    (work / "AGENTS.md").unlink()
    assert create_agent_files(chosen, "default") == [work / "AGENTS.md"]


def test_many_may_start_at_once(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        made = [
            path
            for one in threads.map(lambda _: create_agent_files(chosen, "default"), range(8))
            for path in one
        ]
    files = [path for path in made if path.is_file()]
    assert len(files) == len(set(files)) == len(WORKSPACE_TEMPLATES) + 2, (
        "each file was made by one of them"
    )
    for path in files:
        assert path.read_bytes() == (TEMPLATES / path.name).read_bytes()
    assert list(tmp_path.rglob(".*")) == [], "nothing unfinished is left"


async def test_a_folder_of_ones_own_stays_as_it_is(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("")
    await live(
        settings(
            tmp_path / "home", defaults={"models": ["scripted/test"], "workspace": str(project)}
        )
    )
    assert [path.name for path in project.iterdir()] == ["main.py"]
    assert [path.name for path in (tmp_path / "home/agents/default").iterdir()] == ["AGENT.md"]


async def test_it_starts_where_they_cannot_be_made(tmp_path: Path) -> None:
    """A file where the folder would be."""
    (tmp_path / "shared").write_text("")
    _, requests = await live(settings(tmp_path))
    assert len(requests) == 1


def test_each_template_is_told_of() -> None:
    names = {path.name for path in TEMPLATES.glob("*.md")}
    assert (
        names == set(FILE_PURPOSES) and {Path(name).name for name in WORKSPACE_TEMPLATES} <= names
    )


async def test_what_steers_an_agent_is_out_of_its_reach(tmp_path: Path) -> None:
    home = tmp_path / "home"
    chosen = settings(home)
    own = chosen.home.agent("default")
    work = chosen.home.workspace("default")
    (home / "prompts/work").mkdir(parents=True)
    (home / "prompts/work/PROMPT.md").write_text("mine")
    await live(chosen)
    steering = [
        home / "SYSTEM.md",
        own / "AGENT.md",
        home / "prompts/work/PROMPT.md",
        work / "RULES.md",
    ]
    before = [path.read_bytes() for path in steering]
    calls: list[tuple[str, dict[str, object]]] = []
    for path in steering:
        calls += [
            ("write_file", {"path": name, "content": "x"})
            for name in (str(path), os.path.relpath(path, work))
        ]
        calls.append(
            (
                "shell",
                {
                    "command": f"echo x > {path}; echo x > {os.path.relpath(path, work)}; rm -f {path}"  # noqa: E501
                },
            )
        )
    calls.append(("write_file", {"path": str(home / "prompts/evil/PROMPT.md"), "content": "x"}))
    chosen = settings(home, policy=[{"verdict": "allow", "effect": "*"}])
    told, _ = await live(chosen, *calls)
    assert len(told) == len(calls)
    refused = [said for said, (name, _) in zip(told, calls, strict=True) if name == "write_file"]
    assert all("outside the workspace" in said or "is protected" in said for said in refused), (
        refused
    )
    assert [path.read_bytes() for path in steering] == before and not (
        home / "prompts/evil"
    ).exists()


def test_no_workspace_and_no_grant_may_hold_it(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    for wrong in ("prompts", "prompts/x", "agents", "agents/default", "jobs", "state", ""):
        chosen = settings(home, defaults={"workspace": str(home / wrong)})
        with pytest.raises(ConfigError, match="contains Deskhand's own files"):
            workspace_of(chosen, "default")
        assert chosen.home.is_protected(home / wrong, write=True)
    for right in ("shared", "agents/default/other", "elsewhere"):
        assert (
            workspace_of(settings(home, defaults={"workspace": str(home / right)}), "default")
            == home / right
        )
    assert not Home(home).is_protected(home / "prompts", write=False) and not Home(
        home
    ).is_protected(tmp_path.resolve() / "x", True)
    assert Home(home).is_protected(home.parent, write=False) and Home(home).is_protected(
        home / "state", write=False
    )
