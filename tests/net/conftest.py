"""The nasty site, and the trap beside it on the same port of the private address."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.testing.site import PRIVATE, Site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as running:
        yield running


@pytest.fixture
async def trap(site: Site) -> AsyncIterator[Site]:
    """A listener at the private address, on the port of the site: nothing may connect to it."""
    private = Site(PRIVATE, "private.test")
    private.port = site.port
    async with private:
        yield private
