"""An agent with its real tools: names of other systems, folders, the sandbox, and skills that
appear while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.assembly.judge import rules_of
from deskhand.config.config import Config, Home, Settings, workspace_of
from deskhand.gateway.inbound_body import normalize_body
from deskhand.models.base import Request
from deskhand.policy.profiles import is_offered
from deskhand.runtime.app import App, Parts, open_app
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.testing.effort import least_cpu_s
from deskhand.testing.evasions import EVASIONS
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ConfigError
from deskhand.types.events import ApprovalAsked, ToolFinished, TurnEnded
from deskhand.types.identity import Address, Answer, Body, Inbound, Principal, Said
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.workspace.scope import folders_without_secrets


class Agent:
    """Calls the tools that a test names, one after the other."""

    def __init__(
        self, home: Path, config: dict[str, Any] | None = None, user: Path | None = None
    ) -> None:
        config = {"defaults": {"models": ["scripted/x"]} | (config or {}).pop("defaults", {})} | (
            config or {}
        )
        environment = {"HOME": str(user or home.parent)}
        self.settings = Settings(
            Home(home), msgspec.convert(config, Config, strict=False), (), environment
        )
        self.model = ScriptedModel(self._script)
        self._proven: Proven | None = None
        self._calls: list[tuple[str, dict[str, Any]]] = []
        self._count = 0

    def _script(self, request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        calls = [
            ToolCall(f"c{self._count}-{n}", name, msgspec.Raw(msgspec.json.encode(arguments)))
            for n, (name, arguments) in enumerate(self._calls)
        ]
        return say("", *calls)

    async def _sandbox(self) -> Proven:
        self._proven = self._proven or await open_sandbox()
        return self._proven

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        parts = Parts(lambda name: self.model, sandbox=self._sandbox)
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def start(self, app: App, *calls: tuple[str, dict[str, Any]]) -> str:
        """A fresh conversation in which these calls are made. Returns its session."""
        self._calls = list(calls)
        self._count = self._count + 1
        address = Address("terminal", chat=str(self._count))
        body: Body = Said(Message("user", (Text("go"),)))
        receipt = await app.door.submit(
            Inbound(f"m{self._count}", address, "owner", app.parts.clock.now(), body)
        )
        return receipt.session

    async def results(self, app: App, *calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
        session = await self.start(app, *calls)
        await find(app, session, TurnEnded)
        return [
            each.event.result
            for each in await app.store.events(session)
            if isinstance(each.event, ToolFinished)
        ]

    async def result(self, app: App, name: str, /, **arguments: Any) -> str:
        return (await self.results(app, (name, arguments)))[0].text


async def find(app: App, session: str, kind: type) -> Any:
    with anyio.fail_after(50):
        while True:
            for each in await app.store.events(session):
                if isinstance(each.event, kind):
                    return each.event
            await anyio.sleep(0.005)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return (tmp_path / "home").resolve()


async def test_names_of_other_systems_are_served(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        assert await agent.result(app, "bash", cmd="echo hello") == "hello\n"
        assert (await agent.result(app, "run_shell", command="pwd")).endswith(
            "/agents/default/workspace\n"
        )
        assert (
            await agent.result(app, "write_file", file_path="f", content="a\n", overwrite=True)
            != ""
        )
        assert (
            await agent.result(app, "patch_file", path="f", patch="@@ -1 +1 @@\n-a\n+b\n")
            == "ok, f changed"
        )
        assert "f  2 bytes" in (await agent.result(app, "list_directory")).splitlines()
        assert await agent.result(app, "search_code", query="B", path="f") == "f:1: b"
        shown = {tool.name for request in agent.model.requests for tool in request.tools}
        assert shown >= {"shell", "read_file", "edit_file", "send_message", "read_skill"}
        assert not shown & {"bash", "list_dir"}
        assert "did you mean 'read_file'" in await agent.result(app, "read_fil", path="f")


async def test_what_is_not_permitted_is_not_served_under_another_name(home: Path) -> None:
    agent = Agent(home, {"defaults": {"tools": ["list_dir", "kv_*"]}})
    async with agent.running() as app:
        for name in ("shell", "bash", "terminal", "read_file"):
            assert "there is no tool" in await agent.result(app, name, command="id")
        await agent.result(app, "list_files")
        assert {tool.name for tool in agent.model.requests[-1].tools} == {
            *("list_files", "kv_set", "kv_get", "kv_delete", "kv_list"),
        }


def test_one_table_of_names_for_lists_and_rules(home: Path) -> None:
    for names, offered in ((["bash"], True), (["sh*"], True), (["ba*", "read_file"], False)):
        assert (
            is_offered(
                Agent(home, {"defaults": {"tools": names}}).settings.offered_tools("default"),
                "shell",
            )
            is offered
        )
    settings = Agent(home, {"policy": [{"verdict": "deny", "tool": "terminal"}]}).settings
    assert [rule.tool for rule in rules_of(settings, "default")] == ["shell"]


async def test_several_calls_of_one_reply(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        calls = [("write_file", {"path": f"{n}", "content": str(n)}) for n in range(3)]
        reads = [("read_file", {"path": f"{n}"}) for n in range(3)]
        texts = [
            each.text
            for each in await agent.results(
                app, *calls, *reads, ("shell", {"command": "cat [0-2]"})
            )
        ]
        assert texts[3:] == ["1 | 0", "1 | 1", "1 | 2", "012"]
        effects = await app.store.query("effect_list", (1, "", "", 1 << 60, 10))
        assert [row[7] for row in effects] == ["2", "1", "0"]


async def test_odd_output_never_breaks_a_turn(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        texts = await agent.results(
            app,
            (
                "shell",
                {
                    "command": (
                        "printf '\\xff\\xed\\xa0\\x80\\x00'; touch $'\\xff' $'a\\nb' "
                        "$'\\x1b[31m'; ls"
                    )
                },
            ),
            ("list_files", {}),
            ("search_files", {"text": "a"}),
            ("write_file", {"path": "x", "content": "\ud800".encode("utf-8", "replace").decode()}),
            ("read_output", {"handle": "nothing"}),
        )
        assert [each.status for each in texts] == ["ok", "ok", "ok", "ok", "error"]


async def test_a_wide_shell_is_asked_and_sees_no_hidden_folders(home: Path) -> None:
    around = home.parent
    for name in ("Documents", ".ssh", "apps/deskhand"):
        (around / name).mkdir(parents=True)
        (around / name / "f").write_text(f"in {name}\n")
    (around / "link").symlink_to(around / ".ssh")
    agent = Agent(around / "apps" / "deskhand", {"defaults": {"sandbox": False}}, around)
    async with agent.running() as app:
        assert (
            await agent.result(app, "read_file", path=f"{around}/Documents/f") == "1 | in Documents"
        )
        for hidden in (".ssh/f", "link/f", "apps/deskhand/f"):
            assert "outside the workspace" in await agent.result(
                app, "read_file", path=f"{around}/{hidden}"
            )
        names = ("Documents/f", ".ssh/f", "link/f", "apps/deskhand/f")
        command = (
            f"cat {' '.join(f'{around}/{name}' for name in names)}; echo x > {around}/Documents/g"
        )
        session = await agent.start(app, ("shell", {"command": command}))
        ask = await find(app, session, ApprovalAsked)
        assert (
            "run commands on this machine" in ask.reason
            and not (around / "Documents" / "g").exists()
        )
        now = app.parts.clock.now()
        answer = Inbound(
            "a", Address("terminal", chat="else"), "owner", now, Answer(ask.ask_id, "yes"), session
        )
        await app.door.submit(answer)
        said = (await find(app, session, ToolFinished)).result.text
        assert said.count("No such file") == 3 and said.count("in Documents") == 1
        assert (around / "Documents" / "g").read_text() == "x\n"


def test_which_folders_hold_no_secrets(tmp_path: Path) -> None:
    for name in ("a", ".hidden", "own/deskhand", "z"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("a")
    found = [each.path for each in folders_without_secrets(tmp_path, tmp_path / "own" / "deskhand")]
    assert found == [str(tmp_path.resolve() / "a"), str(tmp_path.resolve() / "z")]


def test_where_the_workspace_is(home: Path) -> None:
    def of(workspace: str) -> Path:
        return workspace_of(Agent(home, {"defaults": {"workspace": workspace}}).settings, "default")

    assert of("") == home / "agents/default/workspace"
    assert of("~/work") == home.parent / "work"
    (home.parent / "linked").symlink_to(home.parent / "work")
    assert of(str(home.parent / "linked")) == home.parent / "work"
    (home / "state").mkdir()
    for wrong in (str(home), str(home.parent), "/", str(home / "state" / "blobs")):
        with pytest.raises(ConfigError, match="contains Deskhand's own files and keys"):
            of(wrong)


async def test_skills_appear_while_it_runs(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        assert "How Deskhand itself works" in await agent.result(app, "list_skills")
        content = "---\nname: greet\ndescription: How to greet.\n---\nSay ahoy.\n"
        await agent.result(app, "write_file", path="skills/greet/SKILL.md", content=content)
        assert "Say ahoy." in await agent.result(app, "skill", name="greet")
        assert "- greet: How to greet." in "".join(agent.model.requests[-1].system)
        shared = home / "skills" / "tidy"
        shared.mkdir(parents=True)
        (shared / "SKILL.md").write_text(
            "---\nname: tidy\ndescription: Tidies.\n---\nRun scripts/t.sh\n"
        )
        (shared / "t.sh").write_text("echo tidied\n")
        said = await agent.result(app, "read_skill", skill="tidy")
        assert f"[files, in {shared}: t.sh]" in said
        assert await agent.result(app, "shell", command=f"sh {shared}/t.sh") == "tidied\n"
        assert "exit code" in await agent.result(app, "shell", command=f"echo x >> {shared}/t.sh")
        secret = home / "secret"
        secret.write_text("TOPSECRET")
        await agent.result(
            app, "shell", command=f"mkdir -p skills/evil; ln -s {secret} skills/evil/SKILL.md"
        )
        assert "there is no skill 'evil'" in await agent.result(app, "read_skill", skill="evil")


async def test_permissive_rules_let_nothing_out_of_the_sandbox(home: Path) -> None:
    """The most permissive policy there is: every evasion still runs contained, or not at all."""
    rules = [{"verdict": "allow", "tool": "*", "effect": "*"}]
    agent = Agent(home, {"policy": rules})
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / "key").write_text("TOPSECRET")
    chosen = EVASIONS[::2]
    async with agent.running() as app:
        for script in chosen:
            if "b()" in script or "fork" in script:
                continue  # the sandbox has its own test of those
            said = await agent.result(
                app, "shell", command=f"export OUT={outside} PORT=1\n{script}", timeout_s=5
            )
            assert "TOPSECRET" not in said and (outside / "key").read_text() == "TOPSECRET", script
    assert len(EVASIONS) >= 62


@pytest.mark.parametrize(
    "filler", ["a", " ", "\n", "/a ", "a@a@a@", "((((", "`", "!![[", "\u202e", "'a;"]
)
def test_a_megabyte_of_message_takes_no_time(filler: str) -> None:
    text = filler * (1_000_000 // len(filler))
    for start in ("", "/", "/help ", "!stop\n"):
        said = Said(Message("user", (Text(start + text),)))
        assert least_cpu_s(partial(normalize_body, said, Principal("owner", ("owner",)))) < 0.25
