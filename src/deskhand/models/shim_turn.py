"""What a small model needs to know of a conversation, read from the messages of a request alone: nothing is kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from ..types.labels import LOCAL
from ..types.messages import Audio, File, Image, Message, Text, ToolResult
from ..types.turn import BESIDE, MEMORIES
from . import encode
from .base import Shown
from .shim_prompts import NOW_REPLY, after_result, as_json
from .shim_tools import FORMS, READS, REPLY, Move, search_words, small_move

LISTING = "Files here: "
"""Begins the line of the system prompt that names what is in the workspace; `runtime` writes it for small models."""
LISTING_CHARS = 300
STEPS = 7
BLOCKED = 2
"""How often after a failure the model must try something else, before it may speak."""
BUDGET = 1900
"""Tokens for the whole conversation: what a slot of 4,096 leaves beside the prompt and the reply."""
EARLIER = 500
"""Tokens of it for what was said before this turn."""


KNOWN = 150
"""Tokens of it for what memory found."""


class Did(msgspec.Struct, frozen=True):
    """A step of this turn and what came of it."""

    move: Move
    result: str
    status: str

    @property
    def failed(self) -> bool:
        """The world is not as the step wanted it."""
        return self.status != "ok"

    @property
    def empty(self) -> bool:
        """A search for words that found nothing: no failure, but no end either. That a file is not there is one."""
        text = str(self.move.arguments.get("text", ""))
        return self.move.tool == "search_files" and bool(_NOTHING.match(self.result)) and not _FILE.fullmatch(text)

    @property
    def reads(self) -> bool:
        return self.move.tool in READS

    def of(self, tool: str, path: str) -> bool:
        return self.move.tool == tool and self.move.arguments.get("path") == path


_FILE = re.compile(r"[\w./ -]*\.\w{1,5}")
_TEXT_FILE = re.compile(r"[^:\n]+\.(cfg|conf|csv|ini|json|log|md|py|rst|sh|toml|txt|xml|ya?ml)")
_NOTHING = re.compile(r"(nothing|no (match|file|line|hit|result)|\[no output\])", re.IGNORECASE)


class Turn(msgspec.Struct, frozen=True):
    """The request of a person, what was said before it, and the steps since. `key` is that of the request's message,
    `known` what memory found for it."""

    request: str
    key: int
    earlier: tuple[tuple[str, str], ...] = ()
    did: tuple[Did, ...] = ()
    known: tuple[str, ...] = ()


Chat = list[tuple[str, str]]
"""(role, text) in turn."""


def read_turn(messages: Sequence[Shown]) -> Turn:
    """The turn that these messages end with. Hints of the runtime are for models that read them, and are left out."""
    start = max((i for i, shown in enumerate(messages) if said_by_person(shown.message)), default=-1)
    if start < 0:
        last = messages[-1] if messages else None
        return Turn(last.message.text if last else "", last.key if last else 0)
    earlier = tuple(
        (shown.message.role, text)
        for shown in messages[:start]
        if (text := said_by_person(shown.message) if shown.message.role == "user" else _answered(shown.message))
    )
    asked, did = messages[start], steps_of(messages[start + 1 :])
    return Turn(said_by_person(asked.message), asked.key, earlier, did, _known(asked.message))


def said_by_person(message: Message) -> str:
    """What a person said in it; '' for everything else. The date in front and the runtime's notes are its own."""
    if message.role != "user":
        return ""
    texts = [
        part.text if isinstance(part, Text) else encode.placeholder(part)
        for part in message.parts
        if isinstance(part, Image | Audio | File)
        or (isinstance(part, Text) and part.label != LOCAL and not part.text.startswith(BESIDE))
    ]
    return "\n".join(texts).strip()


def _known(message: Message) -> tuple[str, ...]:
    """The facts that memory found for it, the best first."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.startswith(MEMORIES)]
    return tuple(match[1] for text in texts for match in _FACT.finditer(text))


_FACT = re.compile(r"^- #\d+ \([\d-]+\) (.+)$", re.MULTILINE)


def _answered(message: Message) -> str:
    return message.text if message.role == "assistant" and not message.calls else ""


def steps_of(messages: Sequence[Shown]) -> tuple[Did, ...]:
    results = {part.call_id: part for shown in messages for part in shown.message.parts if isinstance(part, ToolResult)}
    return tuple(
        Did(small_move(call.name, bytes(call.arguments)), results[call.id].text, results[call.id].status)
        for shown in messages
        for call in shown.message.calls
        if call.id in results
    )


def listing_of(system: Sequence[str]) -> str:
    """The names in the workspace, from the line of the system prompt that starts with LISTING; '' without one."""
    last = system[-1] if system else ""
    found = next((line for line in last.splitlines() if line.startswith(LISTING)), "")
    return found.removeprefix(LISTING)[:LISTING_CHARS]


class Say(msgspec.Struct, frozen=True):
    """Words of ours, in place of the model's: it would say that all went well. `failed`: it did not."""

    text: str
    failed: bool = True


class Choose(msgspec.Struct, frozen=True):
    """The model makes a move with one of these tools."""

    names: tuple[str, ...]


class Sort(msgspec.Struct, frozen=True):
    """The model sorts the request, and picks the first tool among these, by single words."""

    names: tuple[str, ...]


class Do(msgspec.Struct, frozen=True):
    """This move, without asking the model: it is what always helps here."""

    move: Move


Plan = Say | Choose | Sort | Do

SAVE = "save_memory"
_REMEMBER = re.compile(
    r"(?:please,? )?(?:remember|keep in mind|don't forget)(?:,? that\b|:)? "
    r"(?!(?:to|when|how|what|where|who|the time)\b)(.{3,500})",
    re.IGNORECASE,
)
_MORE = re.compile(r"[?]$|\bthen\b|[.;!] \w", re.IGNORECASE)


def _to_remember(request: str) -> str:
    """The one fact that this asks to remember, where it asks for nothing else; '' for everything else."""
    found = _REMEMBER.fullmatch(request.strip())
    return "" if found is None or _MORE.search(found[1]) else found[1].strip()


def plan(turn: Turn, offered: Collection[str]) -> Plan:
    """What comes next. After a failure the model must try something else, BLOCKED times, before it may speak; and what
    it could not do, or was not allowed to, is said in our words."""
    names = tuple(name for name in FORMS if name in offered or name == REPLY)
    if not turn.did and SAVE in offered and (fact := _to_remember(turn.request)):
        return Do(Move(SAVE, {"content": fact}))
    if not turn.did:
        return Sort(names) if len(names) > 1 else Choose(names)
    last, missed = turn.did[-1], len({as_json(d.move.tool, d.move.arguments) for d in turn.did if d.failed})
    owed = _owed(turn.did)
    ended = len(turn.did) >= STEPS - 1 or len(names) == 1
    if last.status in ("denied", "expired", "unasked"):
        return Say(f"I did not do that: {_first_line(last)}")
    if last.status not in ("ok", "error"):
        return Say(f"I was interrupted: {_first_line(last)}")
    if last.move.tool == SAVE:
        kept = last.result.startswith("ok")
        instead = last.result.partition(" in place of ")[2]
        content = last.move.arguments.get("content", "")
        said = f"I will remember: {content}" + (f"\nIt takes the place of {instead}" if instead else "")
        said = said if kept else f"About that: {last.result}"
        return Say(said, failed=last.failed)
    if owed and (ended or missed > BLOCKED):
        return Say(f"I could not do that. The step with {owed.move.tool} failed: {_first_line(owed)}")
    if ended:
        return Choose((REPLY,))
    if help_move := _help(turn.did, offered):
        return Do(help_move)
    silent = owed is not None or (last.empty and sum(did.empty for did in turn.did) <= BLOCKED)
    return Choose(tuple(name for name in names if name != REPLY) if silent else names)


def _owed(did: Sequence[Did]) -> Did | None:
    """The failed step that nothing has made good yet: the last one, or the one before looking why."""
    for step in reversed(did):
        if step.failed:
            return step
        if not step.reads:
            return None
        if step.move.tool != "read_file":
            return None
    return None


def _help(did: Sequence[Did], offered: Collection[str]) -> Move | None:
    """What to do without being told: look into a file whose edit did not fit, or that a search found by its name alone;
    look for the words of a phrase."""
    last = did[-1]
    path = last.move.arguments.get("path", "")
    if last.move.tool == "edit_file" and last.status == "error" and "there is no" not in last.result:
        unread = not any(step.of("read_file", path) for step in did)
        return Move("read_file", {"path": path}) if unread and "read_file" in offered else None
    if last.move.tool == "search_files" and _TEXT_FILE.fullmatch(name := last.result.strip()):
        unread = not any(step.of("read_file", name) for step in did)
        return Move("read_file", {"path": name}) if unread and "read_file" in offered else None
    if last.empty:
        phrase = next(step.move.arguments.get("text", "") for step in did if step.move.tool == "search_files")
        tried = [step.move.arguments.get("text") for step in did if step.move.tool == "search_files"]
        if len(tried) <= BLOCKED:
            return next((Move("search_files", {"text": w}) for w in search_words(phrase) if w not in tried), None)
    return None


def _first_line(did: Did) -> str:
    lines = [line for line in did.result.splitlines() if line.strip() and not line.startswith("[stderr]")]
    return lines[0][:300] if lines else "it did not say why"


def fit_edit(move: Move, turn: Turn) -> Move:
    """An edit whose old text is in the file but for white space or line numbers, with the text as it stands there."""
    if move.tool != "edit_file":
        return move
    path, old = move.arguments["path"], _unnumbered(move.arguments["old"])
    known = next((_unnumbered(did.result) for did in reversed(turn.did) if did.of("read_file", path)), "")
    if not known or not old.strip() or old in known:
        return Move(move.tool, {**move.arguments, "old": old})
    loose = r"\s*".join(re.escape(character) for character in re.sub(r"\s+", "", old))
    found = set(re.findall(loose, known))
    if len(found) != 1 or len(only := found.pop()) < 4:
        return move
    new = move.arguments["new"].strip()
    if " = " not in only:
        new = re.sub(r"\s*=\s*", "=", new) if "=" in only else new
    return Move(move.tool, {**move.arguments, "old": only, "new": new})


_NUMBER = re.compile(r"^ *\d+ \| ?", re.MULTILINE)


def _unnumbered(text: str) -> str:
    """Lines of a file without their numbers, which a small model takes for a part of the text."""
    return _NUMBER.sub("", text)


def repeats(move: Move, turn: Turn) -> Did | None:
    """The earlier step that this one repeats. Looking again after something has changed is no repetition."""
    for number, did in enumerate(turn.did):
        if did.move == move:
            changed = any(later.move.tool not in READS and not later.failed for later in turn.did[number + 1 :])
            return None if move.tool in READS and changed else did
    return None


def chat(turn: Turn, listing: str) -> Chat:
    """The conversation as the model is shown it, within BUDGET, the newest in full as far as that goes."""
    asked = clip(turn.request, BUDGET // 2)
    told = f"\n(you know: {clip('; '.join(turn.known), KNOWN)})" if turn.known else ""
    said: Chat = [("user", asked + told + (f"\n(files here: {listing})" if listing else ""))]
    room = BUDGET - sum(cost(text) for _, text in said)
    steps: Chat = []
    for did in reversed(turn.did):
        move = as_json(did.move.tool, did.move.arguments)
        result = f"Result of {did.move.tool}:\n" + clip(result_words(did), max(60, room // 2 - cost(move)))
        pair: Chat = [("assistant", clip(move, 400)), ("user", result + after_result(clip(asked, 60)))]
        room -= sum(cost(text) for _, text in pair)
        steps = pair + steps
    return _earlier(turn, min(EARLIER, room)) + said + steps


def result_words(did: Did) -> str:
    """A result as the model is used to it: failures begin with ERROR, lines of files have no numbers."""
    if did.failed:
        return f"ERROR: {did.result}"
    if did.result == "[no output]":
        return "ok (no output)"
    return _unnumbered(did.result) if did.move.tool == "read_file" else did.result


def repeated(move: Move, did: Did) -> Chat:
    """What is said to a step that was not done again: its result is there, and now the model must answer."""
    result = f"Result of {move.tool}:\n{clip(result_words(did), 300)}{NOW_REPLY}"
    return [("assistant", as_json(move.tool, move.arguments)), ("user", result)]


def _earlier(turn: Turn, room: int) -> Chat:
    """The last things that were said before, as far as there is room; it begins with the person."""
    kept: Chat = []
    for role, text in reversed(turn.earlier):
        short = clip(text, 150)
        room -= cost(short) + 8
        if room < 0:
            break
        kept.insert(0, (role, as_json(REPLY, {"text": short}) if role == "assistant" else short))
    while kept and kept[0][0] != "user":
        kept.pop(0)
    return kept


def cost(text: str) -> int:
    """About how many tokens `text` has, rather too many."""
    plain = sum(character.isascii() for character in text)
    return plain // 3 + (len(text) - plain) + 4


def clip(text: str, tokens: int) -> str:
    """`text`, cut in its middle to about so many tokens."""
    if cost(text) <= tokens:
        return text
    share = max(20, len(text) * tokens // cost(text))
    return f"{text[: share * 2 // 3]}\n…({len(text) - share} characters left out)…\n{text[-(share // 3) :]}"
