"""`deskhand replay` and `deskhand cases`, over the log of real conversations."""

from __future__ import annotations

import stat
from pathlib import Path

import anyio
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.cli.run import ME
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore

KEY = "sk-0123456789-abcdef"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = str(tmp_path)
    return {"DESKHAND_HOME": home, "HOME": home, "DESKHAND_MODELS": "scripted/tour"}


def deskhand(env: dict[str, str], *args: str) -> Result:
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand")


def test_nothing_is_done_again(env: dict[str, str], tmp_path: Path) -> None:
    deskhand(env, "ask", "Write three ideas", "--session", "talk")
    (file,) = tmp_path.rglob("ideas.txt")
    file.unlink()
    same = deskhand(env, "replay", "talk")
    assert same.exit_code == 0, same.output
    assert "model replies: 2, tool calls: 1. The result is identical." in same.stdout
    asked = deskhand(env, "replay", "talk", "--model", "scripted/tour", "--compare")
    assert (
        '  write_file {"content":' in asked.stdout
        and "Models called: scripted/tour" in asked.stdout
    )
    assert "\n- " not in asked.stdout and "\n+ " not in asked.stdout and "\n! " not in asked.stdout
    other = deskhand(env, "replay", "talk", "1", "--model", "scripted/echo", "--compare")
    assert (
        '\n- write_file {"content":' in other.stdout
        and "\n+ You said: Write three ideas\n" in other.stdout
    )
    assert deskhand(env, "replay", "talk", "--model", "scripted/echo").stdout.splitlines()[1] == (
        "You said: Write three ideas"
    )
    assert not file.exists(), "no tool is run"
    told = msgspec.json.decode(
        deskhand(env, "replay", "talk", "-m", "scripted/echo", "--json").stdout
    )
    assert (
        told["now"]["answer"] == "You said: Write three ideas"
        and told["asked"] == 1
        and not told["same"]
    )


def test_a_turn_is_chosen_by_its_number(env: dict[str, str], tmp_path: Path) -> None:
    deskhand(env, "ask", "one", "--session", "talk")
    deskhand(env, "ask", f"two with {KEY}", "--session", "talk")
    env["MY_KEY"] = KEY  # it is a secret from now on
    listed = deskhand(env, "replay", "talk", "--turns").stdout
    assert [line.split("\t")[0] for line in listed.splitlines()] == ["1", "2"] and KEY not in listed
    assert "You said: one" in deskhand(env, "replay", "talk", "1", "-m", "scripted/echo").stdout
    prompt = tmp_path / "brief.md"
    prompt.write_text("Be brief.")
    tried = deskhand(env, "replay", "talk", "--system", str(prompt))
    assert "You said: two with" in tried.stdout and "Models called: scripted/tour" in tried.stdout
    assert KEY not in tried.stdout


def test_a_turn_becomes_a_test(env: dict[str, str], tmp_path: Path) -> None:
    deskhand(env, "ask", f"What is 6 times 7, 42 or {KEY}?", "--session", "talk")
    env["MY_KEY"] = KEY  # it is a secret from now on
    saved = deskhand(env, "replay", "talk", "--save", "six", "--word", "You said")
    assert saved.exit_code == 0, saved.output
    file = tmp_path / "cases" / "six.yaml"
    assert (
        stat.S_IMODE(file.stat().st_mode) == 0o600
        and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    )
    assert KEY not in file.read_text() and "words:" in file.read_text()
    assert "six\tdefault/terminal:talk\t1\tWhat is 6 times 7" in deskhand(env, "cases").stdout
    ran = deskhand(env, "cases", "run")
    (file.parent / "broken.yaml").write_text("expect: [")
    (file.parent / "No Name.yaml").touch()
    both = deskhand(env, "cases", "run")
    assert (
        both.exit_code == 1
        and "1 of 3 as expected" in both.stderr
        and "fails  broken" in both.stdout
    ), both.output
    assert deskhand(env, "cases", "run", "broken").exit_code == 2
    (file.parent / "broken.yaml").unlink()
    (file.parent / "No Name.yaml").unlink()
    assert (
        ran.exit_code == 0
        and "from the log" in ran.stdout
        and "1 of 1 as expected; 0 tokens used" in ran.stderr
    )
    again = deskhand(env, "cases", "run", "six", "--again")
    assert (
        again.exit_code == 0
        and "asked scripted/tour" in again.stdout
        and "; 20 tokens used" in again.stderr
    )
    (tmp_path / "SYSTEM.md").write_text("Be brief.")
    assert "asked scripted/tour" in deskhand(env, "cases", "run").stdout, (
        "what the model is asked is another now"
    )
    (tmp_path / "SYSTEM.md").unlink()
    file.write_text(file.read_text().replace("You said", "I said"))
    failed = deskhand(env, "cases", "run")
    assert (
        failed.exit_code == 1
        and "the answer lacks 'I said'" in failed.stdout
        and "0 of 1" in failed.stderr
    )
    assert deskhand(env, "cases", "remove", "six").exit_code == 0 and not file.exists()
    assert "No cases yet" in deskhand(env, "cases").stdout


def test_what_is_erased_is_gone_from_the_case_too(env: dict[str, str], tmp_path: Path) -> None:
    deskhand(env, "ask", "What is 42?", "--session", "talk")
    deskhand(env, "replay", "talk", "--save", "six")

    async def erase() -> None:
        store = SqliteStore(tmp_path / "state" / "deskhand.db", load_statements())
        await store.erase(ME, "default/terminal:talk", 1.0)
        await store.close()

    anyio.run(erase)
    gone = deskhand(env, "cases", "run")
    assert (
        gone.exit_code == 1
        and "its turn no longer exists" in gone.stdout
        and "deskhand cases remove six" in gone.stdout
    )
    assert "has been erased" in deskhand(env, "replay", "talk").stderr


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("replay", "nowhere"), 1, "no turn of this conversation"),
        (("replay", "talk", "9"), 1, "this conversation has turns 1 to 1"),
        (("replay", "talk", "--save", "../up"), 1, "cannot be the name of a case"),
        (("replay", "talk", "--skill", "."), 2, "it has no SKILL.md"),
        (("replay", "talk", "--model", "nobody/at-all"), 0, "none answered"),
        (("cases", "run"), 2, "deskhand replay SESSION --save NAME"),
        (("cases", "run", "none"), 2, "no case 'none'"),
        (("cases", "remove", "none"), 2, "no case 'none'"),
        (("cases", "run", "broken"), 2, "unknown field `nonsense`"),
    ],
)
def test_what_cannot_be(
    env: dict[str, str], tmp_path: Path, args: tuple[str, ...], code: int, said: str
) -> None:
    deskhand(env, "ask", "one", "--session", "talk")
    if "broken" in args:
        (tmp_path / "cases").mkdir()
        (tmp_path / "cases" / "broken.yaml").write_text("nonsense: 1\n")
    found = deskhand(env, *args)
    assert found.exit_code == code and said in found.output, found.output
