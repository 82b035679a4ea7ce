"""What the interpreter should know before anything else runs."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.0005
GC_THRESHOLDS = (20_000, 20, 50)


def tune_interpreter() -> None:
    """Settings for a process that is one event loop and one writer thread over many small, acyclic
    values.

    Switching often keeps loop and writer both prompt; the default of 5 ms makes them wait for each
    other in turn. The default collector looks at every live value again and again while a
    conversation is loaded.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GC_THRESHOLDS)
