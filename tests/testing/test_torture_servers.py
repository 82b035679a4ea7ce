"""A short torture with an MCP server that dies, hangs and floods; `make torture-servers` is the
long one."""

from __future__ import annotations

import pytest

from deskhand.testing.torture_servers import torture_servers


@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_repeated() -> None:
    report = await torture_servers(kills=8, seed=3)
    assert report.is_clean, report.show()
    assert report.messages > 10
