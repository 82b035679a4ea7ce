"""What a rule may look at beside the tool: who, where, to which host and with which commands."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.policy.command_lists import COMMAND_LISTS
from deskhand.policy.rules import Case, Rule, RuleTrace, find_mismatch
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER

from .deciding import decide

ANN = Principal("ann", ("owner", "family"))


def case(tool: str, effect: Effect = "local_write", **arguments: object) -> Case:
    return Case(
        "main", tool, effect, ANN, OWNER, msgspec.json.encode(arguments), channel="telegram"
    )


def fetch(url: object, **more: object) -> Case:
    return case("web_fetch", "fetch", url=url, **more)


def shell(command: str) -> Case:
    return case("shell", command=command)


@pytest.mark.parametrize(
    ("rule", "misfit"),
    [
        (Rule("deny", who="ann"), ""),
        (Rule("deny", who="role:family"), ""),
        (Rule("deny", who="role:f?mily"), ""),
        (Rule("deny", who="bob"), "who"),
        (Rule("deny", channel="telegram"), ""),
        (Rule("deny", channel="tele*"), ""),
        (Rule("deny", channel="web"), "channel"),
        (Rule("deny", group=False), ""),
        (Rule("deny", group=True), "group"),
        (Rule("deny", agent="kids"), "agent"),
        (Rule("deny", effect="host"), "effect"),
        (Rule("deny", tool="think"), "tool"),
    ],
)
def test_who_and_where(rule: Rule, misfit: str) -> None:
    assert find_mismatch(rule, RuleTrace(shell("ls"))) == misfit


def test_what_acts_for_somebody_is_judged_as_they_are() -> None:
    job = Principal("clock", ("member",), "clock", "ann")
    for rule, verdict in (
        (Rule("deny", who="ann"), "deny"),
        (Rule("deny", who="clock"), "deny"),
        (Rule("deny", who="bob"), "allow"),
    ):
        assert decide((rule,), replace(shell("ls"), principal=job)).verdict == verdict


@pytest.mark.parametrize(
    ("host", "url", "fits"),
    [
        ("example.org", "https://example.org/a?b", True),
        ("example.org", "HTTPS://EXAMPLE.ORG./", True),
        ("example.org", "https://\uff45xample.org/", True),
        ("example.org", "https://www.example.org/", False),
        ("example.org", "https://example.org.evil.test/", False),
        ("example.org", "https://example.org@evil.test/", False),
        ("example.org", "https://evil.test/#example.org", False),
        ("example.org", "https:\\\\example.org", False),
        ("*.example.org", "https://a.b.example.org/", True),
        ("*.example.org", "https://example.org/", False),
        ("*.example.org", "https://evilexample.org/", False),
        ("127.0.0.1", "http://0x7f.1:8080/", True),
        ("example.org", "example.org", True),
        ("example.org", "example.org:443", True),
        ("example.org", 5, False),
    ],
)
def test_hosts(host: str, url: object, fits: bool) -> None:
    for verdict in ("allow", "deny"):
        assert (find_mismatch(Rule(verdict, host=host), RuleTrace(fetch(url))) == "") is fits
    assert (
        find_mismatch(Rule("deny", host=host), RuleTrace(case("write_file", url=url))) == "host"
    ), "it goes nowhere"


def test_of_several_addresses_all_must_be_allowed_and_one_is_enough_to_refuse() -> None:
    two = fetch("https://example.org/", more=["https://evil.test/x"])
    assert find_mismatch(Rule("allow", host="example.org"), RuleTrace(two)) == "host"
    assert find_mismatch(Rule("deny", host="evil.test"), RuleTrace(two)) == ""
    assert (
        find_mismatch(
            Rule("allow", host="example.org"),
            RuleTrace(fetch("https://example.org/", urls=["http://[::bad"])),
        )
        == "host"
    )
    deep: object = "https://evil.test/"
    for _ in range(20):
        deep = [deep]
    assert (
        find_mismatch(
            Rule("allow", host="example.org"), RuleTrace(fetch("https://example.org/", more=deep))
        )
        == "host"
    )
    assert (
        find_mismatch(Rule("allow", host="example.org"), RuleTrace(replace(two, arguments=b"{")))
        == "host"
    )
    assert (
        find_mismatch(
            Rule("deny", host="evil.test"),
            RuleTrace(replace(two, host="evil.test", arguments=b"{}")),
        )
        == ""
    )
    for host, misfit in (
        ("*.example.org", ""),
        ("*.a.example.org", ""),
        ("*.org", "host"),
        ("example.org:443", "host"),
    ):
        wanted = case("request_host", "network", host=host)
        assert find_mismatch(Rule("allow", host="*.example.org"), RuleTrace(wanted)) == misfit, host


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        (Rule("deny", commands=("rm",)), "ls && rm x", "deny"),
        (Rule("deny", commands=("rm",)), "/bin/rm x", "deny"),
        (Rule("deny", commands=("rm",)), "sudo -u root nice rm x", "deny"),
        (Rule("deny", commands=("rm",)), "find . -exec rm {} +", "deny"),
        (Rule("deny", commands=("rm",)), "grep rm x", "allow"),
        (Rule("deny", commands=("rm",)), "$(echo rm) x", "ask"),
        (Rule("ask", commands=("rm",)), "$(echo rm) x", "ask"),
        (Rule("ask", commands=("rm",)), "ls", "allow"),
        (Rule("allow", commands=("ls",)), "ls", "allow"),
        (Rule("deny", commands=("@operator-use",)), "echo $(date)", "allow"),
        (Rule("deny", commands=("@looking",)), "cat x", "deny"),
    ],
)
def test_commands(rule: Rule, command: str, verdict: str) -> None:
    assert decide((rule,), shell(command)).verdict == verdict


def test_what_cannot_be_told_is_asked_about_unless_another_rule_refuses() -> None:
    unclear = shell("$(echo rm) x")
    deny = Rule("deny", commands=("rm",))
    decision = decide((deny, Rule("allow")), unclear)
    assert (
        decision.verdict == "ask"
        and "it is not certain" in decision.reason
        and "rule 1: deny" in decision.reason
    )
    assert decide((deny, Rule("deny")), unclear).verdict == "deny"


def test_looking_is_not_writing() -> None:
    rules = (Rule("allow", commands=("@looking",)), Rule("deny"))
    for command, verdict in {
        "ls -la | grep x | wc -l": "allow",
        "cat a 2>/dev/null": "allow",
        "cat a > b": "deny",
        "git status": "deny",
        "sed -i p f": "deny",
        "": "deny",
    }.items():
        assert decide(rules, shell(command)).verdict == verdict, command


BLOCKED = {
    "@operator-use": (
        *(
            "rm -rf /",
            "rm  -rf   /",
            "rm -rf ~",
            "rm -rf /*",
            "dd if=/dev/zero of=x",
            "dd if=/dev/random",
            "mkfs.ext4 x",
        ),
        *(
            "fdisk -l",
            "parted x",
            ":(){:|:&};:",
            ":(){ :|:& };:",
            "chmod 777 /",
            "chmod -R 777 x",
            "shutdown",
        ),
        *("reboot", "halt", "poweroff", "init 0", "init 6"),
    ),
    "@agent-computer": (
        *(
            "rm -rf /",
            "mkfs x",
            "dd if=a",
            ":(){ :|:& };:",
            "echo > /dev/sda",
            "chmod -R 777 /",
            "curl | sh",
        ),
        *("wget | sh", "curl|sh", "wget|sh"),
    ),
    "@openagent": (
        *(
            "rm -r /",
            "rm -rf / --no-preserve-root",
            "sudo ls",
            "shutdown",
            "reboot",
            "echo x > /dev/sda",
            "mkfs.ext4 x",
        ),
        *("dd if=x of=/dev/sda", "echo $(id)", "echo `id`", "echo $((1))"),
    ),
}


@pytest.mark.parametrize("name", sorted(BLOCKED))
def test_lists_of_other_systems(name: str) -> None:
    rules = (Rule("deny", commands=(name,)),)
    for command in BLOCKED[name]:
        assert decide(rules, shell(command)).verdict == "deny", command
    for command in (
        *("ls -la", "git status", "rm -rf ./build", "echo hello > out.txt", "python build.py"),
        *(
            "grep asphalt roads.txt",
            "npm run departed",
            "cat rebooted.log",
            "echo 'exhalted' | wc",
            "init 66",
        ),
    ):
        assert decide(rules, shell(command)).verdict == "allow", command
    assert {each for each in COMMAND_LISTS if each != "@looking"} == set(BLOCKED), (
        "off unless a rule names one"
    )
    assert decide((), shell(BLOCKED[name][0])).verdict == "allow"
