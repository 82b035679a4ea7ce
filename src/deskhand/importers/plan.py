"""Plans an import: what is new in another home. Decided before anything is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..assembly.prompt_presets import list_presets
from ..assembly.tools import skills_of
from ..config.config import Settings
from ..policy.roles import RESERVED_NAMES
from ..store.base import Store
from ..types.identity import Address, session_key
from ..types.options import SYSTEM_PROMPT_CHARS, SessionOptions
from ..types.people import OWNER_NAME, ROLE_SCOPES
from ..users.queries import read_users
from .ledger import (
    BEGUN_MARK,
    Ledger,
    conversation_key,
    count_taken_lines,
    fact_key,
    load_ledger,
    note_key,
    tasks_key,
    value_key,
)
from .model import (
    AgentFound,
    ChangedName,
    ImportedConversation,
    ImportedFolder,
    ImportedHome,
    ImportedMemory,
    ImportedPerson,
    ImportedTaskList,
    ImportNote,
    JobFound,
    LeftOut,
    Value,
)
from .notes import ImportNotes
from .plan_settings import (
    Incoming,
    SettingsPlan,
    find_imported_roles,
    how_to_add_a_preset,
    plan_secrets,
)
from .skills import explain_unsafe, skill_name

OTHERS_COULD_WRITE = "others could write that home"


class NewPerson(msgspec.Struct, frozen=True):
    """A user to import under the name `here`, with these roles. Without roles the user exists
    already."""

    person: ImportedPerson
    here: str
    roles: tuple[str, ...] = ()


class NewTalk(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, or what is new in it: its lines from `first` on go into this session.
    `options` are None for a conversation without any."""

    conversation: ImportedConversation
    key: str
    session: str
    place: Address
    first: int = 0
    options: SessionOptions | None = None


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to import. `agents` and `people` map names there to names here, `sessions` maps the keys
    of conversations to sessions. `channels` are all channels after the import. `secrets` go to
    `.env`. `taken_before` counts what was imported earlier."""

    found: ImportedHome
    agents: Mapping[str, str]
    people: Mapping[str, str]
    new_agents: tuple[AgentFound, ...] = ()
    keys: tuple[tuple[tuple[str, ...], Any], ...] = ()
    new_people: tuple[NewPerson, ...] = ()
    conversations: tuple[NewTalk, ...] = ()
    memories: tuple[ImportedMemory, ...] = ()
    values: tuple[Value, ...] = ()
    jobs: tuple[JobFound, ...] = ()
    skills: tuple[ImportedFolder, ...] = ()
    tasks: tuple[ImportedTaskList, ...] = ()
    presets: tuple[ImportedFolder, ...] = ()
    notes: tuple[ImportNote, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    changed: tuple[ChangedName, ...] = ()
    sessions: Mapping[str, str] = {}
    channels: tuple[str, ...] = ()
    secrets: Mapping[str, str] = {}
    taken_before: int = 0

    def counts(self) -> list[tuple[int, str]]:
        """How many things of each kind are new. Kinds without any are left out."""
        every = (
            (len(self.new_agents), "agent"),
            (len(self.new_people), "user"),
            (len(self.conversations), "conversation"),
            (len(self.jobs), "job"),
            (len(self.memories), "memory"),
            (len(self.values), "key-value"),
            (len(self.skills), "skill"),
            (sum(len(each.tasks) for each in self.tasks), "task"),
            (len(self.presets), "preset"),
            (len(self.notes), "note"),
        )
        return [(number, name) for number, name in every if number]


async def make_plan(
    found: ImportedHome, settings: Settings, store: Store, me: str = ""
) -> ImportPlan:
    """The plan for what is new in another home. `me` is the user there who is the owner here."""
    known = await load_ledger(store, found.system)
    notes = ImportNotes()
    agents = {each.name: agent_name(each.name) for each in found.agents}
    users_here = {*read_users(store)}
    people, new_people = _people(found, settings, known, me=me, taken=users_here, notes=notes)
    new_presets = _presets(found, settings, known, notes)
    preset_names = {each.name for each in list_presets(settings.home.root / "prompts")}
    preset_names |= {each.name for each in new_presets}
    talks, sessions = await _plan_conversations(
        found, agents, known, store, preset_names=preset_names, notes=notes
    )
    skills = _skills(found, settings, agents, known, notes)
    new_agents = tuple(each for each in found.agents if ("agent", each.name) not in known)
    incoming = Incoming(
        found=found,
        agents=agents,
        new={each.name for each in new_agents},
        skills=skills,
        presets=preset_names,
    )
    whole = ImportPlan(
        found=found,
        agents=agents,
        people=people,
        new_agents=new_agents,
        keys=tuple(SettingsPlan(incoming, settings, notes).keys()),
        new_people=new_people,
        conversations=talks,
        memories=_select_new("fact", found.memories, fact_key, known),
        values=_select_new("value", found.values, value_key, known),
        jobs=_jobs(found, settings, known, notes),
        skills=skills,
        tasks=tuple(each for each in found.tasks if ("tasks", tasks_key(each)) not in known),
        presets=new_presets,
        notes=_notes(found, known, notes),
        sessions=sessions,
        channels=(*settings.config.channels, *found.config.get("channels", {})),
        secrets=plan_secrets(found, settings, notes),
        taken_before=len([moved for moved in known.values() if moved.mark != BEGUN_MARK]),
    )
    _note_changes(whole, notes)
    return replace(
        whole,
        left_out=(*found.left_out, *notes.all_left_out()),
        changed=(*found.changed, *notes.all_changed()),
    )


def _note_changes(plan: ImportPlan, notes: ImportNotes) -> None:
    """Note what will differ from how it was there."""
    for agent in plan.new_agents:
        here = plan.agents[agent.name]
        if here != agent.name:
            why = f"it is named {here}: names can have only a-z, 0-9, - and _"
            notes.change(f"agent {agent.name}", why)
    for new in plan.new_people:
        if new.here not in (new.person.name, OWNER_NAME):
            notes.change(
                f"user {new.person.name}",
                f"they are named {new.here}: their name is taken or not valid",
            )
    if plan.secrets and (plan.conversations or plan.memories or plan.values):
        notes.change("keys that were said or noted", "the value of a key is replaced by its name")
    if not plan.found.trusted and plan.memories:
        notes.change(
            "memories",
            f"{OTHERS_COULD_WRITE}, so they are not used until you review them: deskhand memories",
        )
    if not plan.found.trusted and plan.conversations:
        notes.change(
            "words of people",
            f"{OTHERS_COULD_WRITE}, so they are treated as untrusted content",
        )


def agent_name(theirs: str) -> str:
    """The name of an agent here."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", theirs.lower()).strip("-_")[:40]
    if plain and plain[0].isalpha() and plain not in ("list", "defaults"):
        return plain
    return f"agent-{plain or 'one'}"


def _select_new(kind: str, given: Sequence[Any], key: Any, known: Ledger) -> tuple[Any, ...]:
    once = {key(each): each for each in given}
    return tuple(each for name, each in once.items() if (kind, name) not in known)


def _is_taken(known: Ledger, kind: str, key: str) -> bool:
    moved = known.get((kind, key))
    return moved is not None and moved.mark != BEGUN_MARK


def _people(
    found: ImportedHome,
    settings: Settings,
    known: Ledger,
    *,
    me: str,
    taken: set[str],
    notes: ImportNotes,
) -> tuple[dict[str, str], tuple[NewPerson, ...]]:
    """The names here by the names there, and the users to add. Adds their names to `taken`."""
    people: dict[str, str] = {}
    new: list[NewPerson] = []
    theirs = find_imported_roles(
        found, settings, {each.name: agent_name(each.name) for each in found.agents}
    )
    for person in found.people:
        moved = known.get(("user", person.name))
        if moved is not None and moved.mark != BEGUN_MARK:
            people[person.name] = moved.here
            continue
        if moved is not None:
            here = moved.here
        elif me == person.name:
            here = OWNER_NAME
        else:
            here = _free_user_name(person.name, taken)
        people[person.name] = here
        taken.add(here)
        roles = tuple(role for role in person.roles if role in theirs) or ("member",)
        if here != OWNER_NAME:
            _note_roles(person, settings, theirs, notes)
        new.append(NewPerson(person, here, () if here == OWNER_NAME else roles))
    return people, tuple(new)


def _note_roles(
    person: ImportedPerson, settings: Settings, theirs: Collection[str], notes: ImportNotes
) -> None:
    """Note which roles this person has there and not here."""
    known_here = {*settings.config.roles, *ROLE_SCOPES} - {"member", *theirs}
    for role in person.roles:
        if role in known_here:
            why = "an import cannot give anybody a role that exists here"
            notes.leave_out(
                f"that {person.name} is {role}",
                why,
                f"deskhand users add-role {person.name} {role}",
            )
        elif role not in theirs and role != "member":
            notes.leave_out(
                f"that {person.name} is {role}", "that home does not say what this role may do"
            )
    if person.owner:
        why = "an import cannot make anybody an owner"
        notes.leave_out(
            f"that {person.name} may do everything", why, f"if that is you, say: --me {person.name}"
        )


def _free_user_name(name: str, taken: Collection[str]) -> str:
    """A user name that nobody has here. Users with the same name need not be the same person."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip(".-")[:60] or "somebody"
    unavailable = {*taken, *RESERVED_NAMES, OWNER_NAME}
    free = plain
    number = 1
    while free in unavailable:
        number += 1
        free = f"{plain}-{number}"
    return free


# ---------------------------------------------------------------------- conversations


async def _plan_conversations(
    found: ImportedHome,
    agents: Mapping[str, str],
    known: Ledger,
    store: Store,
    *,
    preset_names: Collection[str],
    notes: ImportNotes,
) -> tuple[tuple[NewTalk, ...], dict[str, str]]:
    """What is new in conversations, and the session of each by its key there."""
    new: list[NewTalk] = []
    sessions: dict[str, str] = {}
    going_on = {each.session for each in await store.open_sessions()}
    first = next(iter(agents.values()), "default")
    for talk in found.conversations:
        key = conversation_key(talk)
        moved = known.get(("talk", key))
        agent = agents.get(talk.agent) or (agent_name(talk.agent) if talk.agent else first)
        place = talk.place or _archive_address(found, talk, key)
        session = moved.here if moved else session_key(agent, place)
        is_new_chat = moved is None and talk.place is not None
        if is_new_chat and (session in sessions.values() or await store.events(session, 0, 1)):
            notes.change(
                talk.key, "that chat exists here already; its past becomes a separate conversation"
            )
            place = _archive_address(found, talk, key)
            session = session_key(agent, place)
        sessions[talk.key] = session
        upto = count_taken_lines(talk.lines, moved) if moved and moved.lines else 0
        if upto is None:
            why = "it was rewritten since it was imported; what was imported is kept"
            notes.leave_out(f"changes in {talk.key}", why)
        elif upto < len(talk.lines) and session in going_on:
            notes.leave_out(
                f"what is new in {talk.key}",
                "it is in use here",
                "import again later",
            )
        elif upto < len(talk.lines):
            if session.partition("/")[2].startswith("terminal:") and moved:
                place = Address("terminal", chat=session.partition(":")[2], group=talk.group)
            options = None if upto else _options(found, talk, preset_names, notes)
            new.append(
                NewTalk(
                    conversation=talk,
                    key=key,
                    session=session,
                    place=place,
                    first=upto,
                    options=options,
                )
            )
    return tuple(new), sessions


def _archive_address(found: ImportedHome, talk: ImportedConversation, key: str) -> Address:
    """The address of a conversation without a channel here: the terminal and the page can go on
    with it."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", talk.key).strip("-")[:40]
    return Address("terminal", chat=f"{found.system}-{plain or 'talk'}-{key[:6]}", group=talk.group)


def _options(
    found: ImportedHome,
    talk: ImportedConversation,
    preset_names: Collection[str],
    notes: ImportNotes,
) -> SessionOptions | None:
    """The options of this conversation here, or None. A system prompt that others could have
    written is left out."""
    options = talk.options
    if options is None:
        return None
    about = options.title or talk.key
    if options.preset and options.preset not in preset_names:
        todo = how_to_add_a_preset(options.preset)
        notes.leave_out(
            f"the preset {options.preset} of {about}", "there is no such preset here", todo
        )
        options = replace(options, preset=None)
    prompt = options.system_prompt or ""
    if prompt and (not found.trusted or len(prompt) > SYSTEM_PROMPT_CHARS):
        long = f"it has more than {SYSTEM_PROMPT_CHARS:,} characters"
        why = OTHERS_COULD_WRITE if not found.trusted else long
        notes.leave_out(
            f"the system prompt of {about}", why, "set it in that conversation on the page"
        )
        options = replace(options, system_prompt=None)
    return options if options != SessionOptions() else None


# ---------------------------------------------------------------------- files


def _jobs(
    found: ImportedHome, settings: Settings, known: Ledger, notes: ImportNotes
) -> tuple[JobFound, ...]:
    new = []
    for each in found.jobs:
        moved = known.get(("job", each.job.name))
        if moved is not None and moved.mark != BEGUN_MARK:
            continue
        if moved is None and (settings.home.root / "jobs" / each.job.name).exists():
            notes.leave_out(
                f"job {each.job.name}",
                "there is a job of that name already",
                "rename one of the two",
            )
            continue
        new.append(each)
    return tuple(new)


def _skills(
    found: ImportedHome,
    settings: Settings,
    agents: Mapping[str, str],
    known: Ledger,
    notes: ImportNotes,
) -> tuple[ImportedFolder, ...]:
    new = []
    taken = {name for agent in settings.agents for name in skills_of(settings, agent).find()}
    same_name = "there is a skill of that name already"
    for each in found.skills:
        moved = known.get(("skill", each.name))
        if moved is not None and moved.mark != BEGUN_MARK:
            continue
        what = f"skill {each.name}"
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", each.name):
            notes.leave_out(
                what, "that cannot be the name of a skill", "rename it with a-z, 0-9 and -"
            )
        elif moved is None and skill_path(each, settings, agents).exists():
            notes.leave_out(what, same_name, "rename one of the two")
        elif (name := skill_name(each)) in taken and moved is None:
            itself = f"it calls itself {name}, and " if name != each.name else ""
            notes.leave_out(what, f"{itself}{same_name}", "rename one of the two")
        elif why := explain_unsafe(each):
            notes.leave_out(what, why, "read it, and copy its folder yourself if you trust it")
        else:
            taken.add(name)
            new.append(each)
    return tuple(new)


def skill_path(skill: ImportedFolder, settings: Settings, agents: Mapping[str, str]) -> Path:
    """The path of a skill here: its folder, or its file when it is a Python tool of one agent."""
    if not skill.agent:
        return settings.skills_folder / skill.name
    return settings.home.workspace(agents[skill.agent]) / "memory" / "skills" / f"{skill.name}.py"


def _presets(
    found: ImportedHome, settings: Settings, known: Ledger, notes: ImportNotes
) -> tuple[ImportedFolder, ...]:
    """The prompt presets to import."""
    new = []
    for each in found.presets:
        if _is_taken(known, "preset", each.name):
            continue
        begun = ("preset", each.name) in known
        what = f"preset {each.name}"
        if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,63}", each.name):
            notes.leave_out(
                what, "that cannot be the name of a preset", "rename it with letters, digits and -"
            )
        elif (settings.home.root / "prompts" / each.name).exists() and not begun:
            notes.leave_out(what, "there is a preset of that name already", "rename one of the two")
        elif not found.trusted:
            notes.leave_out(
                what,
                OTHERS_COULD_WRITE,
                "read it, and copy its folder to prompts/ of Deskhand's home",
            )
        elif why := explain_unsafe(each):
            notes.leave_out(
                what,
                why,
                "read it, and copy its folder to prompts/ of Deskhand's home if you trust it",
            )
        else:
            new.append(each)
    return tuple(new)


def _notes(found: ImportedHome, known: Ledger, notes: ImportNotes) -> tuple[ImportNote, ...]:
    """The notes of agents that were not imported before."""
    every = [
        ImportNote(each.name, path, data)
        for each in found.agents
        for path, data in each.notes.items()
    ]
    new = [note for note in every if ("note", note_key(note)) not in known]
    if new and not found.trusted:
        for note in new:
            notes.leave_out(
                f"{note.path} of {note.agent}", OTHERS_COULD_WRITE, "read it, and copy it yourself"
            )
        return ()
    return tuple(new)
