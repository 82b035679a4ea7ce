"""Where the page is, written down for other processes."""

from __future__ import annotations

import json

from ..types.private_files import write_private_file
from .config import Home


def write_address(home: Home, url: str) -> None:
    """Where the page is, for `deskhand login` and whoever wants to open it."""
    write_private_file(home.address, json.dumps({"url": url}) + "\n")


def remove_address(home: Home) -> None:
    home.address.unlink(missing_ok=True)


def read_address(home: Home) -> str:
    """Where the page is now; '' where nothing serves it."""
    try:
        return str(json.loads(home.address.read_text())["url"])
    except (OSError, ValueError, KeyError, RecursionError):
        return ""
