"""Makes a home of Hermes Agent by running it: the runner of its gateway with its sessions, pairing
and crons, and no platform. What was said in a terminal comes from its own command, in make.sh."""

import asyncio
import logging
from pathlib import Path

from hermes_cli.config import ensure_hermes_home
from hermes_cli.env_loader import load_hermes_dotenv

logging.disable(logging.ERROR)
ensure_hermes_home()
load_hermes_dotenv()

from gateway.config import Platform  # after the environment, which it reads
from gateway.platforms.base import MessageEvent
from gateway.run import GatewayRunner
from gateway.session import SessionSource

ANN, BOB, EVE = ("123456789", "Ann"), ("987654321", "Bob"), ("555000111", "Eve")
SOUL = Path.home() / ".hermes" / "SOUL.md"


async def talk():
    SOUL.write_text("You are calm, and you answer in few words.\n")
    runner = GatewayRunner()

    async def say(text, user=ANN, chat=None, topic=None):
        source = SessionSource(
            platform=Platform.TELEGRAM,
            chat_id=chat or user[0],
            chat_name="House" if chat else user[1],
            chat_type="group" if chat else "dm",
            user_id=user[0],
            user_name=user[1],
            thread_id=topic,
            message_id="41",
        )
        event = MessageEvent(text=text, source=source, message_id="41")
        if not await runner._handle_message(event):
            raise SystemExit(f"no answer to {text}")
        await asyncio.sleep(1)

    await say("hello")
    await say("Please keep this in mind: two cats, Ada and Grace.")
    await say("Please plan my week.")
    code = runner.pairing_store.generate_code("telegram", *BOB)
    runner.pairing_store.approve_code("telegram", code)
    runner.pairing_store.generate_code("telegram", *EVE)  # hers waits
    await say("hello", user=BOB)
    await say("who is cooking?", chat="-1001234567890", topic="7")
    await say("/new")
    await say("hello")
    await asyncio.sleep(3)


asyncio.run(talk())
