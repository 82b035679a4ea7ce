"""Both sandboxes pass the suite and contain every evasion, as the user who runs the tests and as an
ordinary one."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.testing.evasions import EVASIONS
from deskhand.testing.sandbox_suite import CHECKS

# In one process: what a driver said is kept there, and two fork bombs at once would stifle
# everything else.
_HERE = Path(__file__).parent
_NOBODY = 65534
_USERS = [os.getuid()] + ([_NOBODY] if os.getuid() == 0 else [])
# The interpreter and the sources may lie where only root may look: nobody gets them in a mount
# namespace of its own.
_AS_NOBODY = """
set -e
mount -t tmpfs none "$1"
cd "$1"
mkdir python packages src tests
mount --bind "$2" python
mount --bind "$3" packages
mount --bind "$4" src
mount --bind "$5" tests
cd /
export PYTHONPATH="$1/src:$1/packages" LD_LIBRARY_PATH="$1/python/lib" PYTHONDONTWRITEBYTECODE=1
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$1/python/bin/$6" "$1/tests/driver.py" "$7" "$8"
"""  # noqa: E501


@functools.cache
def _outcome(kind: str, user: int, part: str) -> dict[str, str]:
    """What the driver said. It runs once for each kind, user and part; a test looks at its own
    line."""
    argv = [sys.executable, str(_HERE / "driver.py"), kind, part]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    if user != os.getuid():
        packages = Path(pytest.__file__).parents[1]
        source = _HERE.parents[1] / "src"
        place = Path("/tmp") / f"deskhand-as-nobody-{os.getpid()}"
        place.mkdir(exist_ok=True)
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        argv = [
            "unshare",
            "-m",
            "sh",
            "-c",
            _AS_NOBODY,
            "sh",
            str(place),
            sys.base_prefix,
            str(packages),
            str(source),
        ]
        argv += [str(_HERE), name, kind, part]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=150, check=False)
    if user != os.getuid():
        place.rmdir()
    assert ran.returncode == 0, ran.stderr[-3000:]
    outcome: dict[str, str] = json.loads(ran.stdout)
    assert outcome.pop("uid") == str(user)
    assert outcome.pop("name").startswith("bubblewrap" if kind == "bubblewrap" else "Landlock")
    return outcome


@pytest.mark.timeout(180)
@pytest.mark.parametrize("check", [each.__name__ for each in CHECKS])
@pytest.mark.parametrize("user", _USERS)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
def test_the_suite_holds(kind: str, user: int, check: str) -> None:
    assert _outcome(kind, user, "suite")[check] == ""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("user", _USERS)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
def test_evasive_commands_come_to_nothing(kind: str, user: int) -> None:
    outcome = _outcome(kind, user, "evasions")
    assert len(outcome) == len(EVASIONS) >= 62
    assert {script: said for script, said in outcome.items() if said} == {}


def test_bubblewrap_is_installed() -> None:
    assert shutil.which("bwrap"), "run `make deps`"
