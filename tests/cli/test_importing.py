"""`deskhand import`: a report first, then the move, and a word of it to who begins."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.importers.report import WHY_OFF
from tests.importers.moving import home_of, looks


def run(tmp_path: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(tmp_path / "desk"), "HOME": str(tmp_path)}
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand")


def test_first_a_report_then_the_move(tmp_path: Path) -> None:
    home_of("operator-ai-0.7", tmp_path).rename(tmp_path / ".operator")
    before = looks(tmp_path / ".operator")
    dry = run(tmp_path, "import")
    assert dry.exit_code == 0, dry.output
    head = (
        "operator-ai 0.7 in ~/.operator: 2 agents, 2 users, 4 conversations, 2 jobs, 4 "
        "memories, 3 key-values, 1 skill"
    )
    assert dry.output.startswith(head + "\n")
    for line in (
        "Taken:",
        "    ann (member: slack U100, telegram 4711)",
        "    ben.k (garden: slack U200)",
        "  conversations: 4 on slack, where they continue",
        "  jobs: morning-weather at 06:30 every day (UTC); old-report at 09:00 on Monday (UTC)",
        (
            "    agents.scout: models [openai/gpt-4.1], steps 10, thinking off, tools "
            "[read_file, list_files]"
        ),
        "    roles.garden: agents [hermes]",
        "    timezone: Europe/Berlin",
        "  keys to .env: OPENAI_API_KEY, SLACK_BOT_TOKEN",
        "Changed:",
        "  job morning-weather",
        f"    {WHY_OFF.format('morning-weather')}",
        "Left out:",
        "  that ann may do everything",
        "    To do: if that is you, say: --me ann",
        "Nothing was written. To import it: deskhand import ~/.operator --me ann --yes",
    ):
        assert line in dry.output.splitlines(), line
    assert "none" not in dry.output, "no value of a key is shown"
    assert not list((tmp_path / "desk").rglob("*.db")), "not even an empty database is made"
    assert not (tmp_path / "desk/deskhand.yaml").exists() and not (tmp_path / "desk/jobs").exists()
    assert json.loads(run(tmp_path, "sessions", "list", "--json").output) == []

    unknown = run(tmp_path, "import", "--me", "eve", "--yes")
    assert (
        unknown.exit_code == 2
        and "there is no user 'eve'" in unknown.output
        and "ann, ben.k" in unknown.output
    )
    done = run(tmp_path, "import", "--me", "ann", "--yes")
    assert done.exit_code == 0, done.output
    assert "ann (you, the owner here: slack U100, telegram 4711)" in done.output
    assert (
        "Imported 2 agents, 2 users, 4 conversations, 4 memories, 3 key-values, 1 skill, 2 jobs."
        in done.output
    )
    assert len(json.loads(run(tmp_path, "sessions", "list", "--json").output)) == 4
    again = run(tmp_path, "import", "--yes")
    assert "  job morning-weather\n    disabled" in done.output
    assert "Left out" not in again.output and "keys to .env" not in again.output, (
        "that was said the first time"
    )
    assert (
        "  all of it was imported before" in again.output
        and "There was nothing new to import." in again.output
    )
    assert looks(tmp_path / ".operator") == before


def test_as_json(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    said = json.loads(run(tmp_path, "import", str(home), "--json").output)
    assert said[0]["system"] == "agent_computer" and said[0]["taken"] is None
    assert said[0]["new"] == {
        "agent": 1,
        "conversation": 2,
        "job": 2,
        "memory": 2,
        "skill": 1,
        "task": 3,
    }
    said = json.loads(run(tmp_path, "import", str(home), "--json", "--yes").output)
    assert said[0]["taken"] == {
        "agent": 1,
        "conversation": 2,
        "job": 2,
        "memory": 2,
        "skill": 1,
        "task": 3,
    }
    report = said[0]["report"]
    assert report.keys() == {"taken", "changed", "left_out"} and said[0]["broken"] == []
    assert report["taken"]["skills"] == ["count_words"]
    assert {"what": "job daily-check", "why": report["changed"][-1]["why"]} in report["changed"]
    why = "Deskhand works in a folder of its own, so that nothing here is changed"
    assert {"what": "defaults.workspace", "why": why, "todo": ""} in report["left_out"]


def several(tmp_path: Path) -> None:
    for name, here in (
        ("operator-ai-0.7", ".operator"),
        ("operator-use", ".operator-use"),
        ("openagent", "openagent"),
    ):
        home_of(name, tmp_path).rename(tmp_path / here)


def test_several_homes_at_once(tmp_path: Path) -> None:
    """Each after the other: a key that one brought in is sent to no address that the next one
    names."""
    several(tmp_path)
    said = run(tmp_path, "import").output
    assert (
        "To import only one of them, name its folder." in said
        and "To import it: deskhand import --me ann --yes" in said
    )
    done = run(tmp_path, "import", "--me", "ann", "--yes")
    assert done.exit_code == 0 and done.output.count("Imported") == 3, done.output
    assert "  the address http://localhost:1234/v1 of openai\n" in done.output
    assert "localhost:1234" not in (tmp_path / "desk/deskhand.yaml").read_text()
    assert run(tmp_path, "import", "--yes").output.count("There was nothing new to import.") == 3


def test_another_key_that_is_here_stays_and_that_is_said(tmp_path: Path) -> None:
    home = home_of("openagent", tmp_path)
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk/.env").write_text("OPENAI_API_KEY=mine-alone\n")
    said = run(tmp_path, "import", str(home)).output
    assert "  the key OPENAI_API_KEY\n    there is another one here, which is kept" in said
    assert "keys to .env" not in said and "mine-alone" not in said


def test_where_there_is_nothing(tmp_path: Path) -> None:
    nothing = run(tmp_path, "import")
    assert nothing.exit_code == 0 and nothing.output.startswith(
        "No data of another system was found. Name its folder:"
    )
    other = run(tmp_path, "import", str(tmp_path))
    assert other.exit_code == 2 and "is not a home of a known system" in other.output


def test_who_begins_is_told_once(tmp_path: Path) -> None:
    """`init` offers it, and does not once it has been taken over."""
    home_of("operator-use", tmp_path).rename(tmp_path / ".operator-use")
    first = run(tmp_path, "init")
    wanted = (
        "operator-use was used here (~/.operator-use). See what can be imported: deskhand import"
    )
    assert wanted in first.output.splitlines()
    taken = run(tmp_path, "import", "--yes")
    assert taken.exit_code == 0 and "3 conversations" in taken.output, taken.output
    assert "2 on telegram, where they continue; 1 to read, search and continue here" in taken.output
    assert "stop operator-use before you start Deskhand" in taken.output
    assert "See what can be imported" not in run(tmp_path, "init").output


def test_words_of_a_stranger_stay_words(tmp_path: Path) -> None:
    """Names in a home cannot draw on the terminal."""
    home = home_of("operator-use", tmp_path)
    crons = json.loads((home / "crons.json").read_text())
    crons["jobs"][0] |= {
        "name": "\x1b[2J\x1b]0;owned\x07 evil\n\nImported everything",
        "schedule": {"expr": "\x1b[31m"},
    }
    (home / "crons.json").write_text(json.dumps(crons))
    said = run(tmp_path, "import", str(home)).output
    assert "\x1b" not in said and "\x07" not in said
    assert not any(line.startswith("Imported") for line in said.splitlines())
