"""The emojis that can be set on a message on every platform."""

from __future__ import annotations

EMOJIS: dict[str, str] = {
    "👍": "+1",
    "👎": "-1",
    "❤": "heart",
    "🔥": "fire",
    "🎉": "tada",
    "👏": "clap",
    "😁": "grin",
    "🤣": "rolling_on_the_floor_laughing",
    "😢": "cry",
    "😱": "scream",
    "🤔": "thinking_face",
    "🤯": "exploding_head",
    "🥰": "smiling_face_with_3_hearts",
    "🤩": "star-struck",
    "🙏": "pray",
    "👌": "ok_hand",
    "👀": "eyes",
    "💯": "100",
    "⚡": "zap",
    "🏆": "trophy",
}
"""Each with the name that Slack has for it. Telegram takes these from bots:
https://core.telegram.org/bots/api#reactiontypeemoji
"""
