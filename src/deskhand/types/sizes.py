"""Sizes of files in words."""

from __future__ import annotations


def format_size(count: int) -> str:
    """So many bytes, as people read it: `3 kB`, `1.2 MB`, `4.0 GB`."""
    if count < 1_000_000:
        return f"{max(1, round(count / 1e3))} kB" if count else "0 kB"
    return f"{count / 1e6:,.1f} MB" if count < 1_000_000_000 else f"{count / 1e9:,.1f} GB"
