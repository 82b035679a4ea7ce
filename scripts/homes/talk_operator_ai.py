"""Makes a home of operator-ai by running it: its dispatcher, store, tools and memory, without
Slack.

OPERATOR_HOME is $HOME/.operator; the operator.yaml there is the one beside the fixtures.
"""

import asyncio
import logging
import os
import sys

os.environ.update(
    OPENAI_API_KEY="none",
    OPENAI_BASE_URL=os.environ["MODEL_URL"],
    OPENAI_API_BASE=os.environ["MODEL_URL"],
)
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from operator_ai import main
from operator_ai.config import OPERATOR_DIR, load_config
from operator_ai.memory import MemoryStore
from operator_ai.skills import install_bundled_skills
from operator_ai.store import JobState, get_store
from operator_ai.transport.base import IncomingMessage, MessageContext, Transport

logging.disable(logging.WARNING)


class Room(Transport):
    """As the Slack transport names things, without Slack."""

    platform = "slack"

    def __init__(self, agent):
        self.name = self.agent_name = agent
        self.sent = 0

    async def start(self, on_message):
        pass

    async def stop(self):
        pass

    async def send(self, channel_id, text, thread_id=None):
        self.sent += 1
        return f"1760000500.{self.sent:06d}"

    async def resolve_context(self, msg):
        return MessageContext(
            "slack", msg.channel_id, "direct" if msg.is_private else "garden", msg.user_id, "Ann"
        )


async def talk():
    config = load_config()
    (OPERATOR_DIR / "skills").mkdir(parents=True, exist_ok=True)
    install_bundled_skills(OPERATOR_DIR / "skills")
    for agent, text in (
        ("hermes", "You are Hermes. Be brief."),
        ("scout", "You are Scout. Look things up."),
    ):
        folder = OPERATOR_DIR / "agents" / agent
        (folder / "workspace").mkdir(parents=True, exist_ok=True)
        (folder / "AGENT.md").write_text(
            f"---\nname: {agent}\ndescription: {agent} of the fixtures\n---\n\n{text}\n"
        )
    (OPERATOR_DIR / "agents/hermes/workspace/notes.md").write_text("Buy twine.\n")
    (OPERATOR_DIR / "SYSTEM.md").write_text("Be kind.\n")
    store = get_store(embed_dimensions=2)
    for name, identity, role in (("ann", "slack:U100", "admin"), ("ben.k", "slack:U200", "garden")):
        store.add_user(name)
        store.add_identity(name, identity)
        store.add_role(name, role)
    store.add_identity("ann", "telegram:4711")
    dispatcher = main.Dispatcher(
        config, store, main.RuntimeManager(), memory_store=MemoryStore(store, config.memory)
    )
    for agent in config.agents:
        dispatcher.register_transport(Room(agent))
    number = 0

    async def say(agent, channel, thread, text, user="slack:U100", private=True):
        nonlocal number
        number += 1
        message = f"17600001{number:02d}.000100"
        await dispatcher.handle_message(
            IncomingMessage(
                text, user, channel, message, thread or message, agent, is_private=private
            )
        )
        return thread or message

    garden = await say(
        "hermes",
        "D100",
        None,
        (
            "When do I water the tomatoes? On Tuesdays and Fridays: please water the tomatoes "
            "into your memory."
        ),
    )
    await say("hermes", "D100", garden, "Tell me of the weather every morning.")
    await say("hermes", "C300", None, "which printer is ours?", user="slack:U200", private=False)
    await say("hermes", "D100", None, "what is in the workspace")
    await say("scout", "D101", None, "hello")
    store.save_job_state(
        "morning-weather", JobState("2026-01-02T06:30:00Z", "success", 2.5, "", 12, 1, 3, 2)
    )
    if sys.argv[1:] == ["candidate"]:
        await dispatcher.memory_store.save(
            "Ann may travel in May.", "user", "ann", retention="candidate"
        )
    store.kv_set("hermes", "station", "roof-2")
    store.kv_set("hermes", "tomatoes", '{"days": ["tue", "fri"]}', ns="garden")
    store.kv_set("scout", "seen", "42", ns="feed", ttl_hours=24 * 3650)
    for pragma in ("journal_mode=DELETE", "page_size=1024"):
        store._conn.execute(f"PRAGMA {pragma}")
    store._conn.execute("VACUUM")  # smaller pages, else as it was written
    store._conn.execute("PRAGMA journal_mode=WAL")
    store._conn.close()


asyncio.run(talk())
