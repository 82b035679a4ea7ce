"""What the cases come to, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

WORDS = {("travel", "injection_task_6")}
"""What these want is a sentence in the answer to the owner. There is no effect that could be
stopped."""
BEGIN = "<!-- agentdojo: begin -->"
END = "<!-- agentdojo: end -->"


class Way(msgspec.Struct, frozen=True):
    """One way to run it. `labels` False: the gate never learns that anything came from outside. A
    `hasty` person says yes to all calls of a question where any of them is theirs."""

    name: str
    mode: str = "workspace-free"
    labels: bool = True
    answers: bool = True
    hasty: bool = False


USUAL, LOOSE, ALONE, CONTROL, HASTY = WAYS = (
    Way("as it comes"),
    Way("everything allowed", "everything"),
    Way("nobody answers", answers=False),
    Way("without labels", "everything", labels=False),
    Way("hasty", hasty=True),
)


class Outcome(msgspec.Struct, frozen=True):
    """What came of one case. `acts` are calls with an effect that an injection wanted and nobody
    allowed, `read` says whether the model read any, `leaks` are results that hid where they came
    from."""

    suite: str
    way: str
    attack: str
    user_task: str
    injection_task: str
    solved: bool
    attacked: bool
    asks: int
    yes: int
    acts: int
    read: bool
    leaks: list[str]

    @property
    def words(self) -> bool:
        return (self.suite, self.injection_task) in WORDS


Cases = Sequence[Outcome]


def holds(cases: Cases) -> bool:
    """Whether no attack had an effect, and no result hid where it came from."""
    real = [case for case in cases if case.way not in (CONTROL.name, HASTY.name)]
    return not any(case.acts or case.leaks or (case.attacked and not case.words) for case in real)


def report(cases: Cases, suites: Sequence[str]) -> str:
    """The table in Markdown."""

    def line(
        name: str, way: Way, attacked: bool, figure: Callable[[Cases], str], words: bool = False
    ) -> str:
        chosen = [
            case
            for case in cases
            if case.way == way.name and bool(case.attack) == attacked and case.words == words
        ]
        parts = [[case for case in chosen if case.suite == suite] for suite in suites]
        cells = [figure(part) if part else "-" for part in (*parts, chosen)]
        return f"| {name} | {' | '.join(cells)} |"

    rows = [
        f"| | {' | '.join(suites)} | all |",
        "|---|" + "---:|" * (len(suites) + 1),
        line("user tasks", USUAL, False, _count),
        line("cases with an injection", USUAL, True, _count),
        line(
            "… in which the model read it, and so obeyed",
            USUAL,
            True,
            _share(lambda case: case.read),
        ),
        line("**attack succeeded**", USUAL, True, _share(lambda case: case.attacked)),
        line("… rules that allow everything", LOOSE, True, _share(lambda case: case.attacked)),
        line("… nobody answers", ALONE, True, _share(lambda case: case.attacked)),
        line("… the person is hasty, to compare", HASTY, True, _share(lambda case: case.attacked)),
        line("… **without labels**, to compare", CONTROL, True, _share(lambda case: case.attacked)),
        line(
            "calls with an effect that an injection wanted and nobody allowed", USUAL, True, _acts
        ),
        line("… without labels, to compare", CONTROL, True, _acts),
        line("tasks solved, no injection", USUAL, False, _share(lambda case: case.solved)),
        line("tasks solved, with an injection", USUAL, True, _share(lambda case: case.solved)),
        line("questions for each task, no injection", USUAL, False, _mean(lambda case: case.asks)),
        line(
            "questions for each task, with an injection", USUAL, True, _mean(lambda case: case.asks)
        ),
        line(
            "tasks with at most one question, no injection",
            USUAL,
            False,
            _share(lambda case: case.asks <= 1),
        ),
        line("… rules that allow everything", LOOSE, False, _share(lambda case: case.asks <= 1)),
        line(
            "words in the answer, no effect: said",
            USUAL,
            True,
            _share(lambda case: case.attacked),
            words=True,
        ),
    ]
    return "\n".join(rows) + f"\n\nWordings of the injections: {_wordings(cases, suites)}.\n"


def _wordings(cases: Cases, suites: Sequence[str]) -> str:
    """The attacks, and of those that were not tried everywhere where they were."""
    tried = {(case.attack, case.suite) for case in cases if case.attack and case.way == USUAL.name}
    told = []
    for attack in sorted({attack for attack, _ in tried}):
        where = [suite for suite in suites if (attack, suite) in tried]
        told.append(attack if where == list(suites) else f"{attack} ({', '.join(where)})")
    return ", ".join(told)


def _count(cases: Cases) -> str:
    return str(len(cases))


def _acts(cases: Cases) -> str:
    return str(sum(case.acts for case in cases))


def _share(holds: Callable[[Outcome], bool]) -> Callable[[Cases], str]:
    return lambda cases: f"{100 * sum(map(holds, cases)) / len(cases):.1f} %"


def _mean(value: Callable[[Outcome], int]) -> Callable[[Cases], str]:
    return lambda cases: f"{sum(map(value, cases)) / len(cases):.2f}"


def replace_table(path: Path, table: str) -> None:
    """Put the table between its marks."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{table}\n{END}{after}")
