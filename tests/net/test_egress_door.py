"""The socket by which a command reaches the network."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from deskhand.net.client import Net
from deskhand.net.egress_door import Slots, open_egress_socket
from deskhand.net.egress_proxy import Gate
from deskhand.types.errors import SandboxUnavailable


async def test_what_goes_wrong_meanwhile_comes_out_as_it_is() -> None:
    """And the socket is gone: a sandbox that does not come up is said in its own words, with what
    to do."""

    async def permit(*_: object) -> str:
        return "no"

    gate = Gate(permit, Net().connect, lambda *_: None, ssl.create_default_context)
    with pytest.raises(SandboxUnavailable, match="did not come up"):
        async with open_egress_socket(gate, Slots()) as path:
            assert Path(path).is_socket()
            raise SandboxUnavailable("the sandbox did not come up")
    assert not Path(path).parent.exists()
