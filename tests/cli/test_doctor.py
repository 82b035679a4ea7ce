"""The doctor finds what is broken, says what to type, and repairs what it may."""

from __future__ import annotations

from pathlib import Path

import anyio
import apsw
import msgspec
import pytest

from deskhand.config.config import Settings, read_settings
from deskhand.gateway.audit_anchor import append_anchors, read_anchors
from deskhand.models.weights import WeightsFolder
from deskhand.supervision.doctor import PROBES, DoctorFinding, DoctorProbe, run_probes
from deskhand.testing.llm import FakeLLM
from deskhand.types.errors import StoreCorrupt

from .test_ask import echo, run
from .test_commands import Desk

pytestmark = pytest.mark.anyio


def settings_of(home: Path, text: str = "", **env: str) -> Settings:
    home.mkdir(exist_ok=True, mode=0o700)
    if text:
        (home / "deskhand.yaml").write_text(text)
    return read_settings(None, {"DESKHAND_HOME": str(home), **env})


def probe(name: str) -> tuple[DoctorProbe, ...]:
    return tuple(each for each in PROBES if each.name == name)


async def findings(settings: Settings, name: str) -> list[tuple[str, str, str]]:
    return [(f.level, f.text, f.remedy) for _, f in await run_probes(settings, probe(name))]


def test_a_fresh_home_is_repaired(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    said = desk("doctor", code=1)
    assert "does not exist" in said
    assert "-> deskhand init" in said
    assert "-> deskhand model use provider/name" in said
    assert not desk.home.exists(), "looking changes nothing"
    desk("model", "use", "scripted/echo")
    desk.home.chmod(0o755)
    assert "-> chmod 700" in desk("doctor")
    fixed = desk("doctor", "--fix")
    assert "fixed   chmod 700" in fixed
    assert "chmod" not in desk("doctor")
    rows = msgspec.json.decode(desk("doctor", "--json"))
    assert {row["probe"] for row in rows} == {each.name for each in PROBES}
    assert {row["level"] for row in rows} <= {"good", "note"}


def test_a_broken_configuration_is_the_finding(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "deskhand.yaml").write_text("a: [")
    said = desk("doctor", code=1)
    assert "is not valid YAML" in said
    assert f"-> $EDITOR {tmp_path}/deskhand.yaml" in said


async def test_models(tmp_path: Path) -> None:
    async with FakeLLM() as llm:
        fake = f"defaults: {{models: [fake/m]}}\nproviders: {{fake: {{base_url: '{llm.url}'}}}}"
        assert await findings(settings_of(tmp_path, fake), "models") == [
            ("good", "fake/m: reachable", "")
        ]
    ((level, text, remedy),) = await findings(settings_of(tmp_path), "models")
    assert level == "bad"
    assert "cannot be reached" in text
    assert remedy == "start it, or set providers.fake.base_url"
    ((level, text, remedy),) = await findings(
        settings_of(tmp_path, "defaults: {models: [openai/x]}"), "models"
    )
    assert (level, "set OPENAI_API_KEY" in text, remedy) == ("bad", True, "deskhand model list")


async def test_an_embedded_model_with_and_without_its_weights(tmp_path: Path) -> None:
    config = "defaults: {models: [embedded/qwen2.5-coder-0.5b]}"
    settings = settings_of(tmp_path / "home", config, DESKHAND_CACHE=str(tmp_path))
    ((level, text, _),) = await findings(settings, "models")
    assert (level, "deskhand model pull qwen2.5-coder-0.5b" in text) == ("bad", True)
    folder = WeightsFolder(tmp_path / "models")
    folder.folder.mkdir()
    with folder.path("qwen2.5-coder-0.5b").open("wb") as file:
        file.truncate(folder.find("qwen2.5-coder-0.5b").size_bytes)
    assert await findings(settings, "models") == [
        ("good", "embedded/qwen2.5-coder-0.5b: its weights are downloaded", "")
    ]


async def test_mcp_servers(tmp_path: Path) -> None:
    assert (await findings(settings_of(tmp_path), "mcp"))[0][0] == "good"
    servers = {
        "gone": "{command: no-such-program}",
        "unset": "{url: https://a.example, headers: {X: '${NO_KEY}'}}",
        "fine": "{command: sh}",
    }
    text = "mcp:\n" + "".join(f"  {name}: {each}\n" for name, each in servers.items())
    found = await findings(settings_of(tmp_path, text), "mcp")
    assert [level for level, *_ in found] == ["bad", "bad"]
    told = " ".join(said for _, said, _ in found)
    assert "gone: there is no program 'no-such-program'" in told and "NO_KEY is not set" in told


async def test_tools_of_ones_own(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    (none,) = await findings(settings, "tools")
    assert none[0] == "good" and "deskhand tools add FILE" in none[1]
    folder = settings.home.workspace("default") / "tools"
    folder.mkdir(parents=True)
    (folder / "good.py").write_text("async def good(): 'Good.'")
    assert (await findings(settings, "tools"))[0][1] == "1 tool of your own can be used"
    (folder / "bad.py").write_text("from deskhand.customtools import tool\nimport nothing_there")
    ((level, said, remedy),) = await findings(settings, "tools")
    assert level == "bad" and remedy == "deskhand tools --agent default"
    assert "agent default: tools/bad.py was not loaded: ModuleNotFoundError" in said


def test_a_log_that_was_changed(tmp_path: Path) -> None:
    echo(tmp_path, "hello", "-s", "talk")
    database = tmp_path / "state" / "deskhand.db"
    anchors = read_anchors(tmp_path / "state" / "anchor.jsonl")
    assert list(anchors) == ["default/terminal:talk"]
    assert run(tmp_path, "audit", "verify").returncode == 0
    db = apsw.Connection(str(database))
    db.execute("DELETE FROM event WHERE n = (SELECT max(n) FROM event)")
    db.close()
    verified = run(tmp_path, "audit", "verify")
    assert verified.returncode == 1
    assert b"the log of this session has been cut off" in verified.stdout
    assert b"the log was changed" in run(tmp_path, "doctor").stdout


def test_people(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert anyio.run(findings, settings, "people") == [("good", "only you, on this machine", "")]
    Desk(tmp_path)("users", "add", "ann", "chat", "42")
    assert anyio.run(findings, settings, "people") == [
        ("good", "2 users, 1 of them known on a channel", "")
    ]
    db = apsw.Connection(str(settings.home.database))
    db.execute("DROP TABLE user_identity")
    db.close()
    ((level, text, remedy),) = anyio.run(findings, settings, "people")
    assert (level, remedy) == ("bad", f"restore a backup of {settings.home.database}")
    assert text.startswith("cannot read the users, so only the terminal is let in")


def test_a_damaged_database_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "deskhand.db").write_bytes(b"this is no database at all" * 100)
    done = echo(tmp_path, "hello")
    assert done.returncode == 1
    assert b"restore a backup" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"restore a backup" in run(tmp_path, "doctor").stdout


async def test_a_probe_that_breaks_is_a_finding(tmp_path: Path) -> None:
    async def breaks(settings: Settings) -> list[DoctorFinding]:
        raise StoreCorrupt("it is broken")

    found = await run_probes(settings_of(tmp_path), (DoctorProbe("x", breaks),))
    assert [(name, finding.level, finding.text) for name, finding in found] == [
        ("x", "bad", "it is broken")
    ]


def test_anchors_are_appended_and_survive_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "anchor.jsonl"
    assert read_anchors(path) == {}
    assert append_anchors(path, {"a": (1, b"x"), "b": (2, b"y")}, 1.0) == 2
    assert append_anchors(path, {"a": (1, b"x"), "b": (2, b"y")}, 2.0) == 0
    assert append_anchors(path, {"a": (3, b"z"), "b": (2, b"y")}, 3.0) == 1
    with path.open("a") as file:
        file.write('{"at": 4, "heads": {"a": [9, "ff')
    assert append_anchors(path, {"a": (2, b"!")}, 5.0) == 1, (
        "a tail was cut, and something else has grown"
    )
    assert append_anchors(path, {"a": (3, b"?")}, 6.0) == 0
    assert read_anchors(path) == {"a": {1: b"x", 3: b"z", 2: b"!"}, "b": {2: b"y"}}


async def test_a_search_engine_without_a_key_is_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    [found] = await findings(settings_of(home), "search")
    assert found == ("good", "DuckDuckGo searches the web", "")
    brave = "web_search: {engine: brave}"
    [found] = await findings(settings_of(home, brave), "search")
    assert found == (
        "note",
        "Brave has no key; until then, DuckDuckGo is used",
        f"put BRAVE_API_KEY into {home}/.env",
    )
    [found] = await findings(settings_of(home, brave, BRAVE_API_KEY="k"), "search")
    assert found == ("good", "Brave searches the web", "")
    [found] = await findings(
        settings_of(home, "web_search: {engine: searxng, fallback: false}"), "search"
    )
    assert found[1] == "SearXNG has no address" and "web_search.url" in found[2]


async def test_what_reads_documents_is_looked_for(tmp_path: Path) -> None:
    """Everything that the tests need is there, so here both are found; that it is missing is told
    by the tools too."""
    (read, rendered) = await findings(settings_of(tmp_path), "documents")
    assert read == ("good", "PDF files, office documents and web pages can be read", "")
    assert rendered == (
        "good",
        "pages that need scripts are rendered by /usr/lib/chromium/chromium",
        "",
    )


async def test_the_desktop(tmp_path: Path) -> None:
    async def find(text: str) -> tuple[str, str, str]:
        (found,) = await findings(settings_of(tmp_path, text), "desktop")
        return found

    level, said, _ = await find("log_level: info\n")
    assert level == "good" and "no agent may use" in said
    level, said, remedy = await find("defaults: {desktop: true}\n")
    assert level == "bad" and remedy == "deskhand desktop start"
    own = "defaults: {desktop: true}\ndesktop: {screen: virtual}\n"
    assert "a screen of its own for default" in (await find(own))[1]
