"""The process that is killed: the real runtime, with the platform's channel, the real wire and one dangerous tool."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec
from aiohttp import ClientSession

from ..runtime.app import Parts, open_app
from ..runtime.config import Config, Home, Settings
from ..runtime.models import Models
from ..tools.base import Context, Outcome, Spec, done
from ..types.identity import Inbound, Principal
from ..types.tuning import tune
from .platform import HttpChannel
from .tools import SCHEMA, Note

ANN = Principal("ann", ("owner",))


class Effect:
    """Does something at the sink that must not happen twice."""

    spec = Spec("effect", "Does it.", SCHEMA, "local_write", "never")

    def __init__(self, url: str, session: ClientSession) -> None:
        self._url, self._session = url, session

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        note = msgspec.json.decode(arguments, type=Note)
        async with self._session.post(self._url + "/effect", json={"key": note.text}) as response:
            await response.read()
        return done(f"did {note.text}")


def settings_at(home: Path, url: str) -> Settings:
    providers = {"fake": {"base_url": f"{url}/v1"}}
    config = msgspec.convert({"defaults": {"models": ["fake/model"]}, "providers": providers}, Config, strict=False)
    return Settings(Home(home), config)


async def live(home: Path, url: str, *, ack_first: bool) -> None:
    """Run until killed."""
    settings = settings_at(home, url)

    def authorise(inbound: Inbound) -> Principal:
        return ANN

    async with ClientSession() as session, Models(settings) as models:
        tool = Effect(url, session)
        channel = HttpChannel(url, session, ack_first=ack_first)
        parts = Parts(models.open, {tool.spec.name: tool}, {}, (channel,), authorise)
        async with open_app(settings, parts) as app:
            await app.run()


def main() -> None:
    home, url, mode = sys.argv[1:]
    tune()
    anyio.run(lambda: live(Path(home), url, ack_first=mode == "ack-first"))


if __name__ == "__main__":
    main()
