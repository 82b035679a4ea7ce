"""Makes a home of agent_computer by running it, in a copy of its repository: sessions, tasks,
reflection, memory."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

CRONS = [
    {"id": "daily-check", "name": "Daily status check", "schedule": "daily 09:00", "prompt": "Look at the disks.",  # noqa: E501
     "session_id": "cron-daily-check", "enabled": True},
    {"id": "tidy", "name": "Tidy up", "schedule": "every 2h", "prompt": "Tidy the workspace.", "enabled": False},  # noqa: E501
]  # fmt: skip
config = json.loads(Path("config.json").read_text())
config["agent"]["model"].update(
    provider="openrouter", model_id="scripted", base_url=os.environ["MODEL_URL"]
)
config["agent"]["tools"]["require_approval"] = []
config["memory"].update(embedding_base_url=os.environ["MODEL_URL"], embedding_model="scripted")
config["openrouter_api_key"] = "none"
Path("config.json").write_text(json.dumps(config, indent=2))
workspace = Path("workspace")
workspace.mkdir(exist_ok=True)
(workspace / "SOUL.md").write_text("You are careful.\n")
(workspace / "USER.md").write_text("Ann likes lists.\n")
(workspace / "cron.json").write_text(json.dumps(CRONS, indent=2))
sys.path.insert(0, ".")

import gateway

logging.disable(logging.WARNING)


async def say(session, text):
    async with session.lock:
        async for event in gateway.agent.run(session, text):
            if event.type == "error":
                raise RuntimeError(event.data)


async def talk():
    main = gateway.session_mgr.get_or_create("main")
    await say(main, "hello")
    await say(main, "list your workspace")
    deep = gateway.session_mgr.get_or_create("bread")
    deep.set_mode("deep_work")
    await say(deep, "research bread")
    for each in (main, deep):
        each.flush()
    gateway.server_ready.set()
    await gateway._run_reflection()


asyncio.run(talk())
