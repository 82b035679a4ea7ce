"""A part is never more than the whole, whatever is asked for."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.policy.capabilities import RANK, Capabilities, Wanted, acting_for, beyond, narrowed, within
from deskhand.policy.hosts import fits_host
from deskhand.policy.postures import POSTURES, posture_rules
from deskhand.policy.rules import Case, Decision, decide
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER, UNTRUSTED

EFFECTS = get_args(Effect)
NAMES = ("shell", "read_file", "write_file", "web_fetch", "send_message")
HOSTS = (
    "*",
    "example.org",
    "*.example.org",
    "a.example.org",
    "*.a.example.org",
    "*.org",
    "evil.test",
    "badexample.org",
)
REAL = ("example.org", "a.example.org", "b.a.example.org", "evil.test", "badexample.org", "x.org")
ROLES = ("owner", "member", "children")

postures = st.sampled_from(list(POSTURES))
some_effects = st.frozensets(st.sampled_from(EFFECTS))
some_hosts = st.lists(st.sampled_from(HOSTS), max_size=4).map(tuple)
some_roles = st.lists(st.sampled_from(ROLES), unique=True).map(tuple)
patterns = st.lists(st.sampled_from((*NAMES, "*", "read_*", "*file", "[rs]*", "", "nothing")), max_size=4).map(tuple)
parents = st.builds(Capabilities, st.frozensets(st.sampled_from(NAMES)), some_effects, some_hosts, postures, some_roles)
wishes = st.builds(
    Wanted,
    st.none() | patterns,
    st.none() | some_effects.map(tuple),
    st.none() | some_hosts,
    st.none() | postures,
    st.none() | some_roles,
)


def reaches(held: Capabilities, host: str) -> bool:
    return any(pattern == "*" or fits_host(pattern, (host,), every=True) for pattern in held.hosts)


@given(parents, wishes)
def test_never_more_than_the_parent(parent: Capabilities, wanted: Wanted) -> None:
    part = narrowed(parent, wanted)
    assert part.tools <= parent.tools and part.effects <= parent.effects and set(part.roles) <= set(parent.roles)
    order = list(POSTURES)
    assert order.index(part.posture) <= order.index(parent.posture)
    for host in REAL:
        assert reaches(part, host) <= reaches(parent, host), host
        if wanted.hosts is not None:
            both = reaches(parent, host) and reaches(Capabilities(hosts=wanted.hosts), host)
            assert reaches(part, host) == both, "and no less than both have"
    assert narrowed(part, wanted) == part, "once is enough"
    assert narrowed(parent, Wanted()) == parent


cases = st.builds(
    Case,
    st.just("main"),
    st.sampled_from((*NAMES, "another")),
    st.sampled_from(EFFECTS),
    st.builds(Principal, st.just("ann"), some_roles),
    st.sampled_from([OWNER, UNTRUSTED]),
    st.sampled_from([f"https://{host}/" for host in REAL]).map(lambda url: msgspec.json.encode({"url": url})),
)


@given(parents, wishes, wishes, cases, st.sampled_from(["allow", "ask", "deny"]))
def test_no_call_is_freer_than_with_the_parent(
    parent: Capabilities, wanted: Wanted, more: Wanted, case: Case, verdict: str
) -> None:
    """Through two generations, whatever the judge of the first says."""

    def judge(each: Case) -> Decision:
        return Decision(verdict, "") if verdict != "allow" else decide(posture_rules("everything"), each)  # type: ignore[arg-type]

    first = within(judge, parent)
    child = within(first, narrowed(parent, wanted))
    grandchild = within(child, narrowed(narrowed(parent, wanted), more))
    verdicts = [RANK[each(case).verdict] for each in (judge, first, child, grandchild)]
    assert verdicts == sorted(verdicts, reverse=True)


@pytest.mark.parametrize(
    ("held", "case", "why"),
    [
        (Capabilities(), Case("a", "shell", "none", Principal("x"), OWNER), "shell was not handed on"),
        (
            Capabilities(frozenset({"shell"}), frozenset({"none"})),
            Case("a", "shell", "host", Principal("x"), OWNER),
            "nothing with the effect 'host' was handed on",
        ),
        (
            Capabilities(frozenset({"web_fetch"}), hosts=("*.example.org",)),
            Case("a", "web_fetch", "fetch", Principal("x"), OWNER, b'{"url": "https://evil.test/"}'),
            "evil.test is not among the hosts",
        ),
        (
            Capabilities(frozenset({"web_fetch"}), hosts=()),
            Case("a", "web_fetch", "fetch", Principal("x"), OWNER, b'{"url": "http://["}'),
            "an address that cannot be read is not among",
        ),
        (
            Capabilities(frozenset({"web_fetch"}), hosts=("example.org",)),
            Case("a", "web_fetch", "fetch", Principal("x"), OWNER, b'{"url": "https://example.org/"}'),
            "",
        ),
    ],
)
def test_what_goes_beyond_is_said(held: Capabilities, case: Case, why: str) -> None:
    assert beyond(held, case).startswith(why) and bool(beyond(held, case)) is bool(why)


def test_what_acts_by_itself_has_the_rights_of_whom_it_acts_for() -> None:
    ann = Principal("ann", ("member", "children"))
    job = acting_for(ann, "clock", "clock")
    assert (job.roles, job.on_behalf_of, job.kind) == (ann.roles, "ann", "clock")
    assert acting_for(job, "child", "agent").on_behalf_of == "ann", "through every generation"
