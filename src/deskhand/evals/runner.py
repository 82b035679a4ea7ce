"""Replays turns of the conversations of this home, with what is to be tried on them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from ..agent.profile import Agent
from ..assembly.host import Host
from ..assembly.overrides import Tried
from ..models.base import Model, Reply, Request
from ..models.pictures import PictureStore
from ..models.side_completion import Billing, call_billed
from ..secrets.inbound_redaction import redact_event
from ..skills.skill import FILE_NAME, Skill, Skills, SkillSource, read_skill
from ..tools.define import decoded
from ..types.budget import Budgets, Charge, no_budget
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, ToolError
from ..types.messages import ToolCall
from .recordings import Recording, make_call_key, select_recording, split_recordings
from .replay import REPLAY_STEPS, REPLAY_TOKENS, Replayed, Trial, replay_recording


class ReplayOptions(msgspec.Struct, frozen=True):
    """What to try on a turn: another `model`, another text in place of SYSTEM.md, the skills in
    this folder. `steps` and `tokens` are what the replay may use of models."""

    model: str = ""
    system: str = ""
    skills: Path | None = None
    steps: int = REPLAY_STEPS
    tokens: int = REPLAY_TOKENS


class Replaying(msgspec.Struct, frozen=True):
    """Replays with what a running Deskhand has: its log, its agents, its models. `trying` gives an
    agent with what is tried on it, `model` opens `provider/name`, `driving` gives an agent as it is
    in a conversation. What models are asked for real is held and settled in `budgets`."""

    ground: Host
    make_tried_agent: Callable[[str, Tried], Agent]
    open_model: Callable[[str], Model]
    budgets: Budgets = no_budget
    adapt_agent: Callable[[str, Agent], Agent] = lambda session, agent: agent

    async def load_recording(self, session: str, number: int = 0) -> Recording:
        """That turn of a conversation; 0 is the last. Raises Refused."""
        return select_recording(session, await self.ground.store.events(session), number)

    async def load_recording_at(self, session: str, n: int) -> Recording:
        """The turn that this event opened. Raises Refused."""
        for each in split_recordings(session, await self.ground.store.events(session)):
            if each.tape[0].n == n:
                return each
        raise Refused(f"no turn began with event {n}; it may have been erased")

    def models(self, session: str) -> tuple[str, ...]:
        """The models of the agent of a conversation, the first one first; ('',) where none is
        chosen."""
        return self.ground.agent_of(session).models or ("",)

    async def run(self, recorded: Recording, wanted: ReplayOptions | None = None) -> Replayed:
        """Replay it, as it was where nothing is to be tried. Raises ConfigError for what cannot
        be."""
        wanted = wanted or ReplayOptions()
        ground = self.ground
        agent = self.adapt_agent(recorded.session, ground.agent_of(recorded.session))
        other: Agent | None = None
        served = dict[str, Skill]()
        if wanted.system or wanted.skills is not None:
            other = self.adapt_agent(
                recorded.session,
                self.make_tried_agent(agent.name, Tried(wanted.system, wanted.skills)),
            )
            served = (
                Skills((SkillSource("tried", wanted.skills, links=True),)).find()
                if wanted.skills
                else {}
            )

        def serve(call: ToolCall) -> str | None:
            return _serve_skill(call, served)

        trial = Trial(
            agent,
            partial(self.ask, agent.name),
            self.open_model,
            other,
            wanted.model,
            serve,
            lambda event: redact_event(event, ground.redact),
            wanted.steps,
            wanted.tokens,
        )
        return await replay_recording(recorded, trial)

    async def ask(self, agent: str, model: str, request: Request) -> Reply:
        """One call of a model, which this agent pays. Raises ModelError."""
        ground = self.ground
        rows = list[Change]()
        request = replace(request, blob=PictureStore(ground.blobs.get, ground.blobs.path).get)
        billing = Billing(
            self.budgets,
            Charge("", "", agent),
            ids=ground.ids,
            kind="replay",
            record=rows.extend,
        )
        try:
            return await call_billed(model, request, billing, self.open_model)
        finally:
            if rows:
                with anyio.CancelScope(shield=True):
                    await ground.store.change(rows)


def _serve_skill(call: ToolCall, skills: dict[str, Skill]) -> str | None:
    """What of the skills that are tried this call would read; None for all other calls."""
    name, _ = make_call_key(call)
    if name != "read_skill":
        return None
    try:
        given = msgspec.convert(decoded(make_call_key(call)[1].encode()), dict[str, str])
        return read_skill(skills[given["skill"]], given.get("path", ""))
    except (ValueError, KeyError):
        return None
    except ToolError as error:
        return str(error)


@contextmanager
def open_isolated_skill(folder: Path) -> Iterator[Path]:
    """A folder in which this skill lies alone. Raises ConfigError where it is none."""
    if not (folder / FILE_NAME).is_file():
        raise ConfigError(f"{str(folder)!r} is no skill: there is no {FILE_NAME} in it")
    with tempfile.TemporaryDirectory(prefix="deskhand-tried-") as alone:
        (Path(alone) / folder.resolve().name).symlink_to(folder.resolve())
        yield Path(alone)
