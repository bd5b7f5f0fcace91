"""One target, fed by atheris: what reaches new places of the program is kept and changed further.

python -m tests.fuzz.guided TARGET SCRATCH CORPUS [flags of libFuzzer]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import atheris


def main(target: Any, scratch: Path, flags: list[str]) -> None:
    from tests.fuzz.running import LONGEST_S, FuzzFinding

    def feed(data: bytes) -> None:
        before = time.process_time()
        target.feed(data, scratch)
        took = time.process_time() - before
        if took > LONGEST_S:
            raise FuzzFinding(f"{target.name}: {took:.1f} s for {data[:200]!r}")

    atheris.Setup([sys.argv[0], *flags], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    with atheris.instrument_imports(include=["glyphoxa", "glyphoxa_pipelines", "yaml"]):
        from tests.fuzz.targets import TARGETS
    named = {target.name: target for target in TARGETS}
    main(named[sys.argv[1]], Path(sys.argv[2]), sys.argv[3:])
