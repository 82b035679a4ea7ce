"""`macro`: keeps what was done in a browser or on the desktop, and does it again without a
model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..computer.browser.browsers import Browsers
from ..computer.desktop.host import DesktopHost
from ..computer.done_steps import DoneStep
from ..store.base import Store
from ..store.queries import find_subagent
from ..subagents.delegation import NewTask, new_id
from ..subagents.kinds import MACRO
from ..subagents.tasks import Subagents
from ..tools.base import (
    Context,
    Delegated,
    Done,
    Outcome,
    Spec,
    call_label,
    label_errors,
    make_result,
)
from ..tools.define import decode_arguments, make_schema
from ..tools.label_marks import LabelMarks, load_marks
from ..tools.watch import change_file
from ..types.effects import Effect
from ..types.errors import ConfigError, ToolError
from ..types.identity import Address
from ..types.labels import Label, join_labels
from ..types.messages import Text, clean_text
from ..types.subagents import subagent_session
from .macros import (
    FOLDER,
    MAX_FILE_CHARS,
    MAX_NAME_CHARS,
    NAME,
    Macro,
    MacroTool,
    describe_macro,
    fill_slots,
    make_steps,
    parse_macro,
    put_slots,
    render_macro,
)
from .tool import LIFE_S

MAX_LISTED = 100
BEGIN_S = 60.0
"""So long after its call a macro counts as being played that nobody has seen yet."""


class MacroArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Literal["run", "save", "list"]
    name: Annotated[str, msgspec.Meta(description="such as weekly-report")] = ""
    slots: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="run: values for its slots; save: name and value, as it was used, of what "
            "is another one each time"
        ),
    ] = {}
    first_step: Annotated[int, msgspec.Meta(ge=1, description="run: begin with this one")] = 1
    about: Annotated[str, msgspec.Meta(description="save: what it does, in a sentence")] = ""
    tool: Annotated[MacroTool, msgspec.Meta(description="save: with which it was done")] = "browser"
    steps: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="save: so many of the last steps; 0: all since a page was opened"
        ),
    ] = 0
    replace: Annotated[bool, msgspec.Meta(description="save: in the place of an older one")] = False


class MacroPlayer:
    """One for all agents."""

    spec = Spec(
        MACRO,
        "Play a macro, which does again what was done in the browser or on the desktop, without "
        "thinking; list them; save what you have just done there. Where too much has changed, a "
        "macro stops and says where.",
        make_schema(MacroArguments),
        "local_write",
        "commit",
    )

    def __init__(
        self, subagents: Subagents, store: Store, browsers: Browsers, desktop: DesktopHost
    ) -> None:
        self._subagents = subagents
        self._store = store
        self._browsers = browsers
        self._desktop = desktop
        self._played: dict[str, tuple[str, float]] = {}
        """By conversation the one that is played there, and when it began (monotonic)."""

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, MacroArguments, MACRO)
        except ToolError:
            return "none"  # it will not be done
        # What a macro does is judged call by call.
        return "local_write" if given.action == "save" else "none"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, MacroArguments, MACRO)
        if given.action == "list":
            return await self._list(context)
        if not NAME.fullmatch(given.name) or len(given.name) > MAX_NAME_CHARS:
            raise ToolError(
                f"{given.name[:80]!r} cannot be the name of a macro: use lower case, digits and "
                "single hyphens, such as weekly-report"
            )
        if given.action == "save":
            return await self._save(given, context)
        return await self._play(given, context)

    async def _play(self, given: MacroArguments, context: Context) -> Outcome:
        macro, label = await _read(given.name, context, await load_marks(context))
        with label_errors(label):
            steps = fill_slots(macro, given.slots)
            if given.first_step > len(steps):
                raise ToolError(f"it has {len(steps)} steps")
        own = subagent_session(context.agent, new_id(context))
        self._require_alone(own, context)
        told = msgspec.json.encode([macro.tool, steps, given.first_step]).decode()
        script = f"print(play_macro(*json.loads({told!r})))"
        wish = NewTask(script, label=given.name, plays=MACRO)
        self._played[context.session] = own, context.clock.monotonic()
        try:
            context = replace(context, label=join_labels((context.label, label)))
            name, row = await self._subagents.plan_task(wish, context)
        except ToolError:
            del self._played[context.session]
            raise
        return Delegated(name, (row,), wait_s=LIFE_S)

    def _require_alone(self, own: str, context: Context) -> None:
        """Raises ToolError while another one is played here, in whose way this would be."""
        session, since = self._played.get(context.session, (own, 0.0))
        task = find_subagent(self._store, session) if session != own else None
        is_new = session != own and context.clock.monotonic() - since < BEGIN_S
        if task.is_live if task is not None else is_new:
            raise ToolError("another macro is being played here: play one after the other")

    async def _save(self, given: MacroArguments, context: Context) -> Outcome:
        done = self._list_done(given.tool, context)
        told = join_labels((call_label(context), *(each.label for each in done)))
        with label_errors(told):
            steps = put_slots(make_steps(given.tool, done, given.steps), given.slots)
        about = " ".join(clean_text(given.about).split())
        macro = Macro(given.tool, steps, about, dict.fromkeys(given.slots, ""))
        text = render_macro(macro)
        try:
            await anyio.to_thread.run_sync(parse_macro, text)
        except ConfigError as error:
            raise ToolError(f"it cannot be kept: {error}") from error
        path = _path_of(given.name)
        await _require_free(path, given, context)
        write = partial(context.reach.files.write, path, text.encode())
        rows = await change_file(context, MACRO, path, write, told)
        said = f"kept as {path}:\n{describe_macro(macro)}"
        return Done((Text(said, told),), changes=rows)

    def _list_done(self, tool: MacroTool, context: Context) -> Sequence[DoneStep]:
        """What was done with this tool in this conversation."""
        if tool == "browser":
            browser = self._browsers.peek(context.session)
            return [*browser.steps] if browser is not None else ()
        desktop = self._desktop.peek()
        return [*desktop.view_of(context.session).steps] if desktop is not None else ()

    async def _list(self, context: Context) -> Outcome:
        try:
            listed = await anyio.to_thread.run_sync(
                context.reach.files.list, FOLDER, MAX_LISTED + 1
            )
        except ToolError:
            listed = []
        marks = await load_marks(context)
        label = call_label(context)
        lines = []
        for entry in listed[:MAX_LISTED]:
            name = entry.name.removesuffix(".yaml")
            if name == entry.name or not NAME.fullmatch(name):
                continue
            place = await anyio.to_thread.run_sync(context.reach.files.find_place, _path_of(name))
            if marks.is_hidden_from(place, context):
                continue
            label = join_labels((label, marks.listing_label((place,))))
            try:
                macro, read = await _read(name, context, marks)
                slots = f" (slots: {', '.join(macro.slots)})" if macro.slots else ""
                lines.append(f"{name}{slots}: {macro.about or f'{len(macro.steps)} steps'}")
            except ToolError as error:
                read = error.label
                lines.append(str(error))
            label = join_labels((label, read))
        if len(listed) > MAX_LISTED:
            lines.append("… and more")
        return make_result("\n".join(lines) or "There are no macros yet.", label)


def _path_of(name: str) -> str:
    return f"{FOLDER}/{name}.yaml"


async def _require_free(path: str, given: MacroArguments, context: Context) -> None:
    """Raises ToolError where there is one that is not to be replaced, or that others may not
    see."""
    try:
        place = await anyio.to_thread.run_sync(context.reach.files.find_place, path)
        await anyio.to_thread.run_sync(context.reach.files.stat, path)
    except ToolError:
        return
    if (await load_marks(context)).is_hidden_from(place, context):
        raise ToolError(f"{path} is not for all who read this conversation")
    if not given.replace:
        raise ToolError(f"{path} is there already: take another name, or replace it")


async def _read(name: str, context: Context, marks: LabelMarks) -> tuple[Macro, Label]:
    """The macro, and the label of its file. Raises ToolError."""
    path = _path_of(name)
    read = partial(context.reach.files.read_opened, path, 4 * MAX_FILE_CHARS)
    opened = await anyio.to_thread.run_sync(read)
    if marks.is_hidden_from(opened.place, context):
        raise ToolError(f"{path} is not for all who read this conversation")
    label = marks.file_label(opened.place)
    with label_errors(label):
        try:
            text = opened.data.decode(errors="replace")
            return await anyio.to_thread.run_sync(parse_macro, text), label
        except ConfigError as error:
            raise ToolError(f"{path} is no macro: {error}") from error
