"""Imports what a plan says. An import that was cut off or is repeated comes to the same: a table
remembers what was imported."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..assembly.workspace_templates import TEMPLATES, create_agent_files
from ..config.config import Settings, parse_config, read_settings, translate_config
from ..config.foreign_file import add_secrets
from ..config.parse import parse_value, read_text
from ..config.yaml_edit import set_key
from ..jobs.job_file import render_job_file
from ..memory.facts import NewFact, add_fact
from ..secrets.redaction import Redactor
from ..store.base import Store
from ..tools.paths import Workspace
from ..tools.queries import import_tasks
from ..types.clock import Clock
from ..types.commit import Change
from ..types.errors import ConfigError, Refused, StaleSession, ToolError
from ..types.folders import make_private_folder
from ..types.identity import Address
from ..types.labels import Label
from ..types.people import OWNER_NAME, Identity
from ..types.private_files import write_private_file
from ..users.users import LocalPeople, open_people
from . import ledger
from .broken import describe_broken_home
from .conversations import resolve_speakers, write_conversation
from .ledger import ImportedThing, fact_key, note_key, tasks_key, value_key
from .model import ImportedConversation, LeftOut
from .notes import clean_line
from .plan import ImportPlan, skill_path

FACTS_BATCH = 500


class AppliedPlan(msgspec.Struct):
    """The result of an import: how many things of each kind, what was left out, and notes on what
    to do now."""

    counts: dict[str, int] = {}
    left_out: list[LeftOut] = []
    notes: list[str] = []

    def add(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def leave_out(self, what: str, error: Exception | str, todo: str = "") -> None:
        self.left_out.append(LeftOut(clean_line(what), clean_line(str(error)), todo))


class Taking:
    """Imports one plan into this home. With `start_jobs` jobs stay enabled as they were. With
    `skip_broken` a home with unreadable files is imported without them."""

    def __init__(
        self,
        plan: ImportPlan,
        settings: Settings,
        store: Store,
        clock: Clock,
        *,
        start_jobs: bool = False,
        skip_broken: bool = False,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._store = store
        self._clock = clock
        self._start_jobs = start_jobs
        self._skip_broken = skip_broken
        self._taken = AppliedPlan()
        self._redact: Callable[[str], str] = str

    async def apply(self) -> AppliedPlan:
        """Import everything that can be imported.

        Raises ConfigError when the other home is broken, before anything is written, and when our
        own configuration cannot be used. Raises OSError, StoreUnavailable.
        """
        if self._plan.found.broken and not self._skip_broken:
            raise ConfigError(describe_broken_home(self._plan.found))
        await self._apply_settings()
        self._redact = Redactor(self._settings)  # also knows the keys that were just imported
        roles = {name: role.agents for name, role in self._settings.config.roles.items()}
        people = open_people(self._store, self._clock, lambda: roles, dict)
        await self._add_people(people)
        await self._write_conversations(people)
        await self._add_memories()
        await self._add_values()
        await self._add_skills()
        await self._add_presets()
        await self._add_notes()
        await self._add_jobs()
        await self._add_tasks()
        return self._taken

    def _thing(self, kind: str, key: str) -> ImportedThing:
        return ImportedThing(self._plan.found.system, kind, key)

    async def _mark_imported(self, kind: str, key: str, here: str) -> None:
        await self._store.change([self._imported_change(kind, key, here)])

    async def _mark_begun(self, kind: str, key: str, here: str) -> None:
        begun = ledger.mark_begun(self._thing(kind, key), here, self._clock.now())
        await self._store.change([begun])

    async def _mark_finished(self, kind: str, key: str) -> None:
        await self._store.change([ledger.mark_finished(self._thing(kind, key))])

    def _imported_change(self, kind: str, key: str, here: str) -> Change:
        return ledger.mark_imported(self._thing(kind, key), here, self._clock.now())

    # ------------------------------------------------------------------ configuration

    async def _apply_settings(self) -> None:
        """Write the settings and keys of the plan, and the files of new agents."""
        self._apply_keys()
        if any(path[0] == "channels" for path, _ in self._plan.keys):
            only = "only one program can receive the messages of a bot"
            self._taken.notes.append(
                f"stop {self._plan.found.system} before you start Deskhand: {only}"
            )
        secrets = dict(self._plan.secrets)
        added = add_secrets(self._settings.home.env, secrets) if secrets else []
        if added:
            what = f"the keys {', '.join(added)} were"
            if len(added) == 1:
                what = f"the key {added[0]} was"
            self._taken.notes.append(f"{what} added to {self._settings.home.env}")
        settings = read_settings(self._settings.file, self._settings.started_with)
        self._settings = replace(settings, home=self._settings.home)

        for agent in self._plan.new_agents:
            here = self._plan.agents[agent.name]
            if here in self._settings.agents:
                create_agent_files(self._settings, here)
                self._write_files(self._settings.home.agent(here), agent.own)
                if not self._settings.agent(here).workspace:
                    self._write_files(self._settings.home.workspace(here), agent.workspace)
            await self._mark_imported("agent", agent.name, here)
            self._taken.add("agent")

    def _apply_keys(self) -> None:
        """Set the keys of the plan in the configuration file. A key with which the configuration
        cannot be used is left out."""
        file = self._settings.file
        before = text = _read_or_empty(file)
        adds_agents = any(path[0] == "agents" for path, _ in self._plan.keys)
        is_fresh = self._store.last_seq() == 0
        if adds_agents and not self._settings.config.agents and not is_fresh:
            # The agent that worked here without an entry stays the first one.
            text = set_key(text, ["agents", self._settings.agents[0]], {})
        for path, value in self._plan.keys:
            changed = set_key(text, path, msgspec.to_builtins(value))
            try:
                parse_config(translate_config(parse_value(changed) or {}, file).config, file)
            except ConfigError as error:
                self._taken.leave_out(".".join(path), error)
                continue
            text = changed
        if text != before:
            write_private_file(file, text)

    def _write_files(self, folder: Path, files: dict[str, str]) -> None:
        """Write files, where there is none yet or only our template."""
        for name, text in files.items():
            path = folder / name
            template = TEMPLATES / name
            usual = template.read_text("utf-8") if template.is_file() else None
            if path.exists() and (path.is_symlink() or path.read_text("utf-8", "replace") != usual):
                self._taken.leave_out(str(path), "it has content already, which is kept")
            else:
                write_private_file(path, text)

    # ------------------------------------------------------------------ people and what they said

    async def _add_people(self, people: LocalPeople) -> None:
        for new in self._plan.new_people:
            here = new.here
            await self._mark_begun("user", new.person.name, here)
            try:
                if new.here != OWNER_NAME and new.here not in people.users_by_name():
                    await people.add_user(new.here, new.roles[0])
                    for role in new.roles[1:]:
                        await people.add_role(new.here, role)
            except (ConfigError, Refused) as error:
                self._taken.leave_out(f"user {new.person.name}", error)
                continue
            for channel, one in new.person.ids:
                try:
                    await people.link(here, Identity(channel, one))
                except (ConfigError, Refused) as error:
                    self._taken.leave_out(f"{channel} {one} of {new.person.name}", error)
            await self._mark_finished("user", new.person.name)
            self._taken.add("user")

    async def _write_conversations(self, people: LocalPeople) -> None:
        roles = {name: role.agents for name, role in self._settings.config.roles.items()}
        speakers = resolve_speakers(self._plan.found, self._plan.people, people, roles)
        unknown = 0
        for new in self._plan.conversations:
            try:
                unknown += await write_conversation(
                    self._store,
                    self._plan.found,
                    new,
                    speakers,
                    now=self._clock.now(),
                    redact=self._redact,
                )
            except StaleSession as error:
                self._taken.leave_out(new.conversation.key, f"{error}; try again later")
                continue
            self._taken.add("conversation")
        if unknown:
            self._taken.leave_out(
                f"{unknown} lines of conversations", "it is unknown who wrote lines with this role"
            )

    # ------------------------------------------------------------------ what is known

    async def _add_memories(self) -> None:
        found = self._plan.found
        now = self._clock.now()
        changes: list[Change] = []
        for memory in self._plan.memories:
            agent = self._plan.agents.get(memory.owner, memory.owner)
            owner = {"user": self._plan.people.get(memory.owner, ""), "agent": agent, "global": ""}[
                memory.scope
            ]
            key = fact_key(memory)
            if memory.scope != "global" and not owner:
                self._taken.leave_out(f"a memory about {memory.owner}", "there is no such user")
                continue
            fact = NewFact(
                text=self._redact(memory.text),
                scope=memory.scope,
                owner=owner,
                label=Label("tool_local", source=f"a memory of {found.system}"),
                writer="import",
                key=f"import:{found.system}:{key}",
                retention="candidate" if memory.candidate else "durable",
                pinned=memory.pinned,
                held=not found.trusted,
            )
            changes += add_fact(fact, now if memory.candidate or memory.at is None else memory.at)
            changes.append(self._imported_change("fact", key, fact.key))
            self._taken.add("memory")
            if len(changes) > FACTS_BATCH:
                await self._store.change(changes)
                changes = []
        if changes:
            await self._store.change(changes)

    async def _add_values(self) -> None:
        for value in self._plan.values:
            agent = self._plan.agents.get(value.agent, value.agent)
            put = ledger.add_value(agent, replace(value, value=self._redact(value.value)))
            wrote, _ = await self._store.change(
                [put, self._imported_change("value", value_key(value), value.key)]
            )
            if wrote:
                self._taken.add("key-value")
            else:
                self._taken.leave_out(
                    f"the key {value.key} of {agent}", "it has a value here already, which is kept"
                )

    # ------------------------------------------------------------------ files

    async def _add_skills(self) -> None:
        for skill in self._plan.skills:
            await self._mark_begun("skill", skill.name, skill.name)
            try:
                if skill.agent:
                    self._write_tool_file(self._plan.agents[skill.agent], skill.name, skill.files)
                else:
                    _write_folder(skill_path(skill, self._settings, self._plan.agents), skill.files)
            except (OSError, ToolError) as error:
                self._taken.leave_out(f"skill {skill.name}", error)
                continue
            await self._mark_finished("skill", skill.name)
            self._taken.add("skill")

    async def _add_presets(self) -> None:
        for preset in self._plan.presets:
            await self._mark_begun("preset", preset.name, preset.name)
            try:
                _write_folder(
                    self._settings.home.root / "prompts" / preset.name,
                    preset.files,
                    self._settings.home.state,
                )
            except OSError as error:
                self._taken.leave_out(f"preset {preset.name}", error)
                continue
            await self._mark_finished("preset", preset.name)
            self._taken.add("preset")

    async def _add_notes(self) -> None:
        """Put the notes of agents into their workspaces, where there is no such file yet."""
        for note in self._plan.notes:
            agent = self._plan.agents[note.agent]
            what = f"{note.path} of {note.agent}"
            if agent not in self._settings.agents or self._settings.agent(agent).workspace:
                self._taken.leave_out(
                    what,
                    "the workspace of that agent is a folder of your own",
                    "copy it there yourself",
                )
                continue
            folder = self._settings.home.workspace(agent)
            make_private_folder(folder)
            try:
                with Workspace(str(folder)) as workspace:
                    if _exists(workspace, note.path):
                        self._taken.leave_out(
                            what,
                            "it has content here already, which is kept",
                            "merge the two files",
                        )
                    else:
                        workspace.write(note.path, note.data)
                        self._taken.add("note")
            except ToolError as error:
                self._taken.leave_out(what, error)
                continue
            await self._mark_imported("note", note_key(note), note.path)

    def _write_tool_file(self, agent: str, name: str, files: dict[str, bytes]) -> None:
        """Write a Python file as a tool of this agent. Follows no links. Raises ToolError."""
        folder = self._settings.home.workspace(agent)
        make_private_folder(folder)
        with Workspace(str(folder)) as workspace:
            workspace.write(f"memory/skills/{name}.py", next(iter(files.values())))

    async def _add_jobs(self) -> None:
        for each in self._plan.jobs:
            job = each.job
            agent = next(iter(self._plan.agents.values()), "")
            if job.agent:
                agent = self._plan.agents.get(job.agent, "")
            if not self._start_jobs and job.enabled:
                job = replace(job, enabled=False)
            job = replace(
                job,
                agent=agent if agent in self._settings.agents else "",
                to=self._with_account(job.to),
            )
            await self._mark_begun("job", each.job.name, job.name)
            files = {**each.files, "JOB.md": render_job_file(job).encode()}
            try:
                _write_folder(
                    self._settings.home.root / "jobs" / job.name, files, self._settings.home.state
                )
            except OSError as error:
                self._taken.leave_out(f"job {job.name}", error)
                continue
            await self._mark_finished("job", each.job.name)
            self._taken.add("job")

    async def _add_tasks(self) -> None:
        """Each task list goes into its conversation. A list without one goes into the last
        conversation that used tasks."""
        for listed in self._plan.tasks:
            session = self._plan.sessions.get(
                listed.conversation or _find_tasks_conversation(self._plan.found.conversations), ""
            )
            if not session:
                self._taken.leave_out(
                    f"{len(listed.tasks)} tasks", "there is no conversation that they belong to"
                )
                continue
            rows = import_tasks(session, listed.tasks, self._clock.now())
            await self._store.change(
                [*rows, self._imported_change("tasks", tasks_key(listed), session)]
            )
            self._taken.add("task", len(listed.tasks))

    def _with_account(self, to: Address | None) -> Address | None:
        """The address with the account of the conversation there, if the job names none."""
        if to is None or to.account:
            return to
        for talk in self._plan.found.conversations:
            place = talk.place
            if place and (place.channel, place.chat) == (to.channel, to.chat):
                return replace(to, account=place.account)
        return to


def _find_tasks_conversation(talks: Sequence[ImportedConversation]) -> str:
    """The key of the last conversation that used tasks, else of the last one, else ''."""
    for talk in reversed(talks):
        if any(_has_task_call(line.tool_calls) for line in talk.lines):
            return talk.key
    return talks[-1].key if talks else ""


def _has_task_call(calls: object) -> bool:
    if not isinstance(calls, list):
        return False
    names = [str(call.get("name")) for call in calls if isinstance(call, Mapping)]
    return any(name.startswith("task_") for name in names)


def _write_folder(path: Path, files: dict[str, bytes], beside: Path | None = None) -> None:
    """Write a folder of files, all or nothing. A folder that exists was written by an earlier run
    and stays. It is built in `beside`, or in the parent folder, and then moved. Raises OSError."""
    if path.exists():
        return
    make_private_folder(path.parent)
    part = (beside or path.parent) / f".{path.name}.part"
    if part.is_dir():
        shutil.rmtree(part)
    for name, data in files.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:  # no reader gives such a name
            continue
        file = part / name
        make_private_folder(file.parent)
        file.write_bytes(data)
        file.chmod(0o700 if data.startswith(b"#!") else 0o600)
    part.rename(path)


def _exists(workspace: Workspace, path: str) -> bool:
    try:
        workspace.stat(path)
    except ToolError as error:
        return not isinstance(error.__cause__, FileNotFoundError)
    return True


def _read_or_empty(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        return ""
