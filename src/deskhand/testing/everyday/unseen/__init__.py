"""Fifty everyday requests of the same kinds, measured once before anybody had read them. What
failed then was read, and mended; `fresh` measures since."""

from __future__ import annotations

from . import assistant, files, reading, tables

TASKS = (*files.TASKS, *tables.TASKS, *reading.TASKS, *assistant.TASKS)
