"""A home that is broken is taken over not at all, until a person says what is to become of the
broken files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from tests.importers.moving import home_of, looks

Damage = Callable[[Path], None]


def holds(text: str) -> Damage:
    def write(file: Path) -> None:
        file.write_text(text)

    return write


def is_cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def has_bad_pages(file: Path) -> None:
    """A database whose first page is whole."""
    data = file.read_bytes()
    file.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


def loses_an_index(file: Path) -> None:
    """A database that can be read, and whose pages do not fit together."""
    with apsw.Connection(str(file)) as db:
        db.execute("CREATE INDEX lost ON messages(role)")
        db.execute("CREATE TABLE other(x)")
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
            "name = 'other')"
            " WHERE name = 'lost'"
        )


def is_a_folder(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir()


def is_a_file(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.write_text("x")


def leads_round(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


YAML = "is not valid YAML"
JSON = "is not valid JSON"
FOLDER = "is a folder, not a file"
FILE = "is a file, not a folder"
MALFORMED = "database disk image is malformed"
ROUND = "leads back to itself"
BROKEN: list[tuple[str, str, Damage, str]] = [
    ("operator-ai-0.7", "operator.yaml", holds("agents: [hermes"), YAML),
    ("operator-ai-0.7", "operator.yaml", holds("just words"), "must hold keys and values"),
    ("operator-ai-0.7", "operator.yaml", is_a_folder, FOLDER),
    ("operator-ai-0.7", "operator.yaml", leads_round, ROUND),
    ("operator-ai-0.7", "state/operator.db", holds("not a database at all"), "not a database"),
    ("operator-ai-0.7", "state/operator.db", is_cut_off, MALFORMED),
    ("operator-ai-0.7", "state/operator.db", has_bad_pages, MALFORMED),
    ("operator-ai-0.7", "state/operator.db", is_a_folder, FOLDER),
    ("operator-ai-0.7", "state/operator.db", leads_round, ROUND),
    ("operator-ai-0.7", "state", is_a_file, FILE),
    ("operator-ai-0.7", "jobs", is_a_file, FILE),
    ("operator-ai-0.7", "jobs/old-report/JOB.md", is_a_folder, FOLDER),
    ("operator-ai-0.7", "agents/hermes/AGENT.md", is_a_folder, FOLDER),
    ("operator-ai-0.7", "skills", leads_round, ROUND),
    ("operator-ai-0.7", ".env", is_a_folder, FOLDER),
    ("operator-ai-0.4", "state/operator.db", is_cut_off, MALFORMED),
    ("operator-use", "config.json", is_cut_off, "is not valid JSON"),
    ("operator-use", "config.json", leads_round, ROUND),
    ("operator-use", "crons.json", is_cut_off, JSON),
    ("operator-use", "crons.json", holds('{"jobs": 7}'), "it contains no list of jobs"),
    ("operator-use", "crons.json", is_a_folder, FOLDER),
    ("operator-use", "workspaces/operator", is_a_file, FILE),
    ("operator-use", "workspaces/operator/sessions", is_a_file, FILE),
    ("operator-use", "workspaces/operator/sessions/telegram_4711.jsonl", is_a_folder, FOLDER),
    ("operator-use", "workspaces/operator/sessions/telegram_4711.jsonl", leads_round, ROUND),
    ("operator-use", "workspaces/operator/memory/MEMORY.md", is_a_folder, FOLDER),
    ("agent-computer", "config.json", is_cut_off, "is not valid JSON"),
    ("agent-computer", "sessions", leads_round, ROUND),
    ("agent-computer", "sessions/main.jsonl", is_a_folder, FOLDER),
    ("agent-computer", "sessions/bread.tasks.json", is_cut_off, JSON),
    ("agent-computer", "workspace/cron.json", is_cut_off, JSON),
    ("agent-computer", "workspace/memory/knowledge.md", is_a_folder, FOLDER),
    ("agent-computer", "workspace/memory/memory.db", holds("x" * 9000), "not a database"),
    ("agent-computer", "workspace/memory/skills/count_words.py", is_a_folder, FOLDER),
    ("openagent", "agent.db", is_cut_off, MALFORMED),
    ("openagent", "agent.db", loses_an_index, "the database is damaged: "),
    ("openagent", "agent.db", is_a_folder, FOLDER),
    ("openagent", ".env", is_a_folder, FOLDER),
    ("openagent", "workspace/.tasks/task_1.json", is_cut_off, JSON),
    ("openagent", "workspace/.agent/memory.md", leads_round, ROUND),
]


def run(tmp_path: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(tmp_path / "desk"), "HOME": str(tmp_path)}
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand")


@pytest.mark.parametrize(
    ("name", "file", "damage", "why"), BROKEN, ids=lambda each: getattr(each, "__name__", None)
)
def test_nothing_is_written(name: str, file: str, damage: Damage, why: str, tmp_path: Path) -> None:
    home = home_of(name, tmp_path)
    damage(home / file)
    before = looks(home)
    for args in ((), ("--yes",)):
        said = run(tmp_path, "import", str(home), *args)
        assert said.exit_code == 2, said.output
        assert f"  {file}: " in said.output and why in said.output
        assert "Nothing was written" in said.output and "--skip-broken" in said.output
        assert "Imported" not in said.output
    here = [
        path
        for path in (tmp_path / "desk").rglob("*")
        if path.is_file() and path.suffix not in (".log", ".lock")
    ]
    assert here == [] and looks(home) == before


@pytest.mark.parametrize("name", ["operator-ai-0.7", "operator-use", "agent-computer", "openagent"])
def test_the_rest_is_taken_where_that_is_asked_for(name: str, tmp_path: Path) -> None:
    home = home_of(name, tmp_path)
    first = {file: damage for each, file, damage, _ in reversed(BROKEN) if each == name}
    for file, damage in first.items():
        if not file.endswith((".yaml", "config.json")) and (home / file).exists():
            damage(home / file)
    before = looks(home)
    said = run(tmp_path, "import", str(home), "--yes", "--skip-broken")
    assert said.exit_code == 0, said.output
    assert "Left out because it cannot be read:" in said.output and "Imported" in said.output
    assert looks(home) == before


def test_one_broken_home_stops_all(tmp_path: Path) -> None:
    """They are looked at before any of them is taken over; programs are told by the exit code
    too."""
    home_of("operator-ai-0.7", tmp_path).rename(tmp_path / ".operator")
    broken = home_of("operator-use", tmp_path)
    broken.rename(tmp_path / ".operator-use")
    (tmp_path / ".operator-use/crons.json").write_text("{")
    said = run(tmp_path, "import", "--yes")
    assert said.exit_code == 2 and "crons.json: it is not valid JSON" in said.output
    assert not (tmp_path / "desk/deskhand.yaml").exists() and not list(
        (tmp_path / "desk").rglob("*.db")
    )
    programs = run(tmp_path, "import", "--yes", "--json")
    assert programs.exit_code == 2 and '"file":"crons.json"' in programs.output
    assert not (tmp_path / "desk/deskhand.yaml").exists()
    assert run(tmp_path, "import", str(tmp_path / ".operator"), "--yes").exit_code == 0
