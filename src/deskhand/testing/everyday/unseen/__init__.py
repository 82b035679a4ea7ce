"""Fifty everyday requests of the same kinds, to measure with: nobody reads them who works on what a model is shown."""

from __future__ import annotations

from . import assistant, files, reading, tables

TASKS = (*files.TASKS, *tables.TASKS, *reading.TASKS, *assistant.TASKS)
