"""The nasty site, and the trap beside it on the same port of the private address."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.net.fingerprint import exchange
from deskhand.testing.site import PRIVATE, Site


@pytest.fixture(params=[None, exchange], ids=["as a program", "as a browser"])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    async with Site(exchange=request.param) as running:
        yield running


@pytest.fixture
async def trap(site: Site) -> AsyncIterator[Site]:
    """A listener at the private address, on the port of the site: nothing may connect to it."""
    private = Site(PRIVATE, "private.test")
    private.port = site.port
    async with private:
        yield private
