"""What is judged is what is done, however the model wrote the arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from deskhand.assembly.judge import CHECKS, check_call, make_judge, name_of, normalize_case
from deskhand.config.config import Config, Home, Settings
from deskhand.policy.checks import AgentPolicy, configured_rules, strictest
from deskhand.policy.rules import Case, Decision, Rule
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER, Label

ANN = Principal("ann", ("owner",))
PAGE = Label("untrusted", source="https://evil.test/page")

Judge = Callable[[Case], Decision]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    hosts = {"verdict": "deny", "effect": "fetch", "host": "evil.test"}
    rules = [hosts, {"verdict": "deny", "tool": "bash", "commands": ["rm"]}]
    config = msgspec.convert(
        {"policy": rules, "defaults": {"commands": ["ls"]}}, Config, strict=False
    )
    return make_judge(Settings(Home(tmp_path), config), "default").judge


def case(tool: str, arguments: bytes, effect: Effect = "local_write", label: Label = OWNER) -> Case:
    return Case("default", tool, effect, ANN, label, arguments)


SPELLINGS = [
    b'{"url": "https://%s/x"}',
    b'{"url": "https://%s/x", "x": "\\ud800"}',
    b'{"url": "https://%s/x", "x": "\xff"}',
    b'"{\\"url\\": \\"https://%s/x\\"}"',
    b'{"\\u0075rl": "https://%s/x"}',
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_addresses(judge: Judge, spelling: bytes) -> None:
    assert judge(case("web_fetch", spelling % b"evil.test", "fetch")).verdict == "deny"
    assert judge(case("web_fetch", spelling % b"good.test", "fetch")).verdict == "allow"
    asked = judge(case("web_fetch", spelling % b"good.test", "fetch", PAGE))
    assert asked.verdict == "ask" and "https://good.test/x" in asked.reason


@pytest.mark.parametrize("tool", ["shell", "background_run", "process"])
@pytest.mark.parametrize(
    "spelling",
    [
        b'{"command": "%s", "action": "start"}',
        b'{"command": "%s", "action": "start", "cwd": "\\ud800"}',
        b'"{\\"command\\": \\"%s\\", \\"action\\": \\"start\\"}"',
    ],
)
def test_commands(judge: Judge, tool: str, spelling: bytes) -> None:
    found = [
        judge(case(tool, spelling % command)).verdict
        for command in (b"ls", b"make", b"ls && rm x", b"$(x)")
    ]
    assert found == ["allow", "ask", "deny", "ask"], (
        "a rule for bash is one for whatever runs commands"
    )


def test_names_of_other_systems(judge: Judge) -> None:
    for name in (b"cmd", b"script"):
        assert judge(case("shell", b'{"%s": "rm x"}' % name)).verdict == "deny"
    assert normalize_case(case("write_file", b'{"file_path": "a", "content": "b"}')).arguments in (
        b'{"path":"a","content":"b"}',
        b'{"content":"b","path":"a"}',
    )


def test_what_needs_no_change_is_left_and_what_is_refused_too(judge: Judge) -> None:
    deep = b'{"url": ' + b"[" * 5000
    for tool in ("web_fetch", "shell", "process"):
        assert judge(case(tool, deep, "fetch")).verdict in ("allow", "ask")
    for arguments in (
        b'{"path": "a"}',
        b"",
        b"[1]",
        b'{"a": NaN}',
        b'{"a": 1, "a": "\\ud800"}',
        b"[" * 5000,
    ):
        assert normalize_case(case("read_file", arguments)).arguments == arguments


@pytest.mark.parametrize(
    "error", [RecursionError("deep"), MemoryError(), ValueError("?"), KeyError("x")]
)
def test_what_cannot_be_judged_is_asked_about(error: Exception) -> None:
    """An analyser that fails never means yes."""

    def broken_check(case: Case, policy: AgentPolicy) -> Decision | None:
        raise error

    results = check_call(
        case("shell", b'{"command": "ls"}'), AgentPolicy(), checks=(configured_rules, broken_check)
    )
    found = strictest(results)
    assert found.check == "broken check" and found.decision.verdict == "ask"
    assert type(error).__name__ in found.decision.reason


def test_of_equally_strict_answers_the_first_is_the_reason() -> None:
    rules = (Rule("ask", because="by rule"), Rule("deny", tool="shell"))
    policy = AgentPolicy(rules)
    posted = case("post", b"{}", "network", PAGE)
    found = [(each.check, each.decision.verdict) for each in check_call(posted, policy)]
    assert found == [("information flow", "ask"), ("configured rules", "ask")]
    assert strictest(check_call(posted, policy)).check == "information flow"


def test_each_check_has_a_name_of_its_own() -> None:
    """`policy why` prints it."""
    names = [name_of(check) for check in CHECKS]
    assert len(set(names)) == len(names) and all(name.replace(" ", "").isalpha() for name in names)


LONG = {
    "too long": "echo " + "a" * 20_000,
    "a chain": "nohup " * 2_000 + "make",
    "a chain that is too long": "nohup " * 100_000 + "ls",
    "brackets": "(" * 10_000 + "ls" + ")" * 10_000,
    "quotes": "'" * 100_001,
    "backslashes": "ls " + "\\" * 9_999,
}


@pytest.mark.parametrize("command", LONG.values(), ids=LONG)
def test_a_command_that_cannot_be_read_is_no_yes(judge: Judge, command: str) -> None:
    arguments = msgspec.json.encode({"command": command, "action": "start"})
    for tool in ("shell", "background_run", "process"):
        assert judge(case(tool, arguments)).verdict in ("ask", "deny"), tool


def test_an_address_behind_many_others_is_not_free(judge: Judge) -> None:
    """So many are looked at; none is passed over, neither by a rule that refuses a host nor by the
    gate."""
    good = [f"https://good.test/{number}" for number in range(200)]
    for given in (
        {"urls": [*good, "https://evil.test/x"]},
        {"urls": good, "url": "https://evil.test/x"},
    ):
        arguments = msgspec.json.encode(given)
        assert judge(case("web_fetch", arguments, "fetch")).verdict != "allow"
        assert judge(case("web_fetch", arguments, "fetch", PAGE)).verdict != "allow"
    assert (
        judge(case("web_fetch", msgspec.json.encode({"urls": good[:5]}), "fetch")).verdict
        == "allow"
    )
