"""What would be taken over from a home, and what has been before: decided before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ...memory.settings import MemoryConfig
from ...policy.roles import NOBODY, RoleConfig
from ...store.base import Store
from ...types.identity import Address, session_key
from ...types.people import OWNER_NAME, ROLE_SCOPES
from ..config import Settings
from ..datafile import read_env_file
from ..toolbox import skills_of
from ..transcript import Line
from .found import AgentFound, Folder, Found, JobFound, Left, Memory, Person, Talk, Tasks, Value
from .skills import called, wrong_in

BEGUN = "begun"
"""The mark of what was begun and is not done."""
MARKED = 3
"""So many lines at the end of what was taken say where to go on."""


class Moved(msgspec.Struct, frozen=True):
    """What was taken before, and what it is called here."""

    here: str
    lines: int = 0
    mark: str = ""


class NewPerson(msgspec.Struct, frozen=True):
    """A user who comes in, under this name and with these roles; without roles they are there already."""

    person: Person
    here: str
    roles: tuple[str, ...] = ()


class NewTalk(msgspec.Struct, frozen=True):
    """A conversation, or what is new in it: its lines from `first` on, in this session."""

    talk: Talk
    key: str
    session: str
    place: Address
    first: int = 0


class Plan(msgspec.Struct, frozen=True):
    """All of it. `agents` and `people` are their names there -> here. `sessions` the conversations by theirs.
    `channels` are those that there will be. `secrets` go to `.env`. `known` counts what was taken before."""

    found: Found
    agents: Mapping[str, str]
    people: Mapping[str, str]
    new_agents: tuple[AgentFound, ...] = ()
    keys: tuple[tuple[tuple[str, ...], Any], ...] = ()
    new_people: tuple[NewPerson, ...] = ()
    talks: tuple[NewTalk, ...] = ()
    memories: tuple[Memory, ...] = ()
    values: tuple[Value, ...] = ()
    jobs: tuple[JobFound, ...] = ()
    skills: tuple[Folder, ...] = ()
    tasks: tuple[Tasks, ...] = ()
    left: tuple[Left, ...] = ()
    sessions: Mapping[str, str] = {}
    channels: tuple[str, ...] = ()
    secrets: Mapping[str, str] = {}
    known: int = 0

    def counts(self) -> list[tuple[int, str]]:
        """How many of each are new, with its name."""
        every = (
            (len(self.new_agents), "agent"),
            (len(self.new_people), "user"),
            (len(self.talks), "conversation"),
            (len(self.jobs), "job"),
            (len(self.memories), "memory"),
            (len(self.values), "key-value"),
            (len(self.skills), "skill"),
            (sum(len(each.tasks) for each in self.tasks), "task"),
        )
        return [(number, name) for number, name in every if number]


Ledger = Mapping[tuple[str, str], Moved]
"""(kind, key) -> what was taken."""


async def ledger_of(store: Store, system: str) -> Ledger:
    """What was taken from this system before."""
    rows = await store.rows("moved_all", (system,))
    return {(kind, key): Moved(here, lines, mark) for kind, key, here, lines, mark in rows}


async def plan(found: Found, settings: Settings, store: Store, me: str = "") -> Plan:
    """What is new in this home. `me` is the user there who is the owner here."""
    known = await ledger_of(store, found.system)
    left = list(found.left)
    agents = {each.name: agent_name(each.name) for each in found.agents}
    here = {str(row[0]) for row in await store.rows("user_role_all", ())}
    people, new_people = _people(found, settings, known, (me, here), left)
    talks, sessions = await _talks(found, agents, known, store, left)
    memories = _new("fact", found.memories, fact_key, known)
    values = _new("value", found.values, value_key, known)
    jobs = _jobs(found, settings, known, left)
    skills = _skills(found, settings, agents, known, left)
    tasks = tuple(each for each in found.tasks if ("tasks", tasks_key(each)) not in known)
    new_agents = tuple(each for each in found.agents if ("agent", each.name) not in known)
    done = [moved for moved in known.values() if moved.mark != BEGUN]
    secrets = _secrets(found, settings, left)
    return Plan(
        found,
        agents,
        people,
        new_agents,
        tuple(_keys(found, settings, agents, {each.name for each in new_agents}, left)),
        new_people,
        talks,
        memories,
        values,
        jobs,
        skills,
        tasks,
        tuple(left),
        sessions,
        (*settings.config.channels, *found.config.get("channels", {})),
        secrets,
        len(done),
    )


def agent_name(theirs: str) -> str:
    """What an agent is called here."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", theirs.lower()).strip("-_")[:40]
    return plain if plain and plain[0].isalpha() and plain not in ("list", "defaults") else f"agent-{plain or 'one'}"


def digest(*parts: str) -> str:
    """A short name for these texts."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def fact_key(memory: Memory) -> str:
    return digest(memory.scope, memory.owner, " ".join(memory.text.split()))


def value_key(value: Value) -> str:
    return digest(value.agent, value.namespace, value.key)


def tasks_key(tasks: Tasks) -> str:
    return digest(tasks.talk, *sorted(task.title for task in tasks.tasks))


def talk_key(talk: Talk) -> str:
    """The same for the same conversation wherever its home lies: by its name there and how it began."""
    return digest(talk.agent, talk.key, _said(talk.lines[0]))


def mark_of(lines: Sequence[Line]) -> str:
    """Says which lines the last of these are."""
    return digest(*(_said(line) for line in lines[-MARKED:]))


def _said(line: Line) -> str:
    return f"{line.role} {line.timestamp} {line.content!r} {line.tool_calls!r}"


def taken_up_to(lines: Sequence[Line], moved: Moved) -> int | None:
    """How many of the lines were taken before: they may have been shortened at their beginning since. None where what
    was taken is not there any more."""
    likely = [moved.lines, *range(len(lines), 0, -1)]
    return next((n for n in likely if 0 < n <= len(lines) and mark_of(lines[:n]) == moved.mark), None)


def _new(kind: str, given: Sequence[Any], key: Any, known: Ledger) -> tuple[Any, ...]:
    once = {key(each): each for each in given}
    return tuple(each for name, each in once.items() if (kind, name) not in known)


def _people(
    found: Found, settings: Settings, known: Ledger, among: tuple[str, set[str]], left: list[Left]
) -> tuple[dict[str, str], tuple[NewPerson, ...]]:
    me, taken = among
    people: dict[str, str] = {}
    new: list[NewPerson] = []
    theirs = _roles(found, settings, {each.name: agent_name(each.name) for each in found.agents})
    for person in found.people:
        moved = known.get(("user", person.name))
        if moved is not None and moved.mark != BEGUN:
            people[person.name] = moved.here
            continue
        here = moved.here if moved else OWNER_NAME if me == person.name else _user_name(person.name, taken)
        people[person.name] = here
        taken.add(here)
        roles = tuple(role for role in person.roles if role in theirs) or ("member",)
        if here != OWNER_NAME:
            known_here = {*settings.config.roles, *ROLE_SCOPES} - {"member", *theirs}
            why = "a file gives nobody a role that is here already"
            left += [Left(f"that {person.name} is {role}", why) for role in person.roles if role in known_here]
            if person.owner:
                left.append(Left(f"that {person.name} may do everything", f"if that is you, say: --me {person.name}"))
        new.append(NewPerson(person, here, () if here == OWNER_NAME else roles))
    return people, tuple(new)


def _roles(found: Found, settings: Settings, agents: Mapping[str, str]) -> set[str]:
    """The roles that come in with this home, or did before: none that means something here already."""
    ours = settings.config.roles
    return {
        name
        for name, value in found.config.get("roles", {}).items()
        if name not in ROLE_SCOPES
        and (name not in ours or ours[name] == msgspec.convert(_renamed(value, agents), RoleConfig))
    }


def _user_name(name: str, taken: Collection[str]) -> str:
    """A name that is nobody's here: whoever is called the same there need not be the same."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip(".-")[:60] or "somebody"
    every = (plain if n == 1 else f"{plain}-{n}" for n in range(1, len(taken) + len(NOBODY) + 3))
    return next(one for one in every if one not in taken and one not in NOBODY and one != OWNER_NAME)


async def _talks(
    found: Found, agents: Mapping[str, str], known: Ledger, store: Store, left: list[Left]
) -> tuple[tuple[NewTalk, ...], dict[str, str]]:
    """What is new of conversations, and the session of each by its key there."""
    new: list[NewTalk] = []
    sessions: dict[str, str] = {}
    going_on = {each.session for each in await store.open_sessions()}
    first = next(iter(agents.values()), "default")
    for talk in found.talks:
        key = talk_key(talk)
        moved = known.get(("talk", key))
        agent = agents.get(talk.agent) or (agent_name(talk.agent) if talk.agent else first)
        place = talk.place or _past(found, talk, key)
        session = moved.here if moved else session_key(agent, place)
        if moved is None and talk.place and (session in sessions.values() or await store.events(session, 0, 1)):
            left.append(Left(f"the place of {talk.key}", "that chat goes on here already; its past stands beside it"))
            place = _past(found, talk, key)
            session = session_key(agent, place)
        sessions[talk.key] = session
        upto = taken_up_to(talk.lines, moved) if moved and moved.lines else 0
        if upto is None:
            left.append(Left(f"changes in {talk.key}", "it was written anew since it was taken; what was taken stays"))
        elif upto < len(talk.lines) and session in going_on:
            left.append(Left(f"what is new in {talk.key}", "something is going on in it here; try again later"))
        elif upto < len(talk.lines):
            if session.partition("/")[2].startswith("terminal:") and moved:
                place = Address("terminal", chat=session.partition(":")[2], group=talk.group)
            new.append(NewTalk(talk, key, session, place, upto))
    return tuple(new), sessions


def _past(found: Found, talk: Talk, key: str) -> Address:
    """Where a conversation lies that no channel leads to: the terminal and the page can go on with it."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", talk.key).strip("-")[:40]
    return Address("terminal", chat=f"{found.system}-{plain or 'talk'}-{key[:6]}", group=talk.group)


def _jobs(found: Found, settings: Settings, known: Ledger, left: list[Left]) -> tuple[JobFound, ...]:
    new = []
    for each in found.jobs:
        moved = known.get(("job", each.job.name))
        if moved is not None and moved.mark != BEGUN:
            continue
        if moved is None and (settings.home.root / "jobs" / each.job.name).exists():
            left.append(Left(f"job {each.job.name}", "there is a job of that name already"))
            continue
        new.append(each)
    return tuple(new)


def _skills(
    found: Found, settings: Settings, agents: Mapping[str, str], known: Ledger, left: list[Left]
) -> tuple[Folder, ...]:
    new = []
    taken = {name for agent in settings.agents for name in skills_of(settings, agent).find()}
    for each in found.skills:
        moved = known.get(("skill", each.name))
        if moved is not None and moved.mark != BEGUN:
            continue
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", each.name):
            left.append(Left(f"skill {each.name}", "that cannot be the name of a skill: use a-z, 0-9 and -"))
        elif moved is None and skill_path(each, settings, agents).exists():
            left.append(Left(f"skill {each.name}", "there is a skill of that name already"))
        elif (name := called(each)) in taken and moved is None:
            itself = f"it calls itself {name}, and " if name != each.name else ""
            left.append(Left(f"skill {each.name}", f"{itself}there is a skill of that name already"))
        elif why := wrong_in(each):
            left.append(Left(f"skill {each.name}", why))
        else:
            taken.add(name)
            new.append(each)
    return tuple(new)


def skill_path(skill: Folder, settings: Settings, agents: Mapping[str, str]) -> Path:
    """Where a skill lies here: its folder, or the file that is a tool of one agent."""
    if not skill.agent:
        return settings.skills_folder / skill.name
    return settings.home.workspace(agents[skill.agent]) / "memory" / "skills" / f"{skill.name}.py"


def _secrets(found: Found, settings: Settings, left: list[Left]) -> dict[str, str]:
    """The keys that are not here yet. What only this process was started with is not: the service has none of it."""
    theirs = {name: value for name, value in found.secrets.items() if value}
    ours = {name: value for name, value in settings.environment.items() if name not in settings.started_with}
    with suppress(FileNotFoundError):
        ours |= read_env_file(settings.home.env)
    left += [
        Left(f"the key {name}", "there is another one here, which stays")
        for name, value in theirs.items()
        if ours.get(name, value) != value
    ]
    return {name: value for name, value in theirs.items() if name not in ours}


def _keys(
    found: Found, settings: Settings, agents: Mapping[str, str], new: Collection[str], left: list[Left]
) -> list[tuple[tuple[str, ...], Any]]:
    """The keys that are set, in order: nothing that is set here is changed."""
    config = settings.config
    told: list[tuple[tuple[str, ...], Any]] = []
    base, own = found.config.get("defaults", {}), found.config.get("agents", {})
    for theirs, here in agents.items():
        if theirs not in new:
            continue
        if here in config.agents:
            left.append(Left(f"the settings of {theirs}", f"there is an agent {here} already: its settings stay"))
        else:
            told.append((("agents", here), base | own.get(theirs, {})))
    for section in ("roles", "channels", "providers"):
        for name, value in found.config.get(section, {}).items():
            if section == "providers" and (why := _is_used(name, settings)):
                left.extend([Left(f"the address {value['base_url']} of {name}", why)] if new else [])
            elif name not in getattr(config, section):
                told.append(((section, name), _renamed(value, agents) if section == "roles" else value))
            elif new:
                left.append(Left(f"{section}.{name}", "it is set here already, and stays"))
    return told + (_general(found, settings, agents, left) if new else [])


def _is_used(provider: str, settings: Settings) -> str:
    """Why a file must not say where this provider is: keys and words of others would go there."""
    if provider in settings.config.providers:
        return "it is set here already, and stays"
    models = [model for agent in settings.agents for model in settings.agent(agent).models]
    if any(model.startswith(f"{provider}/") for model in models):
        return "agents that are here use this provider already"
    keys = [name for name in settings.environment if name.startswith(f"{provider.upper()}_") and name.endswith("_KEY")]
    return f"the key in {keys[0]} is here already, and would go there" if keys else ""


def _general(
    found: Found, settings: Settings, agents: Mapping[str, str], left: list[Left]
) -> list[tuple[tuple[str, ...], Any]]:
    """Keys that are no agent's: where nobody has set them here."""
    config, theirs = settings.config, found.config
    told: list[tuple[tuple[str, ...], Any]] = []
    ours = msgspec.to_builtins(config.bindings)
    bindings = []
    for each in theirs.get("bindings", ()):
        channel = str(each.get("channel", ""))
        if channel in theirs.get("channels", {}) and channel not in config.channels:
            bindings.append(_bound(each, agents))
        else:
            what = f"that {each.get('agent')} answers {f'on {channel}' if channel else 'everywhere'}"
            left.append(Left(what, "only channels that come in with it are taken over"))
    if bindings:
        told.append((("bindings",), [*ours, *(each for each in bindings if each not in ours)]))
    if theirs.get("memory") and config.memory == MemoryConfig():
        told.append((("memory",), theirs["memory"]))
    for key, usual in (("timezone", "UTC"), ("reject_response", "auto"), ("show_usage", False)):
        if key in theirs and getattr(config, key) == usual != theirs[key]:
            told.append(((key,), theirs[key]))
    return told


def _renamed(role: Mapping[str, Any], agents: Mapping[str, str]) -> dict[str, Any]:
    """A role as it is here: of the agents that come with it, and of no others."""
    named = role.get("agents", ())
    return {"agents": [*agents.values()] if "*" in named else [agents[name] for name in named if name in agents]}


def _bound(binding: Mapping[str, Any], agents: Mapping[str, str]) -> dict[str, Any]:
    return dict(binding) | {"agent": agents.get(str(binding.get("agent")), str(binding.get("agent")))}
