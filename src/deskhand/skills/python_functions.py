"""Python skills: each public async function of a file is a tool. Files are parsed here, and run in
the sandbox.

A file is in `memory/skills`, `skills` or `tools` of a workspace. Parameters are text, numbers or
booleans.
"""

from __future__ import annotations

import ast
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..sandbox.base import Mount, SandboxCommand
from ..tools.aliases import TOOL_ALIASES
from ..tools.approved import CHANGED_TEXT, load_bound
from ..tools.base import Context, Done, Spec, Tool
from ..tools.define import make_function_tool
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.label_marks import load_marks
from ..tools.paths import OpenedFile, Place, Workspace
from ..tools.shell import run_watched
from ..tools.written import command_mounts
from ..types.errors import ToolError
from ..types.messages import clean_text

FOLDERS = ("memory/skills", "skills", "tools")
FILE_BYTES = 64 * 1024
MOST_FILES = 100
MOST_TOOLS = 60
MOST_PARAMETERS = 20
DOC_CHARS = 300
NAME_CHARS = 64
DEFAULT_CHARS = 200
TIMEOUT_S = 120.0
SETTLED_S = 1.0
"""A file that was written less than this ago is left out for now: its label may not be stored
yet."""
_KINDS: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_RUNNER = """import asyncio, json, sys, types

def told(kind, error, at):
    while at is not None and at.tb_next:
        at = at.tb_next
    where = f" (line {at.tb_lineno} of {at.tb_frame.f_code.co_filename})" if at else ""
    print(f"{kind.__name__}: {error}{where}", file=sys.stderr)

sys.excepthook = told
told, (path, name) = json.load(sys.stdin.buffer), sys.argv[1:]
with open(path, "rb") as file:
    file.read()  # it counts as read, and so does whatever it is marked with
sys.argv[:] = [path]
skill = sys.modules["skill"] = types.ModuleType("skill")
skill.__file__ = path
exec(compile(told["source"].encode("latin-1"), path, "exec"), skill.__dict__)
said = asyncio.run(getattr(skill, name)(**told["given"]))
if said is not None:
    print(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str))
"""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a function. `default` is None when the function has none, or one that cannot
    be shown to a model."""

    name: str
    kind: str
    required: bool
    default: Any = None


class PythonSkill(msgspec.Struct, frozen=True):
    """A function that is a tool. `file` is its path in the workspace, `digest` the SHA-256 of that
    file, and `place` where it was read."""

    name: str
    description: str
    file: str
    parameters: tuple[Parameter, ...]
    digest: bytes = b""
    place: Place = Place("")


class PythonSkillScan(msgspec.Struct, frozen=True):
    """The Python skills that were found. `problems` say what is no tool, and why."""

    skills: tuple[PythonSkill, ...] = ()
    problems: tuple[str, ...] = ()


def parse_skills(source: bytes, file: str) -> PythonSkillScan:
    """The tools of a file. The file is parsed and not run."""
    try:
        tree = ast.parse(source, file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = ""
        if isinstance(error, SyntaxError) and error.lineno:
            where = f" in line {error.lineno}"
        why = getattr(error, "msg", None) or type(error).__name__
        return PythonSkillScan((), (f"{file} is not valid Python{where}: {why}",))
    skills: dict[str, PythonSkill] = {}
    problems: list[str] = []
    for node in tree.body:
        if not isinstance(node, ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        try:
            skills[node.name] = PythonSkill(
                _check_name(node.name), _describe(node), file, tuple(_parse_parameters(node))
            )
        except (ValueError, RecursionError) as error:
            skills.pop(node.name, None)
            why = "it is nested too deeply" if isinstance(error, RecursionError) else error
            problems.append(f"{file}: {node.name[:NAME_CHARS]} is not a tool: {why}")
    return PythonSkillScan(tuple(skills.values()), tuple(problems))


def _check_name(name: str) -> str:
    if not name.isascii() or len(name) > NAME_CHARS:
        raise ValueError(f"its name must be of at most {NAME_CHARS} letters, digits and _")
    return name


def _describe(node: ast.AsyncFunctionDef) -> str:
    doc = escape_invisible(clean_text(ast.get_docstring(node) or ""))
    first = next((" ".join(line.split()) for line in doc.splitlines() if line.strip()), node.name)
    return f"[skill] {first[:DOC_CHARS]}"


def _parse_parameters(node: ast.AsyncFunctionDef) -> Iterator[Parameter]:
    """Raises ValueError for parameters that a model cannot give."""
    given = node.args
    if given.vararg or given.kwarg or given.posonlyargs:
        raise ValueError("its parameters must all be named: no *, ** or /")
    if len(given.args) + len(given.kwonlyargs) > MOST_PARAMETERS:
        raise ValueError(f"it has more than {MOST_PARAMETERS} parameters")
    missing = len(given.args) - len(given.defaults)
    defaults: list[ast.expr | None] = [*[None] * missing, *given.defaults, *given.kw_defaults]
    for argument, default in zip((*given.args, *given.kwonlyargs), defaults, strict=True):
        if argument.arg == "context" or argument.arg.startswith("_") or not argument.arg.isascii():
            raise ValueError(f"a parameter cannot be called {argument.arg!a}")
        kind = _parse_kind(argument.annotation)
        value = None
        if default is not None:
            with suppress(ValueError, RecursionError, TypeError, MemoryError):
                value = ast.literal_eval(default)
        if not _is_valid_default(value, kind):
            value = None
        yield Parameter(argument.arg, kind, required=default is None, default=value)


def _is_valid_default(value: object, kind: str) -> bool:
    """Whether a model can be shown this default: short, and the same as JSON."""
    match value:
        case bool():
            return kind == "bool"
        case int():
            return kind in ("int", "float") and abs(value) < 2**53
        case float():
            return kind == "float" and isfinite(value)
        case str():
            return (
                kind == "str"
                and len(value) <= DEFAULT_CHARS
                and escape_invisible(clean_text(value)) == value
            )
        case _:
            return False


def _parse_kind(node: ast.expr | None) -> str:
    """The name of the type, `str` without an annotation. `X | None` and `Optional[X]` are X."""
    match node:
        case None:
            return "str"
        case ast.Name(id=name) if name in _KINDS:
            return name
        case ast.Constant(value=str() as name) if name in _KINDS:
            return name
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return _parse_kind(left)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _parse_kind(inner)
        case _:
            raise ValueError(
                f"{ast.unparse(node)[:60]} is not a supported type of a parameter: use str, int, "
                "float or bool"
            )


class PythonSkills:
    """The Python skills of a workspace. A file is read again when it has changed."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = str(workspace)
        self._parsed: dict[str, tuple[tuple[float, int, int], PythonSkillScan]] = {}

    def stamp(self, now: float) -> tuple[tuple[str, float, int, int], ...]:
        """A value that differs after every change, SETTLED_S later."""
        return tuple((path, *version) for path, version in self._list_files(now))

    def find(self, now: float) -> PythonSkillScan:
        """The Python skills there are at this time (seconds since the epoch)."""
        files = dict(self._list_files(now))
        skills: list[PythonSkill] = []
        problems: list[str] = []
        with suppress(ToolError), Workspace(self._workspace) as workspace:
            for path, version in files.items():
                known = self._parsed.get(path)
                whole = f"{self._workspace}/{path}"
                if (
                    known is None
                    or known[0] != version
                    or not all(each.place.is_at(whole) for each in known[1].skills)
                ):
                    known = version, _read_skills(workspace, path, version[1])
                    self._parsed[path] = known
                skills += known[1].skills
                problems += known[1].problems
        self._parsed = {path: known for path, known in self._parsed.items() if path in files}
        return PythonSkillScan(tuple(skills), tuple(problems))

    def _list_files(self, now: float) -> Iterator[tuple[str, tuple[float, int, int]]]:
        with suppress(ToolError), Workspace(self._workspace) as workspace:
            for folder in FOLDERS:
                with suppress(ToolError):
                    entries = workspace.list(folder, 10 * MOST_FILES)[: 10 * MOST_FILES]
                    modules = [
                        each for each in entries if each.kind == "file" and _is_module(each.name)
                    ]
                    for entry in modules[:MOST_FILES]:
                        if abs(now - entry.modified_s) > SETTLED_S:
                            version = entry.modified_s, entry.size_bytes, entry.changed_ns
                            yield f"{folder}/{entry.name}", version


def _is_module(name: str) -> bool:
    return name.endswith(".py") and not name.startswith(("_", ".")) and name.isprintable()


def _read_skills(workspace: Workspace, path: str, size: int) -> PythonSkillScan:
    if size > FILE_BYTES:
        return PythonSkillScan((), (f"{path} is larger than {FILE_BYTES >> 10} kB",))
    try:
        read = workspace.read_opened(path, FILE_BYTES + 1)
    except ToolError as error:
        return PythonSkillScan((), (str(error),))
    found = parse_skills(read.data, path)
    digest = sha256(read.data).digest()
    place = read.place
    return replace(
        found, skills=tuple(replace(each, digest=digest, place=place) for each in found.skills)
    )


def python_tools(
    found: PythonSkillScan, taken: Collection[str]
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools, and what is wrong with the others. Names that are `taken` or appear twice are left
    out."""
    tools: dict[str, Tool] = {}
    problems = list(found.problems)
    for skill in found.skills:
        if skill.name in tools or skill.name in taken or skill.name in TOOL_ALIASES:
            problems.append(f"{skill.file}: {skill.name} is not a tool: another one has this name")
        elif len(tools) >= MOST_TOOLS:
            problems.append(
                f"{skill.file}: {skill.name} is not a tool: there are {MOST_TOOLS} already"
            )
        else:
            tools[skill.name] = _make_tool(skill)
    return tuple(tools.values()), tuple(problems)


def _make_tool(skill: PythonSkill) -> Tool:
    async def run(context: Context, **given: Any) -> Done:
        read = context.reach.files.read_opened
        opened = await anyio.to_thread.run_sync(read, skill.file, FILE_BYTES)
        await _check_approved(opened, context)  # after reading it: what is checked is what runs
        said = {name: value for name, value in given.items() if value is not None}
        shown = f"{skill.name} {shlex.quote(msgspec.json.encode(said).decode())}"
        command = _make_command(skill, opened.data, said, context)
        return await run_watched(command, shown, context, skill.name)

    fields = [_make_field(each) for each in skill.parameters]
    spec = Spec(skill.name, skill.description, {}, "local_write", "never", timeout_s=TIMEOUT_S + 10)
    return make_function_tool(spec, fields, run, ["context"])


async def _check_approved(opened: OpenedFile, context: Context) -> None:
    """Raises ToolError when this content of a tool's file is held back."""
    marks = await load_marks(context)
    bound = await load_bound(context)
    file = opened.place.asked
    real = opened.place.real
    if not all(
        bound.allows(each, sha256(opened.data).digest()) for each in (real, marks.real_path(file))
    ):
        raise ToolError(CHANGED_TEXT.format(what=file))
    label = marks.file_label(opened.place)
    if bound.covers(real) or not (label.integrity == "untrusted" or label.by):
        return
    whose = f"text by {', '.join(label.by)}"
    if label.integrity == "untrusted":
        whose = "untrusted content"
    raise ToolError(f"{file} is held back: it contains {whose}, and no owner has reviewed it since")


def _make_field(parameter: Parameter) -> tuple[Any, ...]:
    kind = _KINDS[parameter.kind]
    if parameter.required:
        return parameter.name, kind
    if parameter.default is None:
        return parameter.name, kind | None, None
    return parameter.name, kind, parameter.default


def _make_command(
    skill: PythonSkill, source: bytes, given: dict[str, Any], context: Context
) -> SandboxCommand:
    """Runs the function in the sandbox, in our interpreter, isolated from our code. It runs this
    source, whatever the file holds by then."""
    base = Path(sys.base_prefix).resolve()
    reach = context.reach
    python = f"{base}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    shown = () if base.is_relative_to("/usr") else (Mount(str(base)),)
    mounts = (*command_mounts(context), *shown)
    argv = (python, "-I", "-B", "-c", _RUNNER, str(reach.folder / skill.file), skill.name)
    told = msgspec.json.encode({"source": source.decode("latin-1"), "given": given})
    return SandboxCommand(argv, str(reach.folder), mounts, stdin=told, timeout_s=TIMEOUT_S)
