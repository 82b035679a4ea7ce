"""Who sees text from outside: what is fed by hand, what is not fed and why, and what stands behind
a cap.

Everything else is found: each function of a module that takes text is fed (`feeding`), each regular
expression is run (`scanning`). A new parser, loop or recursion that this does not reach has to be
listed here, and so has a new regular expression that is made at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import h11
import telegram

from deskhand.channels.discord import reader as discord
from deskhand.channels.group_rules import GroupRules
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.slack import reader as slack
from deskhand.channels.telegram.reader import Reader
from deskhand.languages.sentences import say_notice
from deskhand.models.answer_cleaner import AnswerCleaner
from deskhand.net.framing import make_strict
from deskhand.tools.label_marks import LabelMarks
from deskhand.types.labels import Label
from deskhand.types.secret_search import SecretSearch
from deskhand.types.secrets import Scrubber

Feed = Callable[[str, bytes], None]

KEPT_OFF: Final = {
    "testing/": "no part of the program",
    "cli/": (
        "the owner's own terminal: a process of its own, which shows what it was given by the "
        "server"
    ),
    "sandbox/": "starts processes; what it reads comes from the kernel and from our own launcher",
    "tools/documents/": "runs in a worker with limits on time and memory, which is killed",
    "tools/program/inside/": "runs in the sandbox with a limit on time, which is killed",
    "codemode/inside/": "runs in the sandbox with a limit on time, which is killed",
    "customtools/inside/": "runs in the sandbox with a limit on time, which is killed",
    "models/engine_main.py": "the process of the embedded model",
    "models/answer_schema_main.py": "runs in a process of its own with a limit on time, which is killed",  # noqa: E501
    "config/yaml_edit.py": (
        "the owner's settings and what the owner puts into them; they were read before, with limits"
    ),
    "config/first_settings.py": "what the owner is asked at the first start",
    "importers/": "homes of other systems, read once in the process of `deskhand import`",
}
"""Rooms and files whose functions are not fed."""
OURS: Final = frozenset(
    f"deskhand.{name}"
    for name in (
        "policy.rules.Rule",
        "policy.profiles.Offered",
        "memory.project_text.Sheet",
        "config.config.Config",
        "config.config.Settings",
        "config.home.Home",
        "channels.pieces.MessageForm",
    )
)
"""Structs that hold the owner's words or ours, and patterns among them."""
CAPPED: Final[dict[str, tuple[int, str]]] = {
    "mcp/definitions.py:": (32_000, "a definition has at most so many bytes"),
    "models/shim_": (8_192, "the shim refuses a longer request, and a longer program"),
    "computer/desktop/picture.py:": (16, "refs of ours: a letter and a number"),
    "types/intended_loss.py:": (
        8_000,
        "policy/unnamed_files.py looks at no more of what was said, and at no longer paths",
    ),
    "tools/undo.py:parent_folders": (
        4_096,
        "the kernel knows no longer path, and these name files that there were",
    ),
    "jobs/triggers/files.py:_parent_folders": (
        4_096,
        "the file was looked at before, and the kernel knows no longer path",
    ),
    "skills/scan.py:": (
        4_000,
        "it is called aside, window by window; each search is short, and looked at by itself",
    ),
    "jobs/job_file.py:render_job_file": (
        4_000,
        "what is written is read again, and no longer front matter is",
    ),
}
"""By the beginning of their names: functions and regular expressions that get no more than so many
characters."""
SHORT: Final[dict[str, tuple[int, str]]] = {
    "memory/claims.py:": (200, "claim_of looks at no longer text"),
    "models/shim_request.py:_AND_MORE": (160, "longer requests are not looked at"),
    "models/shim_request.py:_ANOTHER_DEED": (160, "longer requests are not looked at"),
    "types/spoken_times.py:": (200, "no longer time is read"),
}
"""The same of regular expressions alone, by the beginning of their file and name."""
MADE: Final[dict[str, str]] = {
    "channels/telegram/reader.py:_is_addressed": "the bot's own name; fed below",
    "channels/telegram/reader.py:_read_text": "the bot's own name; fed below",
    "channels/discord/reader.py:read_words": "the bot's own number; fed below",
    "channels/mail/reader.py:read_mail": "the domain of our own mailbox, in an id of one line",
    "channels/mail/imap.py:_find_number": "a word of ours; a line of at most a megabyte",
    "channels/slack/reader.py:_read_text": "the bot's own name; fed below",
    "channels/twitch/reader.py:_is_named": "the account's own name, in at most 500 characters",
    "channels/twitch/reader.py:_strip_names": "the account's own name, in at most 500 characters",
    "models/shim_correcting.py:_correct_fact": "a word of a request of at most 160 characters",
    "models/shim_library.py:has_example_shape": "a number or a text, escaped; one word",
    "models/shim_mending.py:make_swap_program": "a word, escaped",
    "models/shim_programs.py:strip_sample_values": "a value of a listing, escaped",
    "types/intended_loss.py:_is_replacement_requested": "a path of at most 1,000 characters in a request of which at most 8,000 are looked at",  # noqa: E501
    "types/spoken_words.py:normalize_words": "our own spellings",
    "types/spoken_words.py:take": "our own words; no text of more than 200 characters is read",
}
"""Functions that make a regular expression at run time: what stands in it, and what it gets."""
TOO_DEEP: Final[dict[str, str]] = {
    "tools/define.py:decode_json": "it says so, and who calls it refuses the call",
    "agent/trace.py:read_request": "what our own journal has shown",
    "memory/queries.py:source_text": "our own log",
    "store/branches.py:_beginning": "our own log",
    "jobs/text.py:": "a zone that was checked when the job was written",
    "mcp/own_server.py:_sessions": "what our own API has answered",
    "mcp/own_server.py:_job_names": "what our own API has answered",
    "store/queries.py:tool_of_call": "our own log",
    "store/sql.py:load_sql": "names of packages of ours",
    "store/sql_store.py:_decode_waiting": "rows that we wrote",
    "tools/queries.py:": "rows that we wrote",
    "tools/program/run_program.py:make_program_tools": "a zone that was checked when the settings were read",  # noqa: E501
    "tools/task_rows.py:": "rows that we wrote",
}
"""By the beginning of their names: functions that may raise a RecursionError, and why nobody meets
it."""

_DISK = "reads and writes a file piece by piece"
_TREE = "a program of at most 8,000 characters whose tree is at most 100 deep: see parse_python"
_PATH = "a path that the kernel took, or the parts of one"
UNFED: Final[dict[str, str]] = {
    "computer/browser/actions.py:has_foreign_frames": "addresses of at most 40 frames",
    "computer/desktop/desktop.py:Desktop.view_of": "drops the oldest of fifty",
    "computer/desktop/tool.py:_Step._launch": "a command that an agent writes",
    "computer/desktop/x11.py:X11Screen._require_on_top": "the frames of a window, each in the next",
    "computer/desktop/x11.py:X11Screen._undisturbed": "events that the screen has sent",
    "tools/names.py:_is_hidden": "one character",
    "workspace/erase.py:erase_session": "as deep as sub-agents may be, five at most",
    "types/errors.py:first_of_group": "groups of exceptions in each other, a few at most",
    "agent/judge_call.py:_describe_missing_tool": "64 characters beside the names of our tools",
    "agent/rewind.py:RewindView.turns_at": "once for each turn of a conversation",
    "channels/telegram/channel.py:": "calls another method of that name, of Reader: fed by hand",
    "channels/discord/reader.py:Reader.": "a message of at most 4,000 characters; fed below",
    "channels/mail/reader.py:_list_leaves": "as deep as the library reads mails in mails",
    "channels/matrix/channel.py:open_matrix": "an address of the owner's settings",
    "channels/slack/channel.py:SlackChannel.": "addresses of files, as Slack tells them",
    "channels/mail/channel.py:open_mail": "an address of the owner's settings",
    "channels/mqtt/channel.py:open_mqtt": "an address of the owner's settings",
    "channels/twitch/channel.py:TwitchChannel._read_event": "a time of 19 characters",
    "memory/meaning.py:_EmbeddingIndex.": "rows of a table, in batches",
    "models/decode.py:make_calls": "looks for a free id among the calls of one reply",
    "models/shim_mending.py:": _TREE,
    "models/shim_programs.py:_text_of": _TREE,
    "models/sight.py:detect_vision": "an address of the owner's settings",
    "models/weights.py:read_weights": "a file of ours",
    "speech/providers.py:_read_file": "a file of ours",
    "speech/voice_files.py:read_voices": "a file of ours",
    "speech/voice_files.py:_join_parts": "the files of a package whose hash we know",
    "net/egress.py:_read_server_name": "the first message of a connection, at most 16 kB",
    "net/egress_http.py:Peer.": "h11 with our limits: fed by hand as net/framing.py",
    "net/egress_secrets.py:SecretRule.is_usable_by": "ids of principals",
    "net/inflate.py:_Zlib.feed": "zlib, with limits on what comes out",
    "computer/elements.py:RefTable._name_near": "80 characters beside those of at most 500 names",
    "config/page_edits.py:list_writable_keys": "names of settings",
    "supervision/trace_export.py:Collector.send": "halves of a page of our own log",
    "supervision/backup": "files of the home, or of an archive that the owner names",
    "supervision/site_packages.py:_read_records": "what installers of packages have written",
    "supervision/doctor.py:fetch_status": "an address of the owner's settings",
    "gateway/feed.py:FeedReader.take": "a queue",
    "gateway/feed.py:_take_batch": "a queue",
    "jobs/chat.py:JobsCommand._render_job": "a name of at most 64 characters beside our own",
    "jobs/history.py:JobHistory._next_step": "a number that is free",
    "supervision/start_log.py:_flatten_group": "the causes of an exception of ours",
    "customtools/functions.py:": "a file of at most 64 kB: see tests/customtools/test_functions.py",
    "skills/archive.py:": "names of at most 200 characters, and archives of at most 500 files",
    "skills/run.py:": "a command that an agent writes",
    "skills/skill.py:Skills._scan_sources": "names of folders",
    "skills/skill.py:_list_files": "folders, to a depth of three",
    "store/blobs.py:Blobs.adopt": _DISK,
    "store/move.py:": "rows of a store, page by page",
    "store/postgres.py:": "waits for a server, for a limited time",
    "store/postgres_news.py:": "waits for a server",
    "store/sqlite.py:SqliteWriteConnection.begin": "waits for another process, for a limited time",
    "store/writer.py:": "a queue",
    "tools/program/copying.py:find_changes": "the files of a copy, each once",
    "tools/program/source.py:Source.iter_entries": "names of folders, each once",
    "tools/editor_files.py:_receive_line": "waits for the editor, for a limited time and size",
    "tools/files.py:_find_similar": "a name of at most 255 characters beside those of a folder",
    "tools/files.py:_remember_version": "a table with a fixed number of rows",
    "tools/folders.py:iter_files": _PATH,
    "tools/languages.py:_find_in_python": "a file of at most 128 kB: see parse_python",
    "tools/label_marks.py:LabelMarks._links_label": "at most 120 folders",
    "tools/notes.py:": "files of a folder of ours",
    "tools/pages.py:Pages.put": "drops the oldest pages",
    "tools/paths.py:Workspace.": _PATH,
    "tools/file_snapshots.py:FileSnapshots.": _DISK,
    "tools/tree.py:write_file": _DISK,
    "types/schedules.py:": "moments, with a limit on how many",
    "types/spoken_schedules.py:": "lists of weekdays and units of ours",
    "web/compat_openagent.py:_walk": "folders of a workspace, with a limit on how many",
    "web/openai/history.py:_Builder._new_id": "looks for a free id among the messages of one request",  # noqa: E501
    "web/people.py:make_login": "an address of the owner's settings",
}
"""What may take long and is reached by nothing that is fed, and why that is no matter. By the
beginning of the name."""


def drivers() -> dict[str, Feed]:
    """What is fed by hand, since it needs more than text."""
    say_notice("a", "de")  # a language is read from its file once, while files are open
    return {
        "channels/discord/reader.py:Reader": _discord,
        "channels/slack/reader.py:Reader": _slack,
        "channels/telegram/reader.py:Reader": _telegram,
        "languages/sentences.py:say_notice": _noticed,
        "models/answer_cleaner.py:AnswerCleaner": _answer,
        "tools/label_marks.py:LabelMarks": _marked,
        "net/framing.py:make_strict": _http,
        "types/secret_search.py:SecretSearch": _searched,
        "types/secrets.py:Scrubber": _scrubbed,
    }


_GROUPS = GroupRules(ChannelConfig())


async def _no_file(*given: object) -> bytes:
    raise AssertionError("there are no files")


def _discord(text: str, data: bytes) -> None:
    reader = discord.Reader("discord", "1", _no_file, _no_file, {}, groups=_GROUPS)  # type: ignore[arg-type]
    reader._read_text({"content": text})


def _slack(text: str, data: bytes) -> None:
    reader = slack.Reader("slack", "U1", _no_file, _no_file, {}, groups=_GROUPS)  # type: ignore[arg-type]
    reader._read_text({"text": text})


def _telegram(text: str, data: bytes) -> None:
    me = telegram.User(1, "bot", is_bot=True, username="deskhand_bot")
    chat = telegram.Chat(2, "group")
    message = telegram.Message(3, datetime(2026, 1, 1, tzinfo=UTC), chat, text=text)

    reader = Reader("telegram", me, _no_file, _no_file, groups=_GROUPS)  # type: ignore[arg-type]
    reader._is_addressed(message)
    reader._read_text(message)


def _pieces(text: str) -> Iterator[str]:
    """As a model's answer comes."""
    for start in range(0, len(text), 100):
        yield text[start : start + 100]


def _answer(text: str, data: bytes) -> None:
    cleaner = AnswerCleaner()
    for piece in _pieces(text):
        cleaner.feed(piece)
    cleaner.close()


def _noticed(text: str, data: bytes) -> None:
    for known in ("", "It resets on Sunday, 3 May at 10:00 (UTC).\n"):
        say_notice(known + text, "de")


def _marked(text: str, data: bytes) -> None:
    marks = LabelMarks("/w", {"/w/a": Label("untrusted")}, ())
    for path in (text, f"/w/{text}"):
        marks.file_label(marks.resolve_place(path))
        marks.listing_label_by_name([path, f"{path}/b"])


def _searched(text: str, data: bytes) -> None:
    search = SecretSearch(
        {"sk-0123456789abcdefghijklmn": "[one]", "correct horse battery staple": "[two]"}
    )
    for form in (
        text,
        f"{text} %73k-01234&#53;6789abcdefghijklmn c2stMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u",
    ):
        search.redact(form)
        search.count_partial_chars(form)


def _scrubbed(text: str, data: bytes) -> None:
    scrubber = Scrubber([("sk-0123456789abcdef", "[secret]")])
    for start in range(0, len(data), 1_000):
        scrubber.feed(data[start : start + 1_000])
    scrubber.flush()


def _http(text: str, data: bytes) -> None:
    connection = make_strict(h11.Connection(h11.SERVER, max_incomplete_event_size=64_000))
    with suppress(h11.RemoteProtocolError):
        connection.receive_data(b"GET / HTTP/1.1\r\n")
        for start in range(0, len(data), 1_000):
            connection.receive_data(data[start : start + 1_000])
            connection.next_event()
