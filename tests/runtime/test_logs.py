"""The log holds no secret, and a home that cannot be written is no reason to stop."""

from __future__ import annotations

import logging
from pathlib import Path

from deskhand.runtime.config import read_settings
from deskhand.runtime.logs import logging_to_file

log = logging.getLogger("deskhand.test")


def test_secrets_are_named_not_shown(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "sk-abcdefgh", "SLACK_BOT_TOKEN": "sk-abcdefgh-longer", "SHORT_KEY": "abc", "HOME": "/h"}
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), **env})
    with logging_to_file(settings):
        log.info("with %s and abc", "sk-abcdefgh")
        try:
            raise ValueError("sk-abcdefgh-longer")
        except ValueError:
            log.exception("it broke")
        logging.getLogger("other").info("not ours, and not a warning")
    text = settings.home.log.read_text()
    assert "with [OPENAI_API_KEY] and abc" in text
    assert "ValueError: [SLACK_BOT_TOKEN]" in text
    assert "sk-abcdefgh" not in text
    assert "not ours" not in text
    assert settings.home.log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})
    with logging_to_file(settings):
        log.warning("nobody hears this")
