"""Load of this machine, and how native libraries use it. Requires none of the model packages."""

from __future__ import annotations

import os
from typing import Final

_BUSY: Final = 0.7
"""Programs that want a core, for each core: beside so many a model reads and speaks at a fraction of its speed."""


def is_busy() -> bool:
    """Whether other programs slow a model down; False if the system does not report its load."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1) > _BUSY
    except OSError:
        return False


def prepare() -> None:
    """Configure how native libraries wait for work. Call it before any of them is imported: they read it once.

    Idle OpenMP threads that spin take a core from speech and recognition. On two cores beside one busy process,
    sleeping threads answer in 2.9 s instead of 3.7 s; alone the difference is within the noise. User settings are not
    changed.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # BLAS threads of numpy always spin. With one core, a product of 100,000 vectors takes
    # 9 ms (p95 13) on a busy machine; with both, 46 ms (p95 188).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The tokenizers' own pool deadlocks after a fork and gains nothing on single sentences.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
