"""`deskhand policy` and `deskhand allow`, as a person calls them, over a policy written in YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return (tmp_path / "home").resolve()


@pytest.fixture
def deskhand(home: Path) -> Run:
    def run(*arguments: str) -> Result:
        return CliRunner(env={"DESKHAND_HOME": str(home), "HOME": str(home.parent)}).invoke(cli, arguments)

    return run


POLICY = """
policy:
  - {verdict: deny, tool: bash, who: "role:member"}
  - {verdict: ask, tool: write_file, agent: default}
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("shell",), "allow: shell stays within the workspace and this conversation"),
        (("bash",), "allow: shell stays within the workspace and this conversation"),
        (("shell", "--as", "bob:member"), "deny: rule 1: deny shell (*)"),
        (("write_file",), "ask: rule 2: ask write_file (*)"),
        (("read_file", "--untrusted"), "allow: read_file stays within the workspace"),
    ],
)
def test_why(deskhand: Run, home: Path, arguments: tuple[str, ...], expected: str) -> None:
    (home / "deskhand.yaml").write_text(POLICY)
    done = deskhand("policy", "why", *arguments)
    assert done.exit_code == 0 and done.stdout.startswith(expected), done
    if not expected.startswith("allow"):
        assert f"add to `policy:` in {home}/deskhand.yaml" in done.stdout


def test_why_of_a_wide_shell(deskhand: Run, home: Path) -> None:
    (home / "deskhand.yaml").write_text("defaults: {sandbox: false}\npolicy: [{verdict: allow, tool: shell}]\n")
    assert deskhand("policy", "why", "shell").stdout.startswith("allow: rule 1")
    assert deskhand("policy", "why", "shell", "--untrusted").stdout.startswith("ask: it acts outward")
    unknown = deskhand("policy", "why", "teleport")
    assert unknown.exit_code == 2 and "default has no tool 'teleport'; it has: read_file" in unknown.stderr


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("[{verdict: permit}]", "'policy[0].verdict': Invalid enum value 'permit'"),
        ("[{verdict: allow, tol: shell}]", "'policy[0]': Object contains unknown field `tol`"),
        ("[{tool: shell}]", "'policy[0]': Object missing required field `verdict`"),
        ("[{verdict: allow, effect: netwrok}]", "rule 1 of the policy can never hold: no effect is called 'netwrok'"),
        ("{verdict: allow}", "'policy': Expected `array`, got `object`"),
        ("allow", "'policy': Expected `array`, got `str`"),
        ("[{verdict: 2024-13-45}]", "is not valid YAML"),
        ("[" * 1200, "is nested too deeply"),
    ],
)
def test_a_policy_with_a_mistake_stops_the_start(deskhand: Run, home: Path, policy: str, sentence: str) -> None:
    (home / "deskhand.yaml").write_text(f"policy: {policy}\n")
    done = deskhand("policy", "why", "shell")
    assert done.exit_code == 2 and sentence in done.stderr and isinstance(done.exception, SystemExit)
    assert "deskhand.yaml" in done.stderr


def test_allow_list_revoke(deskhand: Run, home: Path) -> None:
    folder = home.parent / "my folder"
    folder.mkdir()
    assert deskhand("allow", "list").stdout.startswith("Nothing beside the rules.")
    said = deskhand("allow", "path", str(folder)).stdout
    assert said.startswith(f"default may now read {folder}\n") and f"deskhand allow revoke '{folder}'" in said
    assert deskhand("allow", "path", "~/my folder", "--write").stdout.startswith("default may now read and write")
    assert deskhand("allow", "list").stdout == f"default  read, write  {folder}  (by owner)\n"
    link = home.parent / "link"
    link.symlink_to(folder)
    assert deskhand("allow", "revoke", str(link)).stdout == "Taken back: 1\n"
    assert deskhand("allow", "list").stdout.startswith("Nothing")
    again = deskhand("allow", "revoke", str(folder))
    assert again.exit_code == 1 and "nothing like" in again.stderr


@pytest.mark.parametrize("folder", ["HOME", "HOME/state", "HOME/..", "/", "/etc", "/proc", "/usr", "/nowhere", "FILE"])
def test_what_is_not_allowed(deskhand: Run, home: Path, folder: str) -> None:
    (home / "state").mkdir()
    (home.parent / "file").write_text("")
    path = folder.replace("HOME", str(home)).replace("FILE", str(home.parent / "file"))
    done = deskhand("allow", "path", path)
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
    assert deskhand("allow", "list").stdout.startswith("Nothing")


def test_what_steers_agents_may_be_read_and_not_written(deskhand: Run, home: Path) -> None:
    for name in ("prompts", "agents/default"):
        (home / name).mkdir(parents=True)
        done = deskhand("allow", "path", str(home / name), "--write")
        assert done.exit_code == 2 and "holds Deskhand's own files" in done.stderr
        assert deskhand("allow", "path", str(home / name)).exit_code == 0


def test_an_unknown_agent(deskhand: Run, home: Path) -> None:
    for arguments in (("allow", "path", str(home.parent), "-a", "x"), ("policy", "why", "shell", "-a", "x")):
        done = deskhand(*arguments)
        assert done.exit_code == 2 and isinstance(done.exception, SystemExit), done.stderr
