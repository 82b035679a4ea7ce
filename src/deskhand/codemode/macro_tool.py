"""`macro`: keeps what was done in a browser or on the desktop, and does it again without a
model."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..store.base import Store
from ..subagents.delegation import NewTask
from ..subagents.kinds import MACRO
from ..subagents.tasks import Subagents
from ..tools.base import Context, Delegated, Done, Outcome, Spec, call_label, make_result
from ..tools.define import decode_arguments, make_schema
from ..tools.label_marks import load_marks
from ..tools.network import REQUEST_HOST
from ..tools.watch import change_file
from ..types.effects import Effect
from ..types.errors import ConfigError, ToolError
from ..types.identity import Address
from ..types.labels import join_labels
from ..types.messages import Text, clean_text
from .macros import (
    FOLDER,
    MAX_NAME_CHARS,
    NAME,
    Acted,
    Macro,
    MacroTool,
    fill_slots,
    parse_macro,
    put_slots,
    record_steps,
    render_macro,
)
from .script_model import list_calls
from .tool import LIFE_S

MAX_FILE_BYTES = 64 << 10
MAX_LISTED = 100


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
    about: Annotated[str, msgspec.Meta(description="save: what it does, in a sentence")] = ""
    tool: Annotated[MacroTool, msgspec.Meta(description="save: with which it was done")] = "browser"
    steps: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="save: so many of the last actions; 0: all since a page was opened"
        ),
    ] = 0


class MacroPlayer:
    """One for all agents."""

    spec = Spec(
        MACRO,
        "Play a macro, which does again what was done in the browser or on the desktop, without "
        "thinking; list them; save what you have just done. Offer to save what may come again. "
        "Where the page has changed too much, a macro stops and says where: go on yourself.",
        make_schema(MacroArguments),
        "local_write",
        "commit",
    )

    def __init__(self, subagents: Subagents, store: Store) -> None:
        self._subagents = subagents
        self._store = store

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
        macro, context = await _read(given.name, context)
        told = [macro.tool, fill_slots(macro, given.slots), macro.hosts]
        script = f"print(play_macro(*json.loads({msgspec.json.encode(told).decode()!r})))"
        wish = NewTask(script, label=given.name, is_script=True)
        name, row = await self._subagents.plan_task(wish, context)
        return Delegated(name, (row,), wait_s=LIFE_S)

    async def _save(self, given: MacroArguments, context: Context) -> Outcome:
        events = await self._store.events(context.session)
        made = [each for each in list_calls(events, ()) if each.result.status == "ok"]
        acted = [
            Acted(each.arguments, each.result.text) for each in made if each.name == given.tool
        ]
        steps = put_slots(record_steps(given.tool, acted, given.steps), given.slots)
        hosts = {str(each.arguments["host"]) for each in made if each.name == REQUEST_HOST}
        about = " ".join(clean_text(given.about).split())
        macro = Macro(given.tool, steps, about, given.slots, tuple(sorted(hosts)))
        data = render_macro(macro).encode()
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"a macro has at most {MAX_FILE_BYTES >> 10} kB")
        path = _path_of(given.name)
        write = partial(context.reach.files.write, path, data)
        rows = await change_file(context, MACRO, path, write, call_label(context))
        said = f"kept as {path}, {len(steps)} steps"
        return Done((Text(said, call_label(context)),), changes=rows)

    async def _list(self, context: Context) -> Outcome:
        try:
            listed = await anyio.to_thread.run_sync(context.reach.files.list, FOLDER, MAX_LISTED)
        except ToolError:
            listed = []
        lines = []
        label = call_label(context)
        for entry in listed:
            name = entry.name.removesuffix(".yaml")
            if name == entry.name or not NAME.fullmatch(name):
                continue
            try:
                macro, read = await _read(name, context)
            except ToolError as error:
                lines.append(str(error))
                continue
            label = join_labels((label, read.label))
            slots = f" (slots: {', '.join(macro.slots)})" if macro.slots else ""
            lines.append(f"{name}{slots}: {macro.about or f'{len(macro.steps)} steps'}")
        return make_result("\n".join(lines) or "There are no macros yet.", label)


def _path_of(name: str) -> str:
    return f"{FOLDER}/{name}.yaml"


async def _read(name: str, context: Context) -> tuple[Macro, Context]:
    """The macro, and the same call with the label of its file. Raises ToolError."""
    path = _path_of(name)
    read = partial(context.reach.files.read_opened, path, MAX_FILE_BYTES + 1)
    opened = await anyio.to_thread.run_sync(read)
    marks = await load_marks(context)
    if marks.is_hidden_from(opened.place, context):
        raise ToolError(f"{path} is not for all who read this conversation")
    try:
        if len(opened.data) > MAX_FILE_BYTES:
            raise ConfigError(f"it is larger than {MAX_FILE_BYTES >> 10} kB")
        macro = parse_macro(opened.data.decode(errors="replace"))
    except ConfigError as error:
        raise ToolError(f"{path} is no macro: {error}") from error
    label = join_labels((context.label, marks.file_label(opened.place)))
    return macro, replace(context, label=label)
