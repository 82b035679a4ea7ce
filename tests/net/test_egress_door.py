"""The socket by which a command reaches the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.net.egress_door import Slots, open_egress_socket
from deskhand.testing.egress import Lab
from deskhand.types.errors import SandboxUnavailable


async def test_what_goes_wrong_meanwhile_comes_out_as_it_is() -> None:
    """And the socket is gone: a sandbox that does not come up is said in its own words, with what
    to do."""

    with pytest.raises(SandboxUnavailable, match="did not come up"):
        async with open_egress_socket(Lab(), Slots()) as path:
            assert Path(path).is_socket()
            raise SandboxUnavailable("the sandbox did not come up")
    assert not Path(path).parent.exists()
