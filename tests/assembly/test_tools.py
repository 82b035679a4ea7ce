"""The tools that an agent really has, called by a model in a whole Deskhand: their results as the
model reads them."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.assembly.judge import judge, policy_of
from deskhand.assembly.tools import make_tools, skills_of
from deskhand.config.config import Config, Home, Settings, read_settings
from deskhand.config.statements import load_statements
from deskhand.models.base import Request
from deskhand.policy.rules import Case
from deskhand.runtime.app import Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools import task_board, tasks
from deskhand.tools.queries import list_values
from deskhand.types.errors import ConfigError
from deskhand.types.events import ApprovalAsked
from deskhand.types.identity import Principal
from deskhand.types.labels import Label
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))
Call = tuple[str, dict[str, object]]


class Desk:
    """A home and what its agent does there, in one turn for each `do`."""

    def __init__(self, home: Path, **defaults: object) -> None:
        config = msgspec.convert(
            {"defaults": {"models": ["scripted/x"], **defaults}}, Config, strict=False
        )
        self.settings = Settings(Home(home), config, environment={"HOME": str(home.parent)})
        self.work = self.settings.home.workspace("default")
        self.work.mkdir(parents=True)
        self.channel = MemoryChannel()

    async def do(self, *calls: Call) -> list[str]:
        """Call these tools, one after the other, and return what the model was told."""
        told: list[str] = []

        def script(request: Request) -> Message:
            last = request.messages[-1].message
            told.extend(part.text for part in last.parts if isinstance(part, ToolResult))
            if len(told) == len(calls):
                return say("done")
            name, arguments = calls[len(told)]
            return say(
                "", ToolCall(f"c{len(told)}", name, msgspec.Raw(msgspec.json.encode(arguments)))
            )

        model = ScriptedModel(script)
        self.asked = model.requests
        parts = Parts(lambda name: model, channels=(self.channel,), authorize=lambda inbound: ANN)
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            self.channel.write("go")
            with anyio.fail_after(30):
                while len(told) < len(calls) or await app.store.open_sessions():
                    await anyio.sleep(0.005)
                while await app.store.outbox_due(1e12, 9):
                    await anyio.sleep(0.005)
            tasks.cancel_scope.cancel()
        return told

    async def asked_about(self, name: str, arguments: dict[str, object]) -> tuple[str, str]:
        """Call this tool, and return the question to which the turn comes to rest, and its
        reason."""
        call = ToolCall("c", name, msgspec.Raw(msgspec.json.encode(arguments)))
        model = ScriptedModel(lambda request: say("", call))
        parts = Parts(lambda name: model, channels=(self.channel,), authorize=lambda inbound: ANN)
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            self.channel.write("go")
            found: list[ApprovalAsked] = []
            with anyio.fail_after(30):
                while not found:
                    await anyio.sleep(0.005)
                    events = await app.store.events("default/memory:1")
                    found = [r.event for r in events if isinstance(r.event, ApprovalAsked)]
            tasks.cancel_scope.cancel()
        return found[0].question, found[0].reason


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


async def test_files(desk: Desk) -> None:
    (desk.work / "picture").write_bytes(b"P\0NG")
    (desk.work / "long").write_text("".join(f"line {n}\n" for n in range(20_000)))
    made, read, lines, binary, long = await desk.do(
        ("write_file", {"path": "notes/today/list.txt", "content": "eggs\nmilk\nbread\n"}),
        ("read_file", {"path": "notes/today/list.txt"}),
        ("read_file", {"path": "notes/today/list.txt", "start_line": 2, "end_line": 2}),
        ("read_file", {"path": "picture"}),
        ("read_file", {"path": "long"}),
    )
    assert made.startswith("ok, created notes/today/list.txt")
    assert read == "1 | eggs\n2 | milk\n3 | bread"
    assert lines == "2 | milk\n[lines 2-2 of 3]"
    assert "not a text file" in binary
    assert (
        "line 0\n" in long
        and "line 19999" in long
        and "are not shown" in long
        and len(long) < 30_000
    )
    empty, _, more, over = await desk.do(
        ("write_file", {"path": "empty", "content": ""}),
        ("write_file", {"path": "empty", "content": "", "empty": True}),
        ("write_file", {"path": "notes/today/list.txt", "content": "tea\n", "mode": "append"}),
        ("write_file", {"path": "picture", "content": "text"}),
    )
    assert "empty=true" in empty
    assert (desk.work / "empty").read_bytes() == b""
    assert more.startswith("ok") and over.startswith("ok")
    assert (desk.work / "notes/today/list.txt").read_text() == "eggs\nmilk\nbread\ntea\n"
    assert (desk.work / "picture").read_text() == "text"


async def test_edits(desk: Desk) -> None:
    (desk.work / "f.txt").write_text("one\ntwo\nthree\ntwo\n")
    patch = "--- f.txt\n+++ f.txt\n@@ -9,2 +9,2 @@\n one\n-TWO\n+2\n"
    twice, nowhere, both, text, patched, misfit = await desk.do(
        ("edit_file", {"path": "f.txt", "edits": [{"old": "two", "new": "x"}]}),
        (
            "edit_file",
            {"path": "f.txt", "edits": [{"old": "one", "new": "x"}, {"old": "ten", "new": "x"}]},
        ),
        (
            "edit_file",
            {
                "path": "f.txt",
                "edits": [{"old": "one\ntwo", "new": "1\n2"}, {"old": "1\n2", "new": "one\nB"}],
            },
        ),
        ("edit_file", {"path": "f.txt", "edits": '[{"old": "B", "new": "TWO"}]'}),
        ("edit_file", {"path": "f.txt", "patch": patch}),
        ("edit_file", {"path": "f.txt", "patch": patch}),
    )
    assert "edit 1" in twice and "edit 2" in nowhere, "which one does not match exactly once"
    assert both.startswith("ok") and text.startswith("ok") and patched.startswith("ok"), (
        "a wrong line number is forgiven"
    )
    assert "does not apply" in misfit
    assert (desk.work / "f.txt").read_text() == "one\n2\nthree\ntwo\n"


async def test_folders(desk: Desk) -> None:
    top = desk.work / "top"
    for name in (
        "b.txt",
        "sub/c.txt",
        "sub/deep/d.txt",
        ".hidden",
        "node_modules/x.js",
        "__pycache__/y",
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("a needle\n")
    (top / "away").symlink_to("/etc")
    here, deep, found = await desk.do(
        ("list_files", {"path": "top"}),
        ("list_files", {"path": "top/sub", "depth": 2}),
        ("search_files", {"text": "NEEDLE"}),
    )
    names = [line.split()[0] for line in here.splitlines()]
    assert names == ["sub/", "deep/", "c.txt", "away", "b.txt"], (
        "folders first, hidden names left out, links not followed"
    )
    assert "d.txt" in deep and "d.txt" not in here
    assert sorted(found.splitlines()) == [
        f"top/{name}:1: a needle" for name in ("b.txt", "sub/c.txt", "sub/deep/d.txt")
    ]


async def test_nothing_outside_the_workspace(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("TOPSECRET")
    (desk.work / "link").symlink_to(tmp_path)
    (desk.work / "inside").write_text("mine")
    calls: list[Call] = [
        ("read_file", {"path": path})
        for path in ("../../../../key", str(tmp_path / "key"), "link/key", "/etc/passwd")
    ]
    calls += [
        ("write_file", {"path": path, "content": "x"})
        for path in ("../out", str(tmp_path / "new"), "link/new")
    ]
    calls += [
        ("list_files", {"path": "link"}),
        ("shell", {"command": f"cat {tmp_path}/key link/key ../../../../key"}),
    ]
    told = await desk.do(*calls, ("read_file", {"path": str(desk.work / "inside")}))
    assert told.pop() == "1 | mine", "an absolute path inside works"
    assert all("outside the workspace" in said for said in told[:-1]), told
    assert "TOPSECRET" not in str(told)
    assert not (tmp_path / "new").exists() and not (desk.work.parent / "out").exists()


async def test_a_wide_agent_reaches_the_folders_of_its_owner_but_not_his_secrets(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path / ".deskhand", sandbox=False)
    for name in ("Documents/letter", ".ssh/id"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("words")
    letter, wrote, key, state = await desk.do(
        ("read_file", {"path": str(tmp_path / "Documents/letter")}),
        ("write_file", {"path": str(tmp_path / "Documents/new"), "content": "more"}),
        ("read_file", {"path": str(tmp_path / ".ssh/id")}),
        ("read_file", {"path": str(tmp_path / ".deskhand/state/deskhand.db")}),
    )
    assert (
        letter == "1 | words"
        and wrote.startswith("ok")
        and (tmp_path / "Documents/new").read_text() == "more"
    )
    assert "outside the workspace" in key and "outside the workspace" in state


async def test_commands(desk: Desk) -> None:
    said, where, failed, slow, flood = await desk.do(
        ("shell", {"command": "echo to stdout; echo to stderr >&2"}),
        ("run_shell", {"command": "pwd"}),
        ("shell", {"command": "echo before; exit 3"}),
        ("shell", {"command": "sleep 60", "timeout_s": 1}),
        ("shell", {"command": "seq 1 100000"}),
    )
    assert [line for line in said.splitlines() if line] == ["to stdout", "[stderr]", "to stderr"]
    assert where.strip().endswith("workspace"), "the name of another system is served"
    assert failed.startswith("before\n") and failed.endswith("\n[exit code: 3]")
    assert "timed out after 1 s" in slow
    assert (
        flood.startswith("1\n2\n")
        and flood.rstrip().endswith("100000")
        and "are not shown" in flood
    )
    assert len(flood) < 30_000
    named = {"cmd": "pwd; echo to stderr >&2; exit 2", "timeout": 10, "cwd": "beneath"}
    (desk.work / "beneath").mkdir()
    (elsewhere,) = await desk.do(("terminal", named))
    assert elsewhere == f"{desk.work}/beneath\n[stderr]\nto stderr\n\n[exit code: 2]"
    (place,) = await desk.do(("shell", {"command": "pwd; echo made > here"}))
    assert place.strip() == str(desk.work) and (desk.work / "here").read_text() == "made\n"


async def test_key_values(desk: Desk) -> None:
    told = await desk.do(
        ("kv_set", {"key": "seen/1", "value": "yes"}),
        ("kv_set", {"key": "seen/1", "value": "mail", "namespace": "mail"}),
        ("kv_set", {"key": "gone", "value": "x", "ttl_hours": 0.0000001}),
        ("kv_get", {"key": "seen/1"}),
        ("kv_get", {"key": "seen/1", "namespace": "mail"}),
        ("kv_get", {"key": "gone"}),
        ("kv_list", {"prefix": "seen/"}),
        ("kv_delete", {"key": "seen/1"}),
        ("kv_get", {"key": "seen/1"}),
        ("kv_set", {"key": "soon", "value": "x", "namespace": "mail", "ttl_hours": 2}),
        ("kv_set", {"key": "a_1", "value": "x", "namespace": "like"}),
        ("kv_set", {"key": "axb", "value": "x", "namespace": "like"}),
        ("kv_list", {"prefix": "a_", "namespace": "like"}),
    )
    assert told[3:7] == ["yes", "mail", "[not found]", '{"seen/1":"yes"}']
    assert told[8] == "[not found]" and told[-1] == '{"a_1":"x"}', "a prefix is no pattern"
    store = SqliteStore(
        desk.settings.home.database, load_statements()
    )  # as the command line reads it
    found = await list_values(store, "default", "mail", "", 0.0)
    await store.close()
    assert [(each.key, each.value) for each in found] == [("seen/1", "mail"), ("soon", "x")]
    lasting, soon = (each.expires_at for each in found)
    assert lasting is None and soon is not None and 7_000 < soon - time.time() <= 7_200


async def test_skills_that_are_not_permitted_do_not_exist(tmp_path: Path) -> None:
    """Neither in the index, nor for the tools, nor in the folders that can be read; a file of its
    own workspace is none of a skill's business."""
    desk = Desk(tmp_path / "home", skills=["br*"])
    shared = desk.settings.home.skills
    for name in ("brew", "pour"):
        (shared / name).mkdir(parents=True)
        (shared / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: The {name} one.\n---\nSecret {name}.\n"
        )
    listed, mine, other, file, other_file = await desk.do(
        ("list_skills", {}),
        ("read_skill", {"skill": "brew"}),
        ("read_skill", {"skill": "pour"}),
        ("read_file", {"path": str(shared / "brew" / "SKILL.md")}),
        ("read_file", {"path": str(shared / "pour" / "SKILL.md")}),
    )
    assert listed == "brew: The brew one."
    assert "Secret brew." in mine and "Secret brew." in file
    assert other == "there is no skill 'pour'; there are: brew"
    assert "outside the workspace" in other_file and "Secret" not in other_file
    system = "\n".join(desk.asked[0].system)
    assert (
        "- brew: The brew one." in system and "pour" not in system and "deskhand-help" not in system
    )


def test_what_only_looks_is_free(tmp_path: Path) -> None:
    """Also after something from outside was read."""
    desk = Desk(tmp_path / "home", also_allow=["task_*", "todo_*"])
    tools = make_tools(desk.settings, "default", skills_of(desk.settings, "default"))
    free = {
        "think",
        "read_file",
        "list_files",
        "search_files",
        "read_output",
        "list_skills",
        "read_skill",
        "ask_user",
    }
    free |= {
        "list_symbols",
        "find_references",
        "extract",
        "check_background",
        "enter_plan_mode",
        "exit_plan_mode",
    }
    free |= {"compact", *(tool.spec.name for tool in (*tasks.TOOLS, *task_board.TOOLS))}
    assert {name for name, tool in tools.items() if tool.spec.effect == "none"} == free | {
        "kv_get",
        "kv_list",
    }
    for name in free - {"exit_plan_mode"}:
        case = Case("default", name, tools[name].spec.effect, ANN, Label("untrusted"))
        assert judge(case, policy_of(desk.settings, "default")).verdict == "allow"


async def test_programs_that_are_not_listed_are_asked_about(tmp_path: Path) -> None:
    listed = Desk(tmp_path / "listed", commands=["cat", "ls"])
    (listed.work / "f").write_text("words")
    assert await listed.do(("shell", {"command": "cat f | cat"})) == ["words"]
    asking = Desk(tmp_path / "asking", commands=["cat", "ls"])
    question, reason = await asking.asked_about("shell", {"command": "ls; touch made"})
    assert question == 'shell {"command":"ls; touch made"}'
    assert reason == "'touch' is not one of the commands that run without approval"
    for name in ("cmd", "script"):
        other = Desk(tmp_path / name, commands=["cat"])
        assert (await other.asked_about("bash", {name: "touch made"}))[1] == reason, (
            "as others call it"
        )
    assert not (asking.work / "made").exists()
    usual = Desk(tmp_path / "usual")
    await usual.do(("bash", {"command": "touch made"}))
    assert (usual.work / "made").exists(), "without a list nothing is asked"


async def test_a_profile_is_what_the_model_sees(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path / "home", profile="minimal", also_allow=["kv_*"], deny=["kv_delete", "think"]
    )
    calls: list[Call] = [("kv_set", {"key": "a", "value": "b"}), ("kv_delete", {"key": "a"})]
    told = await desk.do(*calls, ("shell", {"command": "ls"}))
    assert told[0].startswith("ok") and all("there is no tool" in said for said in told[1:])
    offered = {tool.name for tool in desk.asked[0].tools}
    assert {"kv_set", "kv_get", "ask_user"} <= offered and not offered & {
        "kv_delete",
        "think",
        "shell",
        "read_file",
    }


async def test_the_tools_of_an_agent_computer_are_all_that_there_is(tmp_path: Path) -> None:
    """As its config.json lists them: no other is offered or served, and one that needs approval
    waits for it."""
    desk = Desk(tmp_path / "home")
    file = tmp_path / "config.json"
    tools = {"allow": ["shell", "read_file", "list_directory"], "require_approval": ["shell"]}
    file.write_bytes(msgspec.json.encode({"agent": {"name": "mine", "tools": tools}}))
    environment = {**desk.settings.environment, "DESKHAND_HOME": str(desk.settings.home.root)}
    desk.settings = read_settings(file, environment).with_model("scripted/x")
    (desk.work / "f").write_text("words")
    read, listed, written = await desk.do(
        ("read_file", {"path": "f"}),
        ("list_directory", {}),
        ("write_file", {"path": "g", "content": "x"}),
    )
    assert (
        read == "1 | words"
        and "f  5 bytes" in listed
        and "there is no tool 'write_file'" in written
    )
    assert {tool.name for tool in desk.asked[0].tools} == {"shell", "read_file", "list_files"}
    assert (await desk.asked_about("shell", {"command": "touch made"}))[
        0
    ] == 'shell {"command":"touch made"}'
    assert not (desk.work / "made").exists() and not (desk.work / "g").exists()


async def test_how_long_a_command_may_take(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home", shell_timeout_s=1)
    slow, named = await desk.do(
        ("shell", {"command": "sleep 30"}),
        ("shell", {"command": "sleep 1.2; echo late", "timeout_s": 20}),
    )
    assert slow == "\n[timed out after 1 s; everything it started was killed]"
    assert named == "late\n"
    spec = next(tool for tool in desk.asked[0].tools if tool.name == "shell")
    assert spec.parameters["properties"]["timeout_s"]["default"] == 1.0


async def test_the_skills_of_all_agents_may_lie_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "brew"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: brew\ndescription: Makes tea.\n---\nBoil.\n")
    desk = Desk(tmp_path / "home")
    settings = msgspec.structs.replace(
        desk.settings,
        config=msgspec.structs.replace(desk.settings.config, skills_folder="elsewhere"),
        file=tmp_path / "deskhand.yaml",
    )
    desk.settings = settings
    read, file = await desk.do(
        ("read_skill", {"skill": "brew"}), ("read_file", {"path": str(folder / "SKILL.md")})
    )
    assert "Boil." in read and "Boil." in file
    for wrong in (".", "home", "home/state/x"):
        config = msgspec.structs.replace(settings.config, skills_folder=wrong)
        with pytest.raises(ConfigError, match="contains Deskhand's own files"):
            skills_of(msgspec.structs.replace(settings, config=config), "default")


async def test_skills(desk: Desk) -> None:
    folder = desk.settings.home.root / "skills" / "brew"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: brew\ndescription: Makes tea.\n---\nBoil water first.\n"
    )
    (folder / "references/green.md").write_text("At 80 degrees.")
    for name in ("scripts/boil.sh", "assets/cup.txt"):
        (folder / name).parent.mkdir()
        (folder / name).write_text(f"this is {name}")
    names, text, more, script, asset, out, unknown = await desk.do(
        ("list_skills", {}),
        ("read_skill", {"skill": "brew"}),
        ("read_skill", {"skill": "brew", "path": "references/green.md"}),
        ("read_skill", {"skill": "brew", "path": "scripts/boil.sh"}),
        ("read_skill", {"skill": "brew", "path": "assets/cup.txt"}),
        ("read_skill", {"skill": "brew", "path": "../../deskhand.yaml"}),
        ("read_skill", {"skill": "stew"}),
    )
    assert "brew: Makes tea." in names and "Boil" not in names
    assert text.startswith('<skill-loaded name="brew">\nBoil water first.')
    assert more == "At 80 degrees."
    assert (script, asset) == ("this is scripts/boil.sh", "this is assets/cup.txt")
    assert "is not in the skill" in out
    assert "there is no skill 'stew'" in unknown


async def test_messages_and_thoughts(desk: Desk) -> None:
    thought, here = await desk.do(
        ("think", {"thought": "hm"}), ("send_message", {"text": "on my way"})
    )
    assert thought == "noted" and here.startswith("on its way, as default/memory:1#")
    texts = [(outgoing.address.chat, outgoing.parts[0]) for outgoing, _ in desk.channel.sent]
    assert [(chat, part.text) for chat, part in texts if isinstance(part, Text)] == [
        ("1", "on my way"),
        ("1", "done"),
    ]


async def test_symbols(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "shop.py").write_text("class Shop:\n    def buy(self): ...\n\nShop().buy()\n")
    (desk.work / "main.go").write_text("func buy() {\n}\n")
    listed, used = await desk.do(
        ("list_symbols", {"path": "."}), ("find_references", {"name": "buy"})
    )
    assert listed == "main.go:1: func buy\nshop.py:1: class Shop\nshop.py:2: method Shop.buy"
    assert used == (
        "main.go:1: [definition] func buy() {\nshop.py:2: [definition] def buy(self): "
        "...\nshop.py:4: Shop().buy()"
    )


def test_one_view_of_the_tasks_unless_another_is_named(tmp_path: Path) -> None:
    def views(**given: object) -> set[str]:
        config = msgspec.convert({"defaults": {"models": ["openai/gpt-5.6-sol"], **given}}, Config)
        settings = Settings(Home(tmp_path), config, environment={"HOME": str(tmp_path)})
        names = make_tools(settings, "default", skills_of(settings, "default"))
        return {name for name in names if name.partition("_")[0] in ("manage", "task", "todo")} - {
            "manage_users",
            "manage_skill",
        }

    everything = {tool.spec.name for tool in (*tasks.TOOLS, *task_board.TOOLS)}
    assert views() == views(profile="full", tools=["*"]) == {"manage_tasks"}
    assert views(also_allow=["task_*", "todo_*"]) == everything
    assert views(tools=["*", "todo_*"]) == {
        name for name in everything if not name.startswith("task_")
    }
    assert views(tools=["task_create", "task_list"]) == {"task_create", "task_list"}


def test_a_model_with_little_room_gets_what_everybody_needs(tmp_path: Path) -> None:
    def offered(model: str, **more: object) -> set[str]:
        given = {"defaults": {"models": [model], **more}}
        settings = Settings(
            Home(tmp_path), msgspec.convert(given, Config), environment={"HOME": str(tmp_path)}
        )
        return {*make_tools(settings, "default", skills_of(settings, "default"))}

    few = offered("ollama/some")
    all_ = offered("openai/gpt-5.6-sol")
    assert {
        "read_file",
        "write_file",
        "shell",
        "web_fetch",
    } <= few < all_ and "process" in all_ - few
    assert offered("ollama/some", profile="full") == all_, "somebody chose"
    assert offered("ollama/some", tools=["process"]) == {"process"}
