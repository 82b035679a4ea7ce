"""What threads have freed is given back to the kernel."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import random, sys, threading
from pathlib import Path
from deskhand.supervision.allocator import tune_malloc

if sys.argv[1] == "given back":
    tune_malloc()

def anon_mb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) // 1024

def work(number):
    chance, kept = random.Random(number), []
    for _ in range(6):
        some = [bytearray(chance.randint(1_500_000, 8_000_000)) for _ in range(20)]
        kept.append(bytearray(1_000))  # stays, above what is freed

before = anon_mb()
for _ in range(2):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    [each.start() for each in threads]
    [each.join() for each in threads]
print(anon_mb() - before)
"""


def grown_mb(how: str) -> int:
    return int(
        subprocess.run([sys.executable, "-c", THREADS, how], capture_output=True, check=True).stdout
    )


def test_what_threads_have_freed_is_given_back() -> None:
    assert grown_mb("given back") <= 10 < grown_mb("kept")


PIECES = """
import random, sys
from pathlib import Path
import anyio
from deskhand.supervision import allocator

def anon_mb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) // 1024

async def main():
    chance = random.Random(1)
    before = anon_mb()
    large, small = [], []
    for n in range(6_000):
        large.append(bytearray(chance.randint(1_000, 60_000)))
        if n % 10 == 0:
            small.append(bytearray(700))  # stays, between what is freed
    large.clear()
    allocator.TRIM_S = 0.01
    with anyio.move_on_after(0.5):
        if sys.argv[1] == "trimmed":
            await allocator.trim_memory()
    print(anon_mb() - before)

allocator.tune_malloc()
anyio.run(main)
"""


def left_mb(how: str) -> int:
    command = [sys.executable, "-c", PIECES, how]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def test_what_lies_between_small_things_is_given_back_too() -> None:
    assert left_mb("trimmed") <= 20 < 100 < left_mb("kept")
