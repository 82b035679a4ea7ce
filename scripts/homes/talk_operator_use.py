"""Makes a home of operator-use by running it: its orchestrator, bus, agent, sessions and crons, and
no platform."""

import asyncio
import logging
import os

from operator_use.agent import Agent
from operator_use.bus import IncomingMessage
from operator_use.bus.service import Bus
from operator_use.bus.views import StreamPhase, TextPart
from operator_use.cli.start import (
    _build_router,
    _make_llm,
    _resolve_agent_workspace,
    copy_templates_to_workspace,
)
from operator_use.config import load_config
from operator_use.crons import Cron
from operator_use.orchestrator.service import Orchestrator
from operator_use.paths import get_userdata_dir

logging.disable(logging.WARNING)
HOME = get_userdata_dir()
OWN = {
    "AGENTS.md": "Ask before you send anything.\n",
    "CODE.md": "Python.\n",
    "HEARTBEAT.md": "- Look whether the feed has news.\n",
    "SOUL.md": "You are calm.\n",
    "USER.md": "Ann likes tea.\n",
    "memory/MEMORY.md": "# Long-term Memory\n",
}
SKILL = (
    "---\nname: feed-look\ndescription: How to look at the feed.\n---\n\nOpen the feed and read "
    "the newest three.\n"
)


async def talk():
    config = load_config(HOME)
    bus, cron, agents, waits = Bus(), Cron(store_path=HOME / "crons.json"), {}, {}
    for defined in config.agents.list:
        workspace = _resolve_agent_workspace(defined)
        for name, text in OWN.items():  # its templates do not come over what is there
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(text)
        copy_templates_to_workspace(HOME, workspace=workspace)
        llm = _make_llm(config, defined.llm_config)
        agents[defined.id] = Agent(
            llm=llm, workspace=workspace, bus=bus, cron=cron, max_iterations=40
        )
    own = HOME / "workspaces" / "operator"
    (own / "skills" / "feed-look").mkdir(parents=True, exist_ok=True)
    (own / "skills" / "feed-look" / "SKILL.md").write_text(SKILL)
    (own / "memory" / "2026-01-02").mkdir(parents=True, exist_ok=True)
    (own / "memory" / "2026-01-02" / "summary.md").write_text("The feed was set up.\n")
    router = Orchestrator(bus=bus, agents=agents, streaming=True, router=_build_router(config))

    async def hear():
        while True:
            message = await bus.consume_outgoing()
            if message.sent_id_future is not None and not message.sent_id_future.done():
                message.sent_id_future.set_result(900 + len(waits))
            done = message.stream_phase in (None, StreamPhase.DONE)
            if done and message.chat_id in waits and not waits[message.chat_id].done():
                waits[message.chat_id].set_result(None)

    async def say(channel, chat, text, account, user="4711"):
        waits[chat] = asyncio.get_running_loop().create_future()
        told = {"user_id": user, "message_id": 40 + len(waits)}
        await bus.publish_incoming(
            IncomingMessage(
                parts=[TextPart(content=text)],
                user_id=user,
                channel=channel,
                chat_id=chat,
                account_id=account,
                metadata=told,
            )
        )
        await asyncio.wait_for(waits[chat], 30)
        await asyncio.sleep(0.3)

    tasks = [asyncio.create_task(router.ainvoke()), asyncio.create_task(hear())]
    await say("telegram", "4711", "hello", "operator")
    await say("telegram", "4711", "what lies in your folder?", "operator")
    await say("telegram", "4711", "Please remind me of the bins.", "operator")
    await say("telegram", "4711", "I have two cats, Ada and Grace; write that down.", "operator")
    await say("telegram", "-100200", "hello", "operator", user="4712")
    await say("discord", "9001", "hello", "scout")
    for task in tasks:
        task.cancel()


os.environ.setdefault("OPENAI_API_KEY", "none")
asyncio.run(talk())
