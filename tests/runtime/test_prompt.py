"""The system prompt: one order, stable first, and the same bytes while no file changes."""

from __future__ import annotations

from pathlib import Path

from deskhand.runtime.prompt import FILE_CHARS, WORKSPACE_FILES, Prompt
from deskhand.types.identity import Address

CHAT, GROUP = Address("chat", chat="1"), Address("chat", chat="2", group=True)


def prompt(folder: Path) -> Prompt:
    return Prompt("SYSTEM", [(name, folder / name) for name in WORKSPACE_FILES], folder / "MEMORY.md")


def test_order_and_memory_in_private_only(tmp_path: Path) -> None:
    for name in (*reversed(WORKSPACE_FILES), "MEMORY.md"):
        (tmp_path / name).write_text(f" text of {name}\n")
    stable, place = prompt(tmp_path)(CHAT)
    places = [stable.index(words) for words in ("SYSTEM", *(f"# {name}\ntext of {name}" for name in WORKSPACE_FILES))]
    assert places == sorted(places) and stable.endswith("# MEMORY\ntext of MEMORY.md")
    assert place == "# Context\nYou are talking on chat."
    shared, group = prompt(tmp_path)(GROUP)
    assert "MEMORY" not in shared and stable.startswith(shared) and group.endswith("in a group.")


def test_an_edit_is_seen_and_nothing_else_changes_it(tmp_path: Path) -> None:
    blocks = prompt(tmp_path)
    assert {blocks(CHAT) for _ in range(20)} == {("SYSTEM", "# Context\nYou are talking on chat.")}
    (tmp_path / "SOUL.md").write_text("one")
    assert {blocks(CHAT)[0] for _ in range(20)} == {"SYSTEM\n\n# SOUL.md\none"}
    (tmp_path / "SOUL.md").write_text("another")
    assert blocks(CHAT)[0] == "SYSTEM\n\n# SOUL.md\nanother"
    (tmp_path / "SOUL.md").unlink()
    assert blocks(CHAT)[0] == "SYSTEM"


def test_a_file_of_any_kind_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_bytes(b"\xff\xfe" + b"x" * 2 * FILE_CHARS)
    (tmp_path / "USER.md").mkdir()
    (tmp_path / "CODE.md").symlink_to(tmp_path / "CODE.md")
    stable, _ = prompt(tmp_path)(CHAT)
    assert len(stable) < FILE_CHARS + 100 and "USER" not in stable and "CODE" not in stable
