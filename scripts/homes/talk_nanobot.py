"""Makes a home of nanobot by running it: its bus, agent loop, sessions, crons and pairing, and no
platform."""

import asyncio
import logging

from loguru import logger
from nanobot import pairing
from nanobot.agent.loop import AgentLoop
from nanobot.agent.tools.registry import ToolRegistry
from nanobot.bus.events import InboundMessage
from nanobot.bus.queue import MessageBus
from nanobot.config.loader import load_config
from nanobot.cron.service import CronService
from nanobot.cron.types import CronJob, CronPayload, CronSchedule
from nanobot.events import AgentEvent
from nanobot.providers.factory import make_provider
from nanobot.utils.helpers import sync_workspace_templates

logging.disable(logging.WARNING)
logger.remove()
OWN = {
    "SOUL.md": "You are calm.\n",
    "USER.md": "Ann likes tea.\n",
    "skills/feed-look/SKILL.md": (
        "---\nname: feed-look\ndescription: How to look at the feed.\n---\n\nOpen the feed and "
        "read the newest three.\n"
    ),
}
ANN, BOB = (123456789, "ann"), (987654321, "bob")


async def talk():
    config = load_config()
    workspace = config.workspace_path
    sync_workspace_templates(workspace, silent=True)
    for name, text in OWN.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    bus, cron = MessageBus(), CronService(workspace / "cron" / "jobs.json")
    loop = AgentLoop.from_config(
        config,
        bus,
        provider=make_provider(config),
        cron_service=cron,
        tool_registry=ToolRegistry(),
    )
    await cron.start()
    for name, minutes in (("dream", 120), ("heartbeat", 30)):  # as its gateway does when it starts
        cron.register_system_job(
            CronJob(
                id=name,
                name=name,
                schedule=CronSchedule(kind="every", every_ms=minutes * 60_000),
                payload=CronPayload(kind="system_event"),
            )
        )
    running = asyncio.create_task(loop.run())

    async def say(text, user=ANN, chat=None, topic=None, channel="telegram"):
        number, name = user
        told = {
            "message_id": 41,
            "user_id": number,
            "username": name,
            "first_name": name.title(),
            "is_group": chat is not None,
            "message_thread_id": topic,
            "is_forum": topic is not None,
            "reply_to_message_id": None,
        }
        message = InboundMessage(
            channel=channel,
            sender_id=f"{number}|{name}" if channel == "telegram" else "user",
            chat_id=str(chat or number) if channel == "telegram" else "direct",
            content=text,
            metadata=told if channel == "telegram" else {},
            session_key_override=f"telegram:{chat}:topic:{topic}" if topic else None,
        )
        await bus.publish_inbound(message)
        while True:  # an answer is what comes without an event, the rest is progress
            answer = await asyncio.wait_for(bus.consume_outbound(), 30)
            if not isinstance(answer.event, AgentEvent):
                break
        await asyncio.sleep(0.5)

    await say("hello")
    await say("Please remind me of the bins.")
    await say("I have two cats, Ada and Grace; write that down.")
    await say("who is cooking?", user=BOB, chat=-1001234567890, topic=7)
    await say("hello", chat=-1001234567890, topic=7)
    await say("Please make a shopping list.", channel="cli")
    await say("/new", channel="cli")
    await asyncio.sleep(1)
    await say("what is on the list?", channel="cli")
    code = pairing.generate_code("telegram", f"{BOB[0]}|{BOB[1]}")
    pairing.approve_code(code)
    pairing.generate_code("telegram", "555000111|eve")
    cron.stop()
    loop.stop()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await loop.aclose()


asyncio.run(talk())
