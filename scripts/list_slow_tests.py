"""Writes tests/slow.txt, the tests that only `make test-all` runs, from the times of a whole run.

Run `TESTS=all python -m pytest --junitxml=times.xml`, then this with times.xml.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).parents[1] / "tests" / "slow.txt"
CASE_S = 1.0
TEST_S = 2.0
"""A test is slow if one of its cases takes so long, or all of them together."""
ALWAYS = {
    "cli/test_serve.py::test_it_works_and_ends_when_told",
    "page/test_conversation.py::test_from_the_first_visit_to_the_first_answer",
    "test_acceptance.py::test_what_is_named_exists_and_runs",
    "runtime/test_plain_turn.py::test_a_plain_turn_on_a_channel_has_two_commits_too",
    "runtime/test_turn_counts.py::test_what_a_turn_costs",
    "test_house.py::test_importing_does_nothing",
    "test_house.py::test_names_say_what_a_thing_is",
    "test_house.py::test_statements_are_named_and_run_in_query_modules",
}
"""These always run, however long they take: the service, the page, what a turn costs, the list
of what must work, how code is written."""


def slow_tests(report: Path) -> list[str]:
    """Names such as `web/test_app.py::test_it`, from a report in JUnit's format."""
    times = defaultdict[str, list[float]](list)
    for case in ElementTree.parse(report).iter("testcase"):
        path = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        function = case.attrib["name"].partition("[")[0]
        times[f"{path}.py::{function}"].append(float(case.attrib["time"]))
    slow = {name for name, each in times.items() if max(each) >= CASE_S or sum(each) >= TEST_S}
    return sorted(slow - ALWAYS)


if __name__ == "__main__":
    LIST.write_text("\n".join(slow_tests(Path(sys.argv[1]))) + "\n")
