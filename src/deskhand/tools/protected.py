"""Which files in a workspace are not written without a person's word, because programs obey what
they say."""

from __future__ import annotations

from collections.abc import Sequence

_GIT = "git runs commands from it"
_SECRETS = "it contains secrets"
_SHELL = "a program runs commands from it at start"
_AGENT = "it tells agents and editors what to run or how to behave"

_FOLDERS = {
    ".git": _GIT,
    ".husky": _GIT,
    ".ssh": _SECRETS,
    ".gnupg": _SECRETS,
    ".aws": _SECRETS,
    ".kube": _SECRETS,
    ".docker": _SECRETS,
    ".claude": _AGENT,
    ".codex": _AGENT,
    ".cursor": _AGENT,
    ".gemini": _AGENT,
    ".vscode": _AGENT,
    ".idea": _AGENT,
    ".devcontainer": _AGENT,
}
_NAMES = {
    **dict.fromkeys(
        (".gitmodules", ".gitconfig", ".gitattributes", ".pre-commit-config.yaml"), _GIT
    ),
    **dict.fromkeys(
        (".netrc", ".pgpass", ".pypirc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".git-credentials"),
        _SECRETS,
    ),
    **dict.fromkeys(
        (".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        _SHELL,
    ),
    **dict.fromkeys(
        (".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc"),
        _SHELL,
    ),
    **dict.fromkeys(
        (".login", ".inputrc", ".envrc", ".wgetrc", ".curlrc", ".ripgreprc", ".pam_environment"),
        _SHELL,
    ),
    **dict.fromkeys(
        (".vimrc", ".exrc", ".nvimrc", ".emacs", ".tmux.conf", ".screenrc", ".pdbrc", ".gdbinit"),
        _SHELL,
    ),
    **dict.fromkeys((".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pythonrc"), _SHELL),
    **dict.fromkeys(
        (".mcp.json", "mcp.json", ".cursorrules", ".claude.json", "deskhand.yaml"), _AGENT
    ),
}
_TOP_LEVEL_NAMES = dict.fromkeys(("system.md", "agent.md", "rules.md"), _AGENT)
_ENV_EXAMPLES = {".env.example", ".env.sample", ".env.template", ".env.dist"}


def why_protected(parts: Sequence[str]) -> str:
    """Why the file at `parts` (names below a root) is protected; empty: it is not.

    Names are compared as the most forgiving file system would: without case, without dots and
    spaces at the end.
    """
    plain = [each.casefold().rstrip(". ") for each in parts]
    for folder in plain:
        if folder in _FOLDERS:
            return _FOLDERS[folder]
    name = plain[-1] if plain else ""
    if name == ".env" or (name.startswith(".env.") and name not in _ENV_EXAMPLES):
        return _SECRETS
    if len(plain) == 1 and name in _TOP_LEVEL_NAMES:
        return _TOP_LEVEL_NAMES[name]
    return _NAMES.get(name, "")
