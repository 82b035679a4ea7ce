"""The nasty site, and the trap beside it on the same port of the private address."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.net.fingerprint import exchange
from deskhand.testing.site import PRIVATE, LocalSite, on_one_port


@pytest.fixture(params=[None, exchange], ids=["as a program", "as a browser"])
async def sites(request: pytest.FixtureRequest) -> AsyncIterator[tuple[LocalSite, LocalSite]]:
    site = LocalSite(exchange=request.param)
    private = LocalSite(PRIVATE, "private.test")
    async with on_one_port(private, site):
        yield site, private


@pytest.fixture
def site(sites: tuple[LocalSite, LocalSite]) -> LocalSite:
    return sites[0]


@pytest.fixture
def trap(sites: tuple[LocalSite, LocalSite]) -> LocalSite:
    """A listener at the private address, on the port of the site: nothing may connect to it."""
    return sites[1]
