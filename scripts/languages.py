"""What Deskhand says, in its other languages.

    python scripts/languages.py da Dansk

begins the language `da` or brings it up to date: `src/deskhand/languages/da.json` then has every
text of the page and every sentence of the server, those that are new with "" in place of a
translation, and none that there is no more. What is still "" is said in English. Without arguments,
every language is brought up to date.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deskhand.channels.guides import GUIDES
from deskhand.gateway.progress_text import TOOL_PHRASES
from deskhand.jobs.blueprints import BLUEPRINTS, CRON_DAYS
from deskhand.jobs.text import OUTCOME_TEXTS, STATE_TEXTS
from deskhand.policy.ask_text import EFFECT_SENTENCES
from deskhand.policy.permission_modes import PERMISSION_MODES
from deskhand.runtime.onboarding import EXAMPLE_REQUESTS
from deskhand.types.commands import COMMANDS
from deskhand.types.cron_texts import CRON_TEXTS
from deskhand.types.effects import EFFECT_PHRASES
from deskhand.types.jobs import FAILURE_TEXTS
from deskhand.types.schedules import INTERVAL_TEXTS
from deskhand.web.previews import DOCUMENT_NOTE, INSTALL_OFFICE_NOTE

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "deskhand"
STATIC = SOURCE / "web" / "static"
LANGUAGES = SOURCE / "languages"
KEYS = STATIC / "js" / "panels" / "keys.js"

_CALL = re.compile(r"(?<![\w.$])(t|tRich|tCount)\(")
_SPACE = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'")
_WORDS = re.compile(r"[a-z']+( [A-Za-z_']+)+|nowhere|any")
"""A default that is described, such as `the first of models`."""
_DEFINITION = re.compile(r"(?:function|const)\s+$")
Texts = dict[str, str]
"""The English texts; for one that has several forms by a count, the form for one, else ""."""


def collect() -> Texts:
    """Every text that the page says by itself."""
    found: Texts = {}
    for file in sorted((STATIC / "js").rglob("*.js")):
        source = file.read_text()
        for call in _CALL.finditer(source):
            if _DEFINITION.search(source, 0, call.start()):
                continue
            if call[1] == "tCount":
                one, at = _read_text(source, _skip_argument(source, call.end()), file)
                more, _ = _read_text(source, _skip_comma(source, at), file)
                found[more] = one
            else:
                text, _ = _read_text(source, call.end(), file)
                found.setdefault(text, "")
    return found | dict.fromkeys((*_setting_texts(), *_server_texts()), "")


def collect_sentences() -> list[str]:
    """The sentences that the server writes, for chats, the terminal and the page, which shows them
    through `tServer`: those that `mark_text` marks, and those that stand in a table."""
    found = {
        *_tables(),
        *CRON_TEXTS,
    }
    for file in sorted(SOURCE.rglob("*.py")):
        source = file.read_text()
        if "mark_text(" in source:
            found |= set(_marked_texts(ast.parse(source), file))
    return sorted(found)


def _marked_texts(module: ast.Module, file: Path) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name("mark_text"), args=[ast.Constant(str(text))]):
                yield text
            case ast.Call(func=ast.Name("mark_text")):
                raise SystemExit(f"{file}:{node.lineno}: a text is written out here")
            case _:
                pass


def _tables() -> Iterator[str]:
    yield from (*STATE_TEXTS.values(), *OUTCOME_TEXTS.values())
    for one, more in INTERVAL_TEXTS.values():
        yield from (one, more)
    yield from FAILURE_TEXTS.values()
    yield from EFFECT_PHRASES.values()
    yield from EFFECT_SENTENCES.values()
    yield from TOOL_PHRASES.values()
    yield from (command.help for command in COMMANDS.values())


def _server_texts() -> Iterator[str]:
    """What the server has as a list of texts, for the page and for others. The page says them
    through `tData`."""
    yield from (command.help for command in COMMANDS.values())
    yield from PERMISSION_MODES.values()
    yield from CRON_DAYS
    yield from (DOCUMENT_NOTE, INSTALL_OFFICE_NOTE, *EXAMPLE_REQUESTS)
    for blueprint in BLUEPRINTS:
        yield from filter(None, (blueprint.title, blueprint.about, blueprint.when))
        yield from (slot.question for slot in blueprint.slots)
    for guide in GUIDES.values():
        yield guide.after
        for need in guide.needs:
            yield from (need.label, need.where)


def _setting_texts() -> Iterator[str]:
    """What is said of the keys of the configuration."""
    listed = KEYS.read_text().partition("export const KEYS = ")[2].rstrip().removesuffix(";")
    entries: dict[str, list[str]] = json.loads(re.sub(r",\s*}$", "}", listed))
    for without, does, _ in entries.values():
        yield does
        if _WORDS.fullmatch(without):
            yield without


def _read_text(source: str, at: int, file: Path) -> tuple[str, int]:
    """The text that stands there, whole or in parts that are joined with `+`, and where it ends."""
    parts: list[str] = []
    while True:
        at = _end_of_space(source, at)
        literal = _STRING.match(source, at)
        if literal is None:
            line = source.count("\n", 0, at) + 1
            raise SystemExit(f"{file}:{line}: a text is written out here, or is given to tData")
        parts.append(_unquote(literal[0]))
        at = _end_of_space(source, literal.end())
        if source[at] != "+":
            return "".join(parts), at
        at += 1


def _unquote(literal: str) -> str:
    inner = literal[1:-1]
    if literal[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    text: str = json.loads(f'"{inner}"')
    return text


def _end_of_space(source: str, at: int) -> int:
    space = _SPACE.match(source, at)
    return space.end() if space else at


def _skip_comma(source: str, at: int) -> int:
    if source[at] != ",":
        raise SystemExit(f"a comma is missing before {source[at : at + 40]!r}")
    return at + 1


def _skip_argument(source: str, at: int) -> int:
    """Where the argument after this one begins."""
    depth = 0
    while depth or source[at] != ",":
        depth += (source[at] in "([{") - (source[at] in ")]}")
        at += 1
    return at + 1


def update(file: Path, name: str, texts: Texts) -> str:
    """Write the file of a language with a place for each of these texts. Says how far it is."""
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    said = known.get("sentences", {}) | known.get("texts", {})
    language = {
        "name": name or known.get("name", file.stem),
        "dir": known.get("dir", "ltr"),
        "formats": known.get("formats", {}),
        "sentences": {text: said.get(text) or "" for text in collect_sentences()},
        "texts": {
            text: said.get(text) or ({"other": ""} if texts[text] else "") for text in sorted(texts)
        },
    }
    file.write_text(json.dumps(language, ensure_ascii=False, indent=2) + "\n")
    every = language["sentences"] | language["texts"]
    missing = sum(not any(forms(said)) for said in every.values())
    return f"{len(every)} texts, {missing} of them still in English"


def forms(said: str | dict[str, str]) -> list[str]:
    """What is said instead of a text, in each form of it."""
    return [said] if isinstance(said, str) else list(said.values())


def main(arguments: list[str]) -> None:
    texts = collect()
    code, name = (*arguments, "", "")[:2]
    files = [LANGUAGES / f"{code}.json"] if code else sorted(LANGUAGES.glob("*.json"))
    for file in files:
        print(f"{file.relative_to(ROOT)}: {update(file, name, texts)}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
