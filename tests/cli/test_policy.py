"""`deskhand policy` and `deskhand allow`, as a person calls them, over a policy written in YAML."""

from __future__ import annotations

import re
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
        return CliRunner(env={"DESKHAND_HOME": str(home), "HOME": str(home.parent)}).invoke(
            cli, arguments
        )

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
        assert f"add to the top of `policy:` in {home}/deskhand.yaml" in done.stdout


FAMILY = """
agents: {main: {}, kids: {permission_mode: ask-me, profile: minimal, also_allow: [web_*]}}
roles: {children: {agents: [kids], permission_mode: read-only}}
channels: {telegram: {allow_from: ["1"]}}
policy:
  - {verdict: deny, tool: shell, commands: [rm], because: we keep things here}
  - {verdict: allow, tool: shell, channel: telegram, group: false, who: ann}
  - {verdict: ask, tool: bash, commands: ["@looking"]}
"""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("rm -r x",), ["deny: we keep things here", "  fits    1  deny shell (*) with rm"]),
        (
            ("ls", "--as", "ann", "--channel", "telegram"),
            [
                "allow: rule 2: allow shell (*) on telegram outside groups",
                "          1  deny shell (*) with rm: this runs none of rm",
                "  fits    2  allow shell (*) on telegram outside groups",
            ],
        ),
        (
            ('{"command": "ls"}', "--as", "ann", "--channel", "telegram", "--group"),
            [
                "ask: rule 3: ask shell (*) with @looking",
                "  agent main, tool shell, effect local_write, for ann, on telegram in a group",
                "          2  allow shell (*) on telegram outside groups: it is not for groups",
            ],
        ),
        (
            ('{"cmd": "$(echo rm) x"}', "--as", "bob:member"),
            [
                (
                    "ask: it is not certain what this command runs: $(echo rm) x; rule 1: deny "
                    "shell (*) with rm"
                ),
                (
                    "          1  deny shell (*) with rm: it is not certain whether this runs rm, "
                    "so at least approval is"
                ),
                (
                    "          2  allow shell (*) on telegram outside groups: it is for ann, "
                    "and this is bob, role:member"
                ),
            ],
        ),
        (
            ("make", "--as", "tim:children"),
            [
                "deny: for the role children the permission mode is read-only",
                "  fits    -  for the role children the permission mode is",
            ],
        ),
        (
            ("make", "--planning"),
            ["deny: plan mode is on, and shell does more than look", "No rule can change this."],
        ),
    ],
)
def test_why_says_which_rule_was_looked_at(
    deskhand: Run, home: Path, arguments: tuple[str, ...], lines: list[str]
) -> None:
    (home / "deskhand.yaml").write_text(FAMILY)
    done = deskhand("policy", "why", "shell", *arguments)
    assert done.exit_code == 0, done
    for line in lines:
        assert any(said.startswith(line) for said in done.stdout.splitlines()), (line, done.stdout)


def test_show(deskhand: Run, home: Path) -> None:
    (home / "deskhand.yaml").write_text(FAMILY)
    shown = deskhand("policy", "show").stdout
    assert shown.startswith("main: workspace-free. It may change files in its workspace.")
    assert "  1  deny shell (*) with rm: we keep things here\n" in shown
    assert (
        "for ann" in shown
        and "for the role children: read-only" in shown
        and "Tools: read_file," in shown
    )
    kids = deskhand("policy", "show", "-a", "kids").stdout
    assert (
        kids.startswith("kids: ask-me.")
        and "(kids has no such tool)" in kids
        and "write_file" not in kids
    )


CASES = """
- {tool: shell, arguments: rm -r build, expect: deny, because: keep things}
- {tool: bash, arguments: {command: ls}, as: "ann:member", channel: telegram, expect: allow}
- {tool: shell, arguments: ls, as: "ann:member", channel: telegram, group: true, expect: ask}
- {tool: write_file, as: children, expect: deny}
- {tool: read_file, untrusted: "https://evil.test", expect: allow}
- {tool: send_message, arguments: {text: x, chat: "5"}, untrusted: "https://evil.test", expect: ask, because: evil.test}
- {tool: ask_user, agent: kids, as: children, expect: allow}
"""  # noqa: E501


def test_a_table_of_cases(deskhand: Run, home: Path) -> None:
    (home / "deskhand.yaml").write_text(FAMILY)
    file = home.parent / "cases.yaml"
    file.write_text(CASES)
    done = deskhand("policy", "test", str(file))
    assert (done.exit_code, done.stdout) == (0, "7 of 7 as expected.\n"), done
    wrong = (
        "- {tool: shell, expect: deny}\n- {tool: fly, expect: deny}\n- {tool: think, expect: "
        "allow, because: love}\n"
    )
    file.write_text(CASES + wrong)
    done = deskhand("policy", "test", str(file))
    assert done.exit_code == 1 and done.stdout.endswith("7 of 10 as expected.\n")
    for line in (
        (
            "case 8: shell  as owner on terminal: expected deny, but it is allow: shell stays "
            "within the workspace"
        ),
        "case 9: fly  as owner on terminal: main has no tool 'fly'; it has: read_file",
        (
            "case 10: think  as owner on terminal: it is allow as expected, but because think "
            "stays within"
        ),
    ):
        assert line in done.stdout


def test_the_household_of_the_page(deskhand: Run, home: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
    config, cases = re.findall(
        r"```yaml\n(.*?)```", page[page.index("## A household") :], re.DOTALL
    )
    (home / "deskhand.yaml").write_text(config)
    (home.parent / "household.yaml").write_text(cases)
    done = deskhand("policy", "test", str(home.parent / "household.yaml"))
    assert (done.exit_code, done.stdout) == (0, "8 of 8 as expected.\n"), done.stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- {tool: shell}", "missing required field `expect`"),
        ("- {tool: shell, expect: yes}", "Expected `str`, got `bool`"),
        ("- {tool: shell, expect: allow, chanel: web}", "unknown field `chanel`"),
        ("tool: shell", "Expected `array`"),
        ("- {tool: [", "is not valid YAML"),
    ],
)
def test_a_table_with_a_mistake(deskhand: Run, home: Path, text: str, sentence: str) -> None:
    file = home.parent / "cases.yaml"
    file.write_text(text)
    done = deskhand("policy", "test", str(file))
    assert done.exit_code == 2 and sentence in done.stderr, done


def test_what_somebody_could_make_it_do(deskhand: Run, home: Path) -> None:
    (home / "deskhand.yaml").write_text(FAMILY)

    def of(*arguments: str) -> dict[tuple[str, str], tuple[str, ...]]:
        lines = deskhand("policy", "what-if", *arguments).stdout.splitlines()
        rows = [line.split("\t") for line in lines if "\t" in line]
        return {(tool, effect): tuple(verdicts) for tool, effect, *verdicts in rows}

    member = of("--who", "member", "--channel", "telegram")
    assert member["write_file", "local_write"] == ("allow", "allow")
    assert member["send_message", "send_owner"] == ("allow", "allow")
    assert member["send_message", "send_other"] == ("ask", "ask")
    assert member["manage_users", "host"] == ("deny", "deny")
    assert of("--who", "owner")["manage_users", "host"] == ("ask", "ask")
    child = of("--who", "children", "-a", "kids")
    assert {tool for tool, _ in child} & {"shell", "write_file"} == set()
    assert child["send_message", "send_other"] == ("deny", "deny")
    assert of("--who", "stranger")["send_message", "send_other"] == ("ask",)
    refused = deskhand("policy", "what-if", "--who", "children")
    assert refused.exit_code == 1 and "children may not talk to main" in refused.stderr
    other = home.parent / "other.yaml"
    other.write_text("permission_mode: read-only\n")
    assert of(str(other), "--who", "member")["write_file", "local_write"] == ("deny", "deny")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("5", "neither a list of rules"),
        (
            "timezone: UTC",
            "other.yaml': 'timezone' has no effect on calls; allowed keys: policy, permission_mode",
        ),
        ("- {verdict: deny, effect: nothing}", "rule 1 of the policy can never apply"),
        ("permission_mode: wild", "Invalid enum value 'wild'"),
    ],
)
def test_other_rules_with_a_mistake(deskhand: Run, home: Path, text: str, sentence: str) -> None:
    file = home.parent / "other.yaml"
    file.write_text(text)
    done = deskhand("policy", "what-if", str(file))
    assert done.exit_code == 2 and sentence in done.stderr and str(file.name) in done.stderr, done


def test_why_of_a_wide_shell(deskhand: Run, home: Path) -> None:
    (home / "deskhand.yaml").write_text(
        "defaults: {sandbox: false}\npolicy: [{verdict: allow, tool: shell}]\n"
    )
    assert deskhand("policy", "why", "shell").stdout.startswith("allow: rule 1")
    assert deskhand("policy", "why", "shell", "--untrusted").stdout.startswith(
        "ask: it acts outside the workspace"
    )
    unknown = deskhand("policy", "why", "teleport")
    assert (
        unknown.exit_code == 2
        and "default has no tool 'teleport'; it has: read_file" in unknown.stderr
    )


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("[{verdict: permit}]", "'policy[0].verdict': Invalid enum value 'permit'"),
        ("[{verdict: allow, tol: shell}]", "'policy[0]': Object contains unknown field `tol`"),
        ("[{tool: shell}]", "'policy[0]': Object missing required field `verdict`"),
        (
            "[{verdict: allow, effect: netwrok}]",
            "rule 1 of the policy can never apply: there is no effect 'netwrok'",
        ),
        ("{verdict: allow}", "'policy': Expected `array`, got `object`"),
        ("allow", "'policy': Expected `array`, got `str`"),
        ("[{verdict: 2024-13-45}]", "is not valid YAML"),
        ("[" * 1200, "its brackets are nested too deeply"),
    ],
)
def test_a_policy_with_a_mistake_stops_the_start(
    deskhand: Run, home: Path, policy: str, sentence: str
) -> None:
    (home / "deskhand.yaml").write_text(f"policy: {policy}\n")
    done = deskhand("policy", "why", "shell")
    assert (
        done.exit_code == 2 and sentence in done.stderr and isinstance(done.exception, SystemExit)
    )
    assert "deskhand.yaml" in done.stderr


def test_allow_list_revoke(deskhand: Run, home: Path) -> None:
    folder = home.parent / "my folder"
    folder.mkdir()
    assert deskhand("allow", "list").stdout.startswith("No additional access is granted.")
    said = deskhand("allow", "path", str(folder)).stdout
    assert (
        said.startswith(f"default may now read, but not write, files in {folder}\n")
        and f"deskhand allow revoke '{folder}'" in said
    )
    assert deskhand("allow", "path", "~/my folder", "--write").stdout.startswith(
        "default may now read and write"
    )
    (folder / "f").write_text("x")
    named = deskhand("allow", "path", "~/my folder/f", "--write").stderr
    assert (
        f"is a file; allow the folder that holds it: deskhand allow path '{folder}' --write"
        in named
    )
    assert deskhand("allow", "list").stdout == f"default  read, write  {folder}  (by owner)\n"
    link = home.parent / "link"
    link.symlink_to(folder)
    assert deskhand("allow", "revoke", str(link)).stdout == "Revoked: 1\n"
    assert deskhand("allow", "list").stdout.startswith("No additional access")
    again = deskhand("allow", "revoke", str(folder))
    assert again.exit_code == 1 and "no access is granted for" in again.stderr


@pytest.mark.parametrize(
    "folder", ["HOME", "HOME/state", "HOME/..", "/", "/etc", "/proc", "/usr", "/nowhere", "FILE"]
)
def test_what_is_not_allowed(deskhand: Run, home: Path, folder: str) -> None:
    (home / "state").mkdir()
    (home.parent / "file").write_text("")
    path = folder.replace("HOME", str(home)).replace("FILE", str(home.parent / "file"))
    done = deskhand("allow", "path", path)
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
    assert deskhand("allow", "list").stdout.startswith("No additional access")


def test_what_steers_agents_may_be_read_and_not_written(deskhand: Run, home: Path) -> None:
    for name in ("prompts", "agents/default"):
        (home / name).mkdir(parents=True)
        done = deskhand("allow", "path", str(home / name), "--write")
        assert done.exit_code == 2 and "contains Deskhand's own files" in done.stderr
        assert deskhand("allow", "path", str(home / name)).exit_code == 0


def test_an_unknown_agent(deskhand: Run, home: Path) -> None:
    for arguments in (
        ("allow", "path", str(home.parent), "-a", "x"),
        ("policy", "why", "shell", "-a", "x"),
    ):
        done = deskhand(*arguments)
        assert done.exit_code == 2 and isinstance(done.exception, SystemExit), done.stderr
