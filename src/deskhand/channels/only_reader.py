"""Two that read one account take each other's messages: only one of a home may."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ..types.errors import ChannelError
from ..types.folders import make_private_folder

RETRY_S = 30.0


@contextmanager
def only_reader(state: Path, secret: str) -> Iterator[None]:
    """Be the one that reads the account with this secret. Raises ChannelError where another channel
    is."""
    digest = sha256(secret.encode()).hexdigest()[:16]
    make_private_folder(state)
    lock = state / f"poll-{digest}.lock"
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            why = (
                "another channel of this Deskhand uses the same account: give each channel its own "
                "token"
            )
            raise ChannelError(why, RETRY_S) from error
        yield
    finally:
        os.close(fd)
