"""A process that drives a home with a model that takes its time: `driving.py HOME PIECES
PAUSE_S`."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.scripted import ScriptedModel, say


async def main(home: Path, pieces: int, pause_s: float) -> None:
    text = "".join(f"piece {number:03}. " for number in range(pieces))
    model = ScriptedModel(lambda request: say(text), piece=11, pause_s=pause_s)
    settings = Settings(Home(home), Config()).with_model("scripted/slow")
    async with open_app(settings, Parts(lambda name: model, {})) as app:
        await app.run(lambda: print("driving", flush=True))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
