"""Fifty everyday requests. Whoever works on what a small model is shown looks at these."""

from __future__ import annotations

from . import assistant, files, reading, tables

TASKS = (*files.TASKS, *tables.TASKS, *reading.TASKS, *assistant.TASKS)
