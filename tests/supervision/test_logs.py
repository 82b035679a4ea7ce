"""The log holds no secret, and a home that cannot be written is no reason to stop."""

from __future__ import annotations

import io
import logging
from pathlib import Path

from deskhand.config.config import read_settings
from deskhand.supervision.logs import logging_to_file

log = logging.getLogger("deskhand.test")


def test_secrets_are_named_not_shown(tmp_path: Path) -> None:
    env = {
        "OPENAI_API_KEY": "sk-abcdefgh",
        "SLACK_BOT_TOKEN": "sk-abcdefgh-longer",
        "SHORT_KEY": "abc",
        "HOME": "/h",
    }
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), **env})
    with logging_to_file(settings):
        log.info("with %s and abc", "sk-abcdefgh")
        try:
            raise ValueError("sk-abcdefgh-longer")
        except ValueError:
            log.exception("it broke")
        logging.getLogger("other").info("not ours, and not a warning")
    text = settings.home.log.read_text()
    assert "with {{secret:OPENAI_API_KEY}} and abc" in text
    assert "ValueError: {{secret:SLACK_BOT_TOKEN}}" in text
    assert "sk-abcdefgh" not in text
    assert "not ours" not in text
    assert settings.home.log.stat().st_mode & 0o777 == 0o600


def test_who_is_heard_from_when(tmp_path: Path) -> None:
    """Others from WARNING on, we from INFO on or from what the configuration says; the console
    hears the same."""
    other = logging.getLogger("other")
    heard = io.StringIO()
    for level in ("info", "warning", "debug"):
        settings = read_settings(
            None,
            {"DESKHAND_HOME": str(tmp_path), "DESKHAND_LOG_LEVEL": level, "A_KEY": "sk-secret"},
        )
        with logging_to_file(settings, logging.StreamHandler(heard)):
            log.debug("ours at debug, level %s", level)
            log.info("ours at info, level %s", level)
            log.warning("ours at warning, level %s sk-secret", level)
            other.info("theirs at info, level %s", level)
            other.warning("theirs at warning, level %s", level)
    log.warning("after the end")
    lines = [line.partition(": ")[2] for line in settings.home.log.read_text().splitlines()]
    ours = {
        "info": ("info", "warning"),
        "warning": ("warning",),
        "debug": ("debug", "info", "warning"),
    }
    wanted = []
    for level, said in ours.items():
        wanted += [
            f"ours at {each}, level {level}" + " {{secret:A_KEY}}" * (each == "warning")
            for each in said
        ]
        wanted.append(f"theirs at warning, level {level}")
    assert lines == wanted
    assert [line.partition(": ")[2] for line in heard.getvalue().splitlines()] == wanted


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    with logging_to_file(settings):
        log.warning("nobody hears this")


def test_old_lines_are_put_aside_and_the_oldest_forgotten(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    with logging_to_file(settings):
        for number in range(25):
            log.warning("%02d %s", number, "x" * 1_000_000)
    files = sorted(path.name for path in settings.home.logs.iterdir())
    assert files == ["deskhand.log", "deskhand.log.1", "deskhand.log.2", "deskhand.log.3"]
    assert all(path.stat().st_size <= 5_000_000 for path in settings.home.logs.iterdir())
    assert (
        ": 24 " in settings.home.log.read_text()
        and ": 00 " not in (settings.home.logs / files[-1]).read_text()
    )
