"""Records what openagent-core answers: `python scripts/record_openagent.py ENVIRONMENT [OUT]`.

ENVIRONMENT is a folder with a virtual environment that has openagent-core; it is made where it is
missing. The server runs on loopback against a scripted model. The recording holds what was sent,
status codes, keys and JSON types: no text of the server. `tests/web/test_recorded_openagent.py`
plays it against us.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from tests.web.recorded.openagent import CASES, LITERALS, THINKING, OpenAgentPlayer, Step

VERSION = "0.1.1"
OUT = ROOT / "tests" / "web" / "recorded" / "openagent.json"
START_S = 60.0


def install(environment: Path) -> Path:
    """The Python of the environment, with openagent-core in it."""
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"openagent-core=={VERSION}"], check=True
        )
    return python


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@asynccontextmanager
async def served(python: Path, folder: Path, model_url: str, provider: str) -> AsyncIterator[str]:
    """The real server, in a folder of its own. Yields its address."""
    workspace = folder / "ws"
    workspace.mkdir(parents=True)
    (folder / "skills").mkdir()
    port = free_port()
    anthropic_url = model_url.removesuffix("/v1")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LLM_PROVIDER": provider,
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": anthropic_url,
        "MODEL": "fake-model",
        "WORKSPACE_DIR": str(workspace),
        "SKILLS_DIR": str(folder / "skills"),
        "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/agent.db",
        "ENABLE_MEMORY": "false",
        "LLM_MAX_RETRIES": "0",
    }
    command = [
        str(python),
        "-m",
        "uvicorn",
        "agent_service.main:app",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    log = (folder / "server.log").open("wb")
    server = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=log, stderr=log
    )
    try:
        url = f"http://127.0.0.1:{port}"
        await _started(url)
        yield url
    finally:
        server.terminate()
        await server.wait()
        log.close()


async def _started(url: str) -> None:
    until = time.monotonic() + START_S
    async with aiohttp.ClientSession() as http:
        while time.monotonic() < until:
            try:
                async with http.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
    raise TimeoutError("openagent-core did not start")


def behaviour(reply: Step) -> Behaviour:
    """The reply for the fake model server, once."""
    if reply.get("fails"):
        return Behaviour(times=1, status=401, error='{"error": {"message": "no", "type": "error"}}')
    calls = tuple(FakeCall(call["name"], json.dumps(call["arguments"])) for call in reply["calls"])
    slow = bool(reply.get("slow"))
    return Behaviour(
        times=1,
        text=reply["text"],
        calls=calls,
        chunks=80 if slow else 2,
        gap_s=0.05 if slow else 0.0,
        thinking=reply.get("thinking", ""),
    )


async def record(python: Path) -> dict[str, Any]:
    """The recording, whole."""
    cases: dict[str, list[Step]] = {}
    async with FakeLLM() as model, aiohttp.ClientSession() as http:
        for provider in ("openai", "anthropic"):
            wanted = [name for name in CASES if (name in THINKING) == (provider == "anthropic")]
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / "run"
                async with served(python, folder, model.url, provider) as url:

                    def script(replies: list[Step]) -> None:
                        model.script(*map(behaviour, replies))

                    player = OpenAgentPlayer(http, url, {}, script, folder / "ws")
                    for case in wanted:
                        cases[case] = await player.play(CASES[case])
    ordered = {name: cases[name] for name in CASES}
    return {"system": "openagent-core", "version": VERSION, "literals": LITERALS, "cases": ordered}


def main() -> None:
    environment = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else OUT
    recording = asyncio.run(record(install(environment)))
    out.write_text(json.dumps(recording, indent=1) + "\n")
    print(f"{out}: {len(recording['cases'])} cases")


if __name__ == "__main__":
    main()
