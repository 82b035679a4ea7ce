"""Replays turns of the conversations of this home, to try a model, a prompt or skills on them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from ..agent.agent import Agent
from ..assembly.host import Host
from ..assembly.overrides import Tried
from ..models.base import Model, Reply, Request
from ..models.pictures import PictureStore
from ..models.side_completion import Billing, call_billed
from ..secrets.inbound_redaction import redact_event
from ..skills.skill import FILE_NAME, Skill, Skills, SkillSource, read_skill
from ..tools.define import decode_json
from ..types.budget import Budgets, Charge, no_budget
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, ToolError
from ..types.events import AnyEvent
from ..types.messages import ToolCall
from .recordings import Recording, make_call_key, select_recording, split_recordings
from .replay import (
    REPLAY_STEPS,
    REPLAY_TOKENS,
    Replayed,
    ReplayHost,
    Trial,
    replay_recording,
)


class ReplayOptions(msgspec.Struct, frozen=True):
    """What to try on a turn: another `model`, another text in place of SYSTEM.md, or the skills of
    a folder. `steps` and `tokens` limit what models are really asked."""

    model: str = ""
    system: str = ""
    skills: Path | None = None
    steps: int = REPLAY_STEPS
    tokens: int = REPLAY_TOKENS


class Replayer:
    """Replays turns with the log, the agents and the models of a running Deskhand.

    `make_tried_agent` returns an agent with what is tried on it, `open_model` opens
    `provider/name`, `adapt_agent` returns an agent as it is in a session. Real calls of models are
    charged to `budgets`.
    """

    def __init__(
        self,
        ground: Host,
        make_tried_agent: Callable[[str, Tried], Agent],
        open_model: Callable[[str], Model],
        budgets: Budgets = no_budget,
        adapt_agent: Callable[[str, Agent], Agent] = lambda session, agent: agent,
    ) -> None:
        self.ground = ground
        self.make_tried_agent = make_tried_agent
        self.open_model = open_model
        self.budgets = budgets
        self.adapt_agent = adapt_agent

    async def load_recording(self, session: str, number: int = 0) -> Recording:
        """The turn of a session with this number; 0 is the last. Raises Refused."""
        return select_recording(session, await self.ground.store.events(session), number)

    async def load_recording_at(self, session: str, n: int) -> Recording:
        """The turn that event `n` opened. Raises Refused."""
        for each in split_recordings(session, await self.ground.store.events(session)):
            if each.tape[0].n == n:
                return each
        raise Refused(f"no turn began with event {n}: it may have been erased")

    def models(self, session: str) -> tuple[str, ...]:
        """The models of the agent of this session, in order; ('',) when it has none."""
        return self.ground.agent_of(session).models or ("",)

    async def run(self, recorded: Recording, wanted: ReplayOptions | None = None) -> Replayed:
        """Replay a turn, with nothing changed when nothing is to be tried. Raises ConfigError when
        what is to be tried cannot be used."""
        wanted = wanted or ReplayOptions()
        session = recorded.session
        agent = self.adapt_agent(session, self.ground.agent_of(session))
        other: Agent | None = None
        skills: dict[str, Skill] = {}
        if wanted.system or wanted.skills is not None:
            tried = self.make_tried_agent(agent.name, Tried(wanted.system, wanted.skills))
            other = self.adapt_agent(session, tried)
        if wanted.skills:
            skills = Skills((SkillSource("tried", wanted.skills, links=True),)).find()
        trial = Trial(
            agent=agent,
            host=LiveHost(self, agent.name, skills),
            other=other,
            model=wanted.model,
            steps=wanted.steps,
            tokens=wanted.tokens,
        )
        return await replay_recording(recorded, trial)

    async def ask(self, agent: str, model: str, request: Request) -> Reply:
        """One real call of a model, charged to this agent. Raises ModelError."""
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


class LiveHost:
    """Answers one replay with a running Deskhand. Implements `replay.ReplayHost`."""

    def __init__(self, replayer: Replayer, agent: str, skills: dict[str, Skill]) -> None:
        self._replayer = replayer
        self._agent = agent
        self._skills = skills

    def open_model(self, model: str) -> Model:
        return self._replayer.open_model(model)

    async def ask(self, model: str, request: Request) -> Reply:
        return await self._replayer.ask(self._agent, model, request)

    def serve(self, call: ToolCall) -> str | None:
        return _serve_skill(call, self._skills)

    def redact(self, event: AnyEvent) -> AnyEvent:
        return redact_event(event, self._replayer.ground.redact)


def _serve_skill(call: ToolCall, skills: dict[str, Skill]) -> str | None:
    """What a call reads of these skills; None when it reads none of them."""
    name, arguments = make_call_key(call)
    if name != "read_skill":
        return None
    try:
        given = msgspec.convert(decode_json(arguments.encode()), dict[str, str])
        return read_skill(skills[given["skill"]], given.get("path", ""))
    except (ValueError, KeyError):
        return None
    except ToolError as error:
        return str(error)


@contextmanager
def open_isolated_skill(folder: Path) -> Iterator[Path]:
    """A temporary folder that holds only this skill. Raises ConfigError when `folder` is not a
    skill."""
    if not (folder / FILE_NAME).is_file():
        raise ConfigError(f"{str(folder)!r} is not a skill: it has no {FILE_NAME}")
    with tempfile.TemporaryDirectory(prefix="deskhand-tried-") as alone:
        (Path(alone) / folder.resolve().name).symlink_to(folder.resolve())
        yield Path(alone)


_host: type[ReplayHost] = LiveHost
