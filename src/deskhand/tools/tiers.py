"""The further ways in which `web_fetch` fetches: as a browser greets a server, and as a browser
shows the page."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import anyio.to_thread
import msgspec

from ..net.client import Exchange, Fetched
from ..net.url import Url
from ..types.errors import ToolError
from .base import Context
from .convert import INSTALL_COMMAND
from .render import Rendered
from .web import Tier, TierName, Wish


async def fetch_as_browser(url: Url, wish: Wish, context: Context) -> Fetched:
    """A GET with the greeting, the headers and the compression of a browser. Raises NetError,
    ToolError."""
    if find_spec("curl_cffi") is None:
        raise ToolError(
            "support for fetching pages like a browser is not installed on this machine: "
            f"{INSTALL_COMMAND}"
        )
    # Loaded by who asks for it: a C library that nothing else needs, and 7 MB of memory.
    module = await anyio.to_thread.run_sync(import_module, "deskhand.net.fingerprint")
    exchange: Exchange = module.exchange
    net = context.reach.net
    limits = msgspec.structs.replace(net.limits, total_s=wish.timeout_s)
    return await net.with_exchange(exchange).get(url, limits=limits)


def make_further_tiers() -> dict[TierName, Tier]:
    """The tiers of one agent beside the plain one."""
    return {"browser": fetch_as_browser, "rendered": Rendered()}
