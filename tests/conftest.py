"""What all tests share: the event loop, and how they are spread over processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

EXAMPLES = "DESKHAND_EXAMPLES"
"""So many times as many examples as otherwise, of properties each example of which is the life of a
whole house."""
settings.register_profile(
    "lives",
    max_examples=25 * int(os.environ.get(EXAMPLES, "1")),
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take long come first, so that none of them is alone at the end."""

    def limit_s(item: pytest.Item) -> float:
        mark = item.get_closest_marker("timeout")
        return mark.args[0] if mark and mark.args else 0

    items.sort(key=limit_s, reverse=True)
