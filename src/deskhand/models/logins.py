"""Names that people know from other programs for a login of theirs, and what to use here instead of
it."""

from __future__ import annotations

import msgspec


class Login(msgspec.Struct, frozen=True):
    """A login that we do not take. `why` is a sentence, `instead` the provider to use with a key,
    `source` the page that says so, `as_of` when it did."""

    why: str
    instead: str
    source: str
    as_of: str


_CHATGPT = Login(
    "Deskhand cannot sign in with ChatGPT yet.",
    "openai",
    "https://developers.openai.com/siwc/token-sharing-open-source",
    "2026-11-22",
)
_CLAUDE = Login(
    "Anthropic does not allow other programs to use the login of a Claude plan.",
    "anthropic",
    "https://code.claude.com/docs/en/legal-and-compliance",
    "2026-11-22",
)
_GOOGLE = Login(
    "Google's terms do not allow other programs to use Antigravity.",
    "google",
    "https://antigravity.google/terms",
    "2026-11-22",
)
_COPILOT = Login(
    "GitHub has no documented interface to Copilot's models, only to its agent.",
    "openai",
    "https://github.blog/changelog/2026-06-02-copilot-sdk-is-now-generally-available",
    "2026-11-22",
)
LOGINS = {
    "codex": _CHATGPT,
    "chatgpt": _CHATGPT,
    "claude_code": _CLAUDE,
    "antigravity": _GOOGLE,
    "github_copilot": _COPILOT,
    "copilot": _COPILOT,
}


def find_login(name: str) -> Login | None:
    """The login that `name` means, however it is spelled."""
    return LOGINS.get(name.lower().replace("-", "_"))
