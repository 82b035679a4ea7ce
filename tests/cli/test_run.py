"""How a command ends that goes wrong in several places at once."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from deskhand.cli.run import run
from deskhand.config.config import read_settings
from deskhand.types.errors import DeskhandError, StoreCorrupt, StoreUnavailable

DAMAGED = StoreCorrupt("the database is damaged")


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ((DAMAGED, StoreCorrupt("the database is damaged")), "the database is damaged"),
        ((DAMAGED, ExceptionGroup("inner", [DAMAGED, DAMAGED])), "the database is damaged"),
        ((ValueError("what came of it"), DAMAGED), "the database is damaged"),
        ((StoreUnavailable("it is locked"), DAMAGED), "the database is damaged"),
        ((OSError(28, "full", "log"), DeskhandError("one"), DeskhandError("two")), "one"),
    ],
)
def test_several_errors_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], errors: tuple[Exception, ...], said: str
) -> None:
    async def breaks() -> None:
        raise ExceptionGroup("unhandled errors in a TaskGroup", errors)

    with pytest.raises(SystemExit) as ended:
        run(read_settings(None, {"DESKHAND_HOME": str(tmp_path)}), breaks, log=False)
    assert ended.value.code == 1
    assert capsys.readouterr().err.strip().endswith(said)


def test_a_part_that_broke_is_no_sentence(tmp_path: Path) -> None:
    async def breaks() -> None:
        async with anyio.create_task_group():
            raise ExceptionGroup("two", [ValueError("broken"), DeskhandError("one")])

    with pytest.raises(ExceptionGroup):
        run(read_settings(None, {"DESKHAND_HOME": str(tmp_path)}), breaks, log=False)
