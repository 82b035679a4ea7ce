"""Makes a home of openagent-core by running it: its service over HTTP and WebSocket, its database
and workspace."""

import asyncio
import json
import logging
import os
from pathlib import Path

HERE = Path.cwd()
PORT = int(os.environ["OWN_PORT"])
os.environ.update(
    LLM_PROVIDER="openai", OPENAI_API_KEY="none", OPENAI_BASE_URL=os.environ["MODEL_URL"], MODEL="gpt-4o",  # noqa: E501
    WORKSPACE_DIR=str(HERE / "workspace"), DATABASE_URL="sqlite+aiosqlite:///./agent.db",
    SKILLS_DIR=str(HERE / "skills"),
)  # fmt: skip

import agent_service.main as service
import httpx
import uvicorn
import websockets

logging.disable(logging.WARNING)


async def talk():
    (HERE / "workspace").mkdir(exist_ok=True)
    (HERE / "workspace" / "a.txt").write_text("hello file\n")
    (HERE / "skills" / "price-list").mkdir(parents=True, exist_ok=True)
    (HERE / "skills" / "price-list" / "SKILL.md").write_text(
        "---\nname: price-list\ndescription: How prices are written in the shop.\n---\n\nIn "
        "cents, as whole numbers.\n"
    )
    server = uvicorn.Server(
        uvicorn.Config(service.app, host="127.0.0.1", port=PORT, log_level="error")
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", trust_env=False) as http:
        for texts in (["please plan the shop", "now read a.txt"], ["hello"]):
            made = (await http.post("/api/chat", json={"preset": "coding"})).json()[
                "conversation_id"
            ]
            address = f"ws://127.0.0.1:{PORT}/api/chat/{made}/ws"
            async with websockets.connect(address, max_size=None, proxy=None) as socket:
                for text in texts:
                    await socket.send(json.dumps({"type": "message", "content": text}))
                    while (event := json.loads(await socket.recv()))["type"] != "done":
                        if event["type"] == "error":
                            raise RuntimeError(event)
    for _ in range(100):  # the memory is written after the connection has ended
        if (HERE / "workspace" / ".agent" / "memory.md").exists():
            break
        await asyncio.sleep(0.1)
    server.should_exit = True
    await serving


asyncio.run(talk())
