"""What all tests share: the event loop, and how they are spread over processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from .examples import ALL, examples

settings.register_profile("default", max_examples=examples(100), deadline=None)
settings.load_profile("default")
settings.register_profile(
    "lives",  # each example is the life of a whole Deskhand
    max_examples=examples(25, quick=3),
    deadline=None,
    suppress_health_check=(
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    print_blob=True,
)


def pytest_configure() -> None:
    """A shell has what it starts in the background ignore Ctrl+C, and each process that we start
    would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture
def anyio_backend() -> str:
    """We run on asyncio alone: aiohttp and prompt_toolkit do too."""
    return "asyncio"


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half of the tests wait for processes, so that two workers suit one core. A few files need no
    more than one."""
    if config.args_source is config.ArgsSource.ARGS and not any(
        Path(arg).is_dir() for arg in config.args
    ):
        return 0
    return min(2 * (os.cpu_count() or 1), 8)


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text().split())
"""What only `make test-all` runs; scripts/list_slow_tests.py writes it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow ones out where nobody asked for them; let those with the longest time limit
    begin first."""
    if not ALL and config.args_source is not config.ArgsSource.ARGS:
        slow = [item for item in items if name_of(item) in SLOW]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if name_of(item) not in SLOW]

    def limit_s(item: pytest.Item) -> float:
        mark = item.get_closest_marker("timeout")
        return mark.args[0] if mark and mark.args else 0

    items.sort(key=limit_s, reverse=True)


def name_of(item: pytest.Item) -> str:
    """`web/test_app.py::test_it`, without its parameters."""
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    return f"{path}::{item.name.partition('[')[0]}"
