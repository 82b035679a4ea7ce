"""`deskhand budget`: what is set, what is used, and how more is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
import yaml
from click.testing import CliRunner, Result

from deskhand.budgets.enforcement import BudgetLedger
from deskhand.cli.root import cli
from deskhand.config.clock import RandomIds, SystemClock
from deskhand.config.config import read_settings
from deskhand.config.home import FILE_NAME
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.types.budget import Charge
from deskhand.types.messages import Usage


def _budget(home: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, ("budget", *args), env=env, prog_name="deskhand")


def _call(home: Path, tokens: int) -> str:
    """A call of anna's, as the process that drives would make it."""

    async def main() -> str:
        settings = read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home)})
        store = SqliteStore(settings.home.database, load_statements())
        try:
            ledger = BudgetLedger(store, SystemClock(), RandomIds(), lambda: settings)
            why = await ledger.reserve(Charge("default/web:anna:1", "anna", "default"), tokens, "k")
            await store.change(ledger.settle("k", Usage(tokens)))
            return why
        finally:
            await store.close()

    return anyio.run(main)


def test_set_use_and_lift(tmp_path: Path) -> None:
    assert "No budget is set. Set one with: deskhand budget set all" in _budget(tmp_path).output
    said = _budget(
        tmp_path, "set", "person", "--tokens-per-day", "50k", "--usd-per-month", "2.5"
    ).output
    assert said == "Set for person: 50,000 tokens a day, $2.50 a month\n"
    assert _budget(tmp_path, "set", "person:bert", "--tokens", "2m").exit_code == 0
    written = yaml.safe_load((tmp_path / FILE_NAME).read_text())
    assert written["budgets"]["person"] == {"tokens_per_day": 50000, "usd_per_month": 2.5}
    assert _call(tmp_path, 40_000) == ""
    why = _call(tmp_path, 40_000)
    shown = " ".join(_budget(tmp_path).output.split())
    assert "person:anna 40,000 of 50,000 tokens today 80% It resets on " in shown
    assert "person:bert 0 of 2,000,000 tokens 0% It does not reset by itself." in shown
    assert "Total this month: 40,000 tokens." in shown
    command = why.rpartition("deskhand budget ")[2].split()
    assert "40,000 of 100,000 tokens today are used" in _budget(tmp_path, *command).output
    assert _call(tmp_path, 40_000) == ""
    found = {
        (each["of"], each["field"]): each
        for each in json.loads(_budget(tmp_path, "list", "--json").output)
    }
    assert found["person:bert", "tokens"]["most"] == 2_000_000
    assert found["person:bert", "usd_per_month"]["most"] == 2.5, (
        "what the name does not say is said by its kind"
    )
    lines = [
        line
        for line in _budget(tmp_path, "list").output.splitlines()
        if line.startswith("person:anna")
    ]
    assert "80,000 of 100,000" in lines[0] and "$0.00 of $2.50 this month" in lines[1]
    assert _budget(tmp_path, "set", "person", "--none").output == "Set for person: no limit\n"
    assert _call(tmp_path, 10**9) == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("set", "anna", "--tokens", "5"),
            "'anna' is not a valid budget; write all, person, agent, job or session",
        ),
        (("set", "all"), "set a limit, such as --tokens-per-day 500k"),
        (
            ("set", "all", "--tokens", "many"),
            "'many' is not a number of tokens: write 50000, 50k or 2m",
        ),
        (("set", "all", "--usd", "-1"), "-1.0 is not in the range"),
        (("set", "all", "--tokens", "-5"), "'-5' is not a number of tokens"),
        (("set", "all", "--tokens", "5mk"), "'5mk' is not a number of tokens"),
        (("set", "all", "--tokens", "1e40"), "is not an amount: write a number such as 20"),
        (("set", "all", "--usd", "nan"), "is not an amount: write a number such as 20"),
        (("lift", "person"), "name one, as person:NAME"),
        (("lift", "person:anna"), "no budget is set for person:anna"),
        (("lift", "nobody"), "is not a valid budget"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    found = _budget(tmp_path, *args)
    assert found.exit_code == 2 and said in found.output
    assert not (tmp_path / FILE_NAME).exists()


def test_to_lift_nothing_is_nothing(tmp_path: Path) -> None:
    assert _budget(tmp_path, "set", "all", "--usd", "0").exit_code == 0
    found = _budget(tmp_path, "lift", "all")
    assert (
        found.exit_code == 2
        and "change it with: deskhand budget set all --usd NUMBER" in " ".join(found.output.split())
    )


def test_what_can_be_lifted_is_lifted_beside_a_limit_of_nothing(tmp_path: Path) -> None:
    assert (
        _budget(tmp_path, "set", "person:anna", "--usd", "0", "--tokens-per-day", "50k").exit_code
        == 0
    )
    found = _budget(tmp_path, "lift", "person:anna")
    assert found.exit_code == 0 and "0 of 100,000 tokens today are used" in found.stdout
    assert "deskhand budget set person:anna --usd NUMBER" in " ".join(found.stderr.split())
    assert _budget(tmp_path, "lift", "person:anna", "--per", "ever").exit_code == 2, (
        "there is nothing to lift"
    )
