"""The engine's own process: `python -m deskhand.models.engine_main`, settings as one line of JSON
on its input.

It prints one line with the address that it listens on, serves, and ends with its parent: by the
kernel's signal where there is one, else because its input ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import msgspec
import xllamacpp

PR_SET_PDEATHSIG = 1  # prctl(2)


class EngineSettings(msgspec.Struct, frozen=True):
    """How the engine runs. `context` is in tokens, for all slots together; `cache_mib` bounds what
    it keeps of conversations that another one took the slot from. `slots_folder`, with a slash at
    its end, is where slots may be saved; '' for nowhere."""

    model: str
    token: str
    context: int = 12288
    slots: int = 3
    threads: int = 2
    cache_mib: int = 256
    warmup: bool = True
    slots_folder: str = ""


def main() -> None:
    """Serve until the parent is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # Ctrl-C goes to the whole terminal: the parent decides when we end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=EngineSettings)
    server = xllamacpp.Server(make_params(settings))
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    while sys.stdin.buffer.read(4096):
        pass
    # Its threads are in the middle of a computation, and nothing of it is worth keeping.
    os._exit(0)


def make_params(settings: EngineSettings) -> xllamacpp.CommonParams:
    """The engine's own form of the settings."""
    found = xllamacpp.CommonParams()
    found.model.path = settings.model
    found.hostnames = ["127.0.0.1"]
    found.port = 0
    found.api_keys = [settings.token]
    found.n_ctx = settings.context
    found.n_parallel = settings.slots
    found.cpuparams.n_threads = settings.threads
    found.cpuparams_batch.n_threads = settings.threads
    # Weights are used as they lie in the file: 600 MB less, and prompts are read 20 to 40 % faster.
    found.no_extra_bufts = True
    found.cache_ram_mib = settings.cache_mib
    if settings.slots_folder:
        found.slot_save_path = settings.slots_folder
        found.endpoint_slots = True
    found.use_jinja = True
    found.n_gpu_layers = 0
    found.fit_params = False
    found.warmup = settings.warmup
    found.verbosity = -1
    return found


if __name__ == "__main__":
    main()
