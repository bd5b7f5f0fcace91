"""How much memory this machine has, and how busy it is. Needs none of the models' packages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/proc/meminfo")


def busy_with() -> float:
    """How many programs want a core of this machine, for each that it has; 0 where the system does not tell."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0


def free_memory() -> int:
    """Bytes that a program can have; where the system does not tell, three quarters of all."""
    try:
        for line in _MEMORY.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return all_memory() * 3 // 4


def all_memory() -> int:
    """Bytes, whoever has them."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def prepare() -> None:
    """Settle how native libraries wait for work. Call it before any of them is imported: they read it once.

    OpenMP threads that spin while idle take the core from whatever else speaks or listens. On two cores beside
    one busy process, sleeping ones answer in 2.9 s instead of 3.7 s; alone the difference is within the noise.
    A value the user has set is left alone.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # So do those of numpy's algebra, however they are told to wait. With one core a product of 100,000 vectors takes
    # 9 ms (p95 13) beside others who work, with both 46 ms (p95 188).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The tokenizers' own pool deadlocks after a fork and gains nothing on single sentences.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
