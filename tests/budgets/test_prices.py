"""What calls cost: a price that is not known is never nothing."""

from __future__ import annotations

import pytest

from deskhand.budgets.prices import cost_usd, total_usd
from deskhand.models.catalogue import Catalogue
from deskhand.models.settings import Catalogued, Facts
from deskhand.store.base import Used

MODELS = {
    "big": Facts(window=1000, input_usd=2.0, output_usd=10.0, cached_usd=0.5),
    "plain": Facts(window=1000, input_usd=2.0, output_usd=10.0),
    "unpriced": Facts(window=1000),
    "half": Facts(window=1000, input_usd=2.0),
}
CATALOGUE = Catalogue(
    {
        "p": Catalogued("openai", "", "", models=MODELS),
        "box": Catalogued("openai", "", "", local=True),
    }
)


def used(model: str) -> Used:
    return Used("s", "", model, 0, 1, 1_000_000, 100_000, 400_000, 0)


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("p/big", 0.6 * 2 + 0.4 * 0.5 + 0.1 * 10),
        ("p/plain", 2.0 + 1.0),
        ("p/unpriced", None),
        ("p/half", None),
        ("p/new", None),
        ("nobody/x", None),
        ("box/any", 0.0),
        ("", None),
    ],
)
def test_what_it_costs(model: str, cost: float | None) -> None:
    assert cost_usd(used(model), CATALOGUE) == (pytest.approx(cost) if cost else cost)


def test_a_sum_says_whether_it_is_all() -> None:
    assert total_usd([], CATALOGUE) == (0, True)
    assert total_usd([used("p/new")], CATALOGUE) == (None, False)
    for other, complete in (("p/new", False), ("box/x", True)):
        cost, whole = total_usd([used("p/plain"), used(other)], CATALOGUE)
        assert cost == pytest.approx(3.0) and whole is complete
