"""What steers programs outside the sandbox: commands may use git as they like, but not leave behind
what it obeys."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from deskhand.tools.files import edit_file, write_file
from deskhand.tools.gitconfig import parse_config
from deskhand.tools.shell import shell
from deskhand.types.errors import ProtectedPath

from .conftest import Hands

STEERING = (
    *(
        ".git/hooks/pre-commit",
        ".git/config",
        ".env",
        ".env.local",
        ".bashrc",
        "sub/.profile",
        ".mcp.json",
    ),
    *(
        "deskhand.yaml",
        "RULES.md",
        "SYSTEM.md",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".husky/pre-commit",
    ),
    *(
        "proj/.git/hooks/post-checkout",
        "proj/.git/config",
        ".ssh/authorized_keys",
        ".Env",
        ".GIT/config",
        ".npmrc",
    ),
)


def tree_of(folder: Path) -> dict[str, object]:
    """Every name in a folder, with what it holds."""
    return {
        str(path.relative_to(folder)): path.readlink()
        if path.is_symlink()
        else path.is_dir() or path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("path", STEERING)
async def test_tools_for_files_do_not_write_what_steers(hands: Hands, path: str) -> None:
    hands.write(path, b"[core]\n\tbare = false\n")
    before = tree_of(hands.folder)
    for call in (
        hands(write_file, path=path, content="[core]\n\thooksPath = x\n"),
        hands(edit_file, path=path, edits=[{"old": "bare", "new": "x"}]),
    ):
        with pytest.raises(ProtectedPath, match="is protected"):
            await call
    assert tree_of(hands.folder) == before


@pytest.mark.parametrize("path", STEERING)
@pytest.mark.parametrize("how", ["write", "replace", "link", "append", "mode", "later", "killed"])
async def test_commands_do_not_leave_what_steers(hands: Hands, path: str, how: str) -> None:
    if how != "write":
        hands.write(path, b"[core]\n\tbare = false\n").chmod(0o600)
    hands.write("evil", b"[core]\n\thooksPath = x\n")
    before = tree_of(hands.folder)
    name = shlex.quote(path)
    folder = shlex.quote(str(Path(path).parent))
    script = {
        "write": f"mkdir -p {folder}; printf '[core]\\n\\thooksPath = x\\n' > {name}",
        "replace": f"cp evil {name}.new; mv {name}.new {name}",
        "link": f"ln -sf $(realpath evil) {name}",
        "append": f"cat evil >> {name}",
        "mode": f"cat evil >> {name}; chmod 777 {name}",
        "later": f"(sleep 0.2; cat evil >> {name}) & (sleep 0.1; cat evil > {name}) & wait",
        "killed": f"cat evil >> {name}; kill -9 $$",
    }[how]
    said = await hands(shell, command=script)
    assert "restored" in said and "ask the person" in said
    if not path.endswith("/config"):  # of which a command may take away what is harmless
        after = tree_of(hands.folder)
        assert {each: after.get(each) for each in before} == before
    kept = hands.folder / path
    assert not kept.is_symlink() and (not kept.exists() or b"hooksPath" not in kept.read_bytes())


EVIL = (
    "git config core.hooksPath $PWD/x",
    "git config core.fsmonitor 'touch /tmp/x'",
    "git config core.sshCommand evil",
    "git config alias.status '!evil'",
    "git config include.path ../evil",
    "git config includeIf.gitdir:/.path ../evil",
    "git config filter.x.clean evil",
    "git config diff.x.textconv evil",
    "git config merge.x.driver evil",
    "git config credential.helper '!evil'",
    "git config remote.origin.uploadpack evil",
    "git config remote.new.url 'ext::sh -c evil'",
    "git config remote.new.url -- --upload-pack=evil",
    "git config submodule.x.update '!evil'",
    "git config url.http://evil/.insteadOf https://",
    "git config core.worktree /home",
    "git config gc.recentObjectsHook evil",
    "git config branch.main.pushRemote evil",
    "git config remote.pushDefault evil",
    "git config push.gpgSign x; git config gpg.program evil",
    "git remote set-url origin http://evil.test/",
    (
        "git config core.pager evil; git config extensions.worktreeConfig true; git config "
        "--worktree core.pager x"
    ),
    "printf '[core]pager=evil # x\\n' >> .git/config",
    "printf '[core \"\"]\\n\\n[cOrE]\\tpager\\\\\\n = evil\\n' >> .git/config",
    "printf '[core]\\n  editor = \"a\\\\\\nb\" ; c\\n' >> .git/config",
    "printf '[submodule.x \"y\"]\\n\\tupdate = !evil\\n' >> .git/config",
    "printf '[remote.x \"y\"]\\n\\turl = ext::sh -c evil\\n' >> .git/config",
    "printf '[remote.x.y]\\n\\turl = ext::sh -c evil\\n' >> .git/config",
    "echo '[]' >> .git/config",
    "echo '[broken' >> .git/config",
    "head -c 2000000 /dev/zero >> .git/config",
    "mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "mkdir h; echo evil > h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks",
    "echo /tmp > .git/commondir",
)


@pytest.mark.parametrize("script", EVIL)
async def test_git_is_not_turned_against_the_person(hands: Hands, script: str) -> None:
    begin = (
        "git init -q -b main . && git remote add origin https://example.test/x && git config "
        "user.name Me"
    )
    assert "restored" not in await hands(shell, command=begin)
    before = (hands.folder / ".git/config").read_bytes()
    said = await hands(shell, command=script)
    assert "restored" in said, said
    after = parse_config((hands.folder / ".git/config").read_bytes())
    assert {(each.key, each.value) for each in after} <= {
        (each.key, each.value) for each in parse_config(before)
    } | {("extensions.worktreeconfig", "true")}
    for name in (".git/config.worktree", ".git/commondir", ".git/hooks/post-checkout"):
        path = hands.folder / name
        assert not path.exists() or b"evil" not in path.read_bytes() + b"x"
    assert not (hands.folder / ".git/hooks").is_symlink()


async def test_git_is_used_as_ever(hands: Hands) -> None:
    script = """set -e
    git init -q -b main repo; cd repo; git config user.name Me; git config user.email me@example.test
    echo 1 > a; git add a; git commit -qm one; git remote add origin ../other; git branch side; git checkout -q side
    echo 2 > a; git commit -qam two; git tag v1; git stash list; git gc -q; cd ..
    git clone -q repo other; cd other; git config user.name Me; git config user.email me@example.test
    git checkout -q -b work origin/main; git push -q origin work; git pull -q --rebase origin side
    git worktree add -q ../tree main; cd ../tree; echo 3 > b; git add b
    git -c user.name=x -c user.email=x commit -qm three; cd ..
    git -c protocol.file.allow=always -C other submodule add -q ../repo sub; git -C other commit -qm sub
    git -C other remote rename origin upstream; git -C other remote remove upstream; git clone -q --bare repo bare.git
    git -C tree status --short; git -C other log --oneline | wc -l"""
    said = await hands(shell, command=script)
    assert "restored" not in said and said.strip().endswith("3"), said
    assert (hands.folder / "other/.git/modules/sub/config").exists()


ELSEWHERE = (
    "mkdir x node_modules; git init -q --separate-git-dir=node_modules/evil x",
    (
        "mkdir -p x hidden/refs hidden/objects; echo 'ref: refs/heads/x' > hidden/HEAD; echo "
        "'gitdir: ../hidden' > x/.git"
    ),
    "mkdir -p x; echo 'gitdir: /tmp/evil' > x/.git",
    "git init -q x; mv x/.git evil; ln -s ../evil x/.git",
    (
        "mkdir -p docs/refs docs/objects; echo 'ref: refs/heads/x' > docs/HEAD; echo "
        "'[core]pager=evil' > docs/config"
    ),
    (
        "mkdir -p docs/hooks docs/refs docs/objects; echo x > docs/hooks/post-merge; echo 'ref: "
        "refs/heads/x' > docs/HEAD"
    ),
    "git init -q --bare b.git; git -C b.git config core.fsmonitor evil",
    """git init -q x; git -C x -c user.name=a -c user.email=b commit -q --allow-empty -m x
    git -C x worktree add -q ../t; echo /tmp > x/.git/worktrees/t/commondir""",
    "git init -q x; mv x/.git y; git config -f y/config core.pager evil; mv y x/.git",
    """git init -q x; mkdir -p x/.git/modules/m/objects x/.git/modules/m/refs
    echo 'ref: refs/heads/x' > x/.git/modules/m/HEAD; echo '[core]pager=evil' > x/.git/modules/m/config""",
)


@pytest.mark.parametrize("script", ELSEWHERE)
async def test_nested_and_hidden_repositories(hands: Hands, script: str) -> None:
    assert "restored" in (said := await hands(shell, command=script)), said
    configs = [
        path
        for path in hands.folder.rglob("config")
        if path.is_file() and "node_modules" not in path.parts
    ]
    assert not any(b"evil" in path.read_bytes() for path in configs)
    assert not list(hands.folder.rglob("hooks/post-merge")) and not [
        path
        for path in hands.folder.rglob(".git")
        if path.is_symlink() or (path.is_file() and "evil" in path.read_text())
    ]


async def test_in_two_steps(hands: Hands) -> None:
    """What is harmless until the folder becomes one of git's is judged when it does."""
    assert "restored" not in await hands(
        shell,
        command=(
            "mkdir -p d/objects d/refs d/hooks; echo '[core]pager=evil' > d/config; echo x > "
            "d/hooks/pre-push"
        ),
    )
    said = await hands(shell, command="echo 'ref: refs/heads/x' > d/HEAD")
    assert said.count("restored") == 2
    assert not (hands.folder / "d/hooks/pre-push").exists() and b"evil" not in (
        (hands.folder / "d/config").read_bytes() if (hands.folder / "d/config").exists() else b""
    )


async def test_hooks_that_the_person_keeps_elsewhere(hands: Hands) -> None:
    hands.write(
        ".git/config", b"[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team.conf\n"
    )
    hands.write("tools/hooks/pre-commit", b"mine\n")
    hands.write("team.conf", b"[user]\n\tname = us\n")
    said = await hands(
        shell,
        command=(
            "echo evil >> tools/hooks/pre-commit; echo x > tools/hooks/pre-push; echo "
            "'[core]pager=x' >> team.conf"
        ),
    )
    assert (
        said.count("restored") == 3
        and (hands.folder / "tools/hooks/pre-commit").read_bytes() == b"mine\n"
    )
    assert "restored" not in await hands(shell, command="git config user.name x")
    assert b"tools/hooks" in (hands.folder / ".git/config").read_bytes()


async def test_a_folder_that_goes_takes_its_own_along(hands: Hands) -> None:
    """Nothing is steered by what is gone, and it can be undone."""
    hands.write("old/.env", b"x")
    assert (
        await hands(shell, command="rm -rf old") == "[no output]"
        and not (hands.folder / "old").exists()
    )
