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
