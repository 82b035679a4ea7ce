"""Documents as text: read in the sandbox by a process of its own, with little time and memory,
whoever made them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import anyio
import msgspec

from ..sandbox.base import Exit, Mount, Sandbox, SandboxCommand
from ..types.errors import SandboxError, ToolError
from .documents.found import MAX_TEXT_CHARS
from .documents.kinds import KIND_NAMES, DocumentKind, detect_kind

MAX_DOCUMENT_BYTES = 20 << 20
"""A larger document is not read."""
TIMEOUT_S = 20.0
MEMORY_BYTES = 512 << 20
MAX_ANSWER_BYTES = 4 * MAX_TEXT_CHARS + (1 << 16)
LIBRARIES = ("pypdfium2", "selectolax")
MODULE = "deskhand.tools.documents.main"
INSTALL_COMMAND = "pip install 'deskhand[web]'"


class ConversionRequest(msgspec.Struct, frozen=True):
    """What is known of a document, and what is wanted of it.

    `declared` is the media type that its sender says, `name` its file's name, `url` where it was
    found: links are made absolute by it. `selector`: the CSS selector of what to give of a web
    page.
    """

    declared: str = ""
    name: str = ""
    url: str = ""
    selector: str = ""


class Converted(msgspec.Struct, frozen=True):
    """A document as Markdown or plain text. `hidden` counts what no reader would have seen and was
    taken out, by its kind; `notes` say what was not read, and why."""

    text: str
    title: str = ""
    kind: DocumentKind = "text"
    hidden: dict[str, int] = {}
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> str:
        """A line for each note and one for what was taken out; "" for none."""
        hidden = ", ".join(f"{name} ({count:,})" for name, count in sorted(self.hidden.items()))
        lines = [
            *self.notes,
            *([f"removed because it is not visible to people: {hidden}"] if hidden else []),
        ]
        return "\n".join(f"[{line}]" for line in lines)


class _Answer(msgspec.Struct, frozen=True):
    """What the process says; it may be under somebody else's control, so its shape and size are
    checked."""

    text: str = ""
    title: str = ""
    hidden: dict[str, int] = {}
    notes: list[str] = []
    unreadable: str = ""
    missing: str = ""


async def convert_document(
    data: bytes,
    sandbox: Callable[[], Awaitable[Sandbox]],
    wanted: ConversionRequest = ConversionRequest(),  # noqa: B008  it is frozen
    time_s: float = TIMEOUT_S,
) -> Converted:
    """The text of a document. Raises ToolError with a sentence that says why there is none."""
    subject = repr(wanted.name) if wanted.name else "the document"
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ToolError(
            f"{subject} is larger than {MAX_DOCUMENT_BYTES >> 20} MB, the limit for documents"
        )
    kind = detect_kind(data, wanted.declared, wanted.name)
    if wanted.selector and kind != "html":
        raise ToolError(
            f"{subject} is not a web page ({KIND_NAMES.get(kind, 'something else')}): leave out "
            "the selector"
        )
    charset = wanted.declared.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    asked = {
        "kind": kind,
        "charset": charset[:40],
        "url": wanted.url,
        "selector": wanted.selector[:1000],
    }
    said = bytearray()
    complained = bytearray()
    with anyio.CancelScope() as enough:

        def on_output(piece: bytes, is_error: bool) -> None:
            if is_error:
                complained.extend(piece[: 2000 - len(complained)])
            elif len(said) + len(piece) > MAX_ANSWER_BYTES:
                enough.cancel()
            else:
                said.extend(piece)

        try:
            command = make_python_command(MODULE, msgspec.json.encode(asked) + b"\n" + data)
            limited = msgspec.structs.replace(command, timeout_s=time_s)
            ended = await (await sandbox()).run(limited, on_output)
        except SandboxError as error:
            raise ToolError(
                f"{subject} was not read, because documents are only read in the sandbox: {error}"
            ) from error
    if enough.cancelled_caught:
        raise ToolError(
            f"reading {subject} gave more than {MAX_ANSWER_BYTES >> 20} MB of text; it was stopped"
        )
    try:
        answer = msgspec.json.decode(bytes(said), type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ToolError(
            f"{subject} {_describe_failure(ended, bytes(complained), time_s)}"
        ) from None
    if answer.missing:
        raise ToolError(
            f"{subject} is a {KIND_NAMES.get(kind, kind)}, and support for this format is not "
            f"installed: {INSTALL_COMMAND}"
        )
    if answer.unreadable:
        raise ToolError(f"{subject} {answer.unreadable[:500]}")
    return Converted(answer.text, answer.title[:300], kind, answer.hidden, tuple(answer.notes))


class FoundPython(msgspec.Struct, frozen=True):
    """The interpreter that runs us: the `program`, the folders in which packages are installed, our
    own among them, and what has to be seen of the machine for it to run."""

    program: str
    libraries: tuple[str, ...]
    mounts: tuple[Mount, ...]


def find_python(packages: Sequence[str] = LIBRARIES) -> FoundPython:
    """Where these `packages`, and all that is installed beside them, can be imported."""
    ours = Path(__file__).resolve().parents[2]  # what Python lists to find our package
    base = Path(sys.base_prefix).resolve()
    found = [
        spec.origin for name in packages if (spec := find_spec(name)) is not None and spec.origin
    ]
    libraries = sorted({str(Path(origin).resolve().parents[1]) for origin in found})
    paths = sorted({str(base), str(ours), *libraries}, key=len)
    shown: list[str] = []
    for path in paths:  # neither what the system shows anyway, nor what lies in another
        if not any(Path(path).is_relative_to(each) for each in ("/usr", *shown)):
            shown.append(path)
    program = f"{base}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    return FoundPython(program, (str(ours), *libraries), tuple(Mount(path) for path in shown))


def make_python_command(
    module: str, stdin: bytes, packages: Sequence[str] = LIBRARIES
) -> SandboxCommand:
    """Runs `main` of one of our modules with the interpreter that runs us. It sees itself, our
    package, the folders in which these `packages` are installed, and nothing else of the
    machine."""
    python = find_python(packages)
    start = f"import sys; sys.path[:0] = sys.argv[1:]; from {module} import main; main()"
    return SandboxCommand(
        argv=(python.program, "-I", "-S", "-B", "-c", start, *python.libraries),
        cwd=python.libraries[0],
        mounts=python.mounts,
        stdin=stdin,
        timeout_s=TIMEOUT_S,
        memory_bytes=MEMORY_BYTES,
        file_bytes=1 << 20,
        processes=16,
    )


def _describe_failure(ended: Exit, complained: bytes, time_s: float) -> str:
    if ended.timeout:
        return (
            f"took longer than {time_s:.0f} s to read and was stopped: it is too large, or built "
            "to be slow"
        )
    if ended.limit == "memory" or b"MemoryError" in complained:
        return (
            f"needs more than {MEMORY_BYTES >> 20} MB of memory to be read: a decompression "
            "bomb, or too large"
        )
    if ended.signal:
        return (
            f"crashed the program that reads it (signal {ended.signal}); nothing else was affected"
        )
    why = complained.decode(errors="replace").strip().rpartition("\n")[2][:200]
    return f"could not be read: {why or 'no reason was given'}"
