"""A real IMAP server on loopback: Dovecot, with a maildir for each address, for as long as it is
needed. https://doc.dovecot.org/2.3/configuration_manual/config_file/"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

from ..broker import free_port

PROGRAM = Path("/usr/sbin/dovecot")
ADMIN = Path("/usr/bin/doveadm")
NOBODY = 65534
"""As which user mail is read: Dovecot refuses to do that as root."""
START_S = 30.0

CONFIGURATION = """
base_dir={folder}/run
state_dir={folder}/state
log_path={folder}/log
protocols=imap
listen=127.0.0.1
ssl={ssl}
disable_plaintext_auth=no
auth_cache_size=0
mail_location=maildir:{folder}/mail/%u
mailbox_list_index=no
mailbox_idle_check_interval=1s
first_valid_uid=0
default_internal_user=dovecot
default_login_user=dovenull
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
}}
namespace inbox {{
  inbox = yes
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
}}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={user} home={folder}/home/%u
}}
"""


class Dovecot:
    """Whoever is in it logs in with their address. `start` and `stop` block. Its files are in a
    folder of its own with a short name, as a path of a socket has at most 107 bytes, that another
    user may enter."""

    def __init__(self) -> None:
        self.port = free_port()
        self.tls_port = free_port()
        self.certificate = Path()
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._passwords: dict[str, str] = {}
        self._numbers = count(1)

    # ------------------------------------------------------------------ running

    def create(self) -> None:
        """Raises FileNotFoundError if it is not installed."""
        if not PROGRAM.exists():
            raise FileNotFoundError("Dovecot is missing: apt-get install dovecot-imapd")
        self._folder = Path(tempfile.mkdtemp(prefix="dv", dir="/tmp"))
        self._folder.chmod(0o755)
        for name in ("mail", "home"):
            (self._folder / name).mkdir()
            os.chown(self._folder / name, NOBODY, NOBODY)
        self.certificate = self._folder / "certificate.pem"
        _make_certificate(self.certificate)
        certified = f"yes\nssl_cert=<{self.certificate}\nssl_key=<{self.certificate}"
        self._config.write_text(
            CONFIGURATION.format(
                folder=self._folder,
                ssl=certified,
                port=self.port,
                tls_port=self.tls_port,
                user=NOBODY,
            )
        )
        self._write_users()

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Raises RuntimeError if it does not start."""
        # In a group of its own: its children are found by it.
        self._process = subprocess.Popen(
            [PROGRAM, "-F", "-c", self._config],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(int(START_S / 0.02)):
            if self._greets():
                return
            try:
                self._process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            break
        self.stop()
        raise RuntimeError(f"Dovecot did not start: {self.log[-2000:]}")

    def stop(self) -> None:
        """All connections are cut. `start` brings it back with all that it knows."""
        assert self._process is not None
        self.thaw()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def log(self) -> str:
        """What it had to say."""
        file = self._folder / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    # ------------------------------------------------------------------ what goes wrong

    def freeze(self) -> None:
        """Nothing answers, and no connection is cut: as if the network were gone."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kick(self, address: str) -> None:
        """Cut the connections of one person."""
        self._admin("kick", address)

    def renumber(self, address: str) -> None:
        """Give the inbox another UIDVALIDITY, after which all known UIDs mean nothing."""
        now = self._admin("mailbox", "status", "-u", address, "uidvalidity", "INBOX")
        # As "INBOX uidvalidity=1732828000".
        value = int(now.rpartition("=")[2]) + 1
        self._admin("mailbox", "update", "-u", address, "--uid-validity", str(value), "INBOX")

    # ------------------------------------------------------------------ people and mail

    def add(self, address: str, password: str) -> None:
        """Give somebody a mailbox, or another password."""
        self._passwords[address] = password
        if self._folder != Path():
            self._write_users()

    def put(self, address: str, data: bytes) -> None:
        """Deliver a mail into the inbox, as programs do that know maildirs: whole or not at all.
        https://cr.yp.to/proto/maildir.html"""
        inbox = self._folder / "mail" / address
        for name in ("", "tmp", "cur", "new"):
            if not (inbox / name).exists():
                (inbox / name).mkdir(parents=True)
                os.chown(inbox / name, NOBODY, NOBODY)
        number = next(self._numbers)
        name = f"{1_800_000_000 + number}.M{number:06}.test"
        (inbox / "tmp" / name).write_bytes(data)
        os.chown(inbox / "tmp" / name, NOBODY, NOBODY)
        (inbox / "tmp" / name).rename(inbox / "new" / name)

    def list_mail(self, address: str, folder: str = "INBOX") -> list[tuple[bytes, bool]]:
        """All mail of somebody in the order in which it came, and whether it is marked as seen."""
        inbox = self._folder / "mail" / address
        place = inbox if folder == "INBOX" else inbox / f".{folder}"
        files = [*place.glob("new/*"), *place.glob("cur/*")]
        found = sorted(files, key=lambda file: file.name.partition(":")[0])
        return [(file.read_bytes(), "S" in file.name.partition(":2,")[2]) for file in found]

    # ------------------------------------------------------------------ inside

    @property
    def _config(self) -> Path:
        return self._folder / "dovecot.conf"

    def _write_users(self) -> None:
        """Replaced at once, as it may be read at any time."""
        lines = [f"{address}:{{PLAIN}}{word}::::::" for address, word in self._passwords.items()]
        file = self._folder / "users.new"
        file.write_text("\n".join([*lines, ""]))
        file.rename(self._folder / "users")

    def _admin(self, *words: str) -> str:
        done = subprocess.run(
            [ADMIN, "-c", self._config, *words], capture_output=True, check=True, timeout=20
        )
        return done.stdout.decode().strip()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _greets(self) -> bool:
        with socket.socket() as sock:
            sock.settimeout(1)
            if sock.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
            try:
                return sock.recv(4) == b"* OK"
            except OSError:
                return False


def _make_certificate(file: Path) -> None:
    """A key and a certificate for loopback that only those trust who are given this file."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "3650", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(file), "-out", f"{file}.part"),
        ],
        check=True,
        capture_output=True,
    )
    with file.open("ab") as both:
        both.write(Path(f"{file}.part").read_bytes())
