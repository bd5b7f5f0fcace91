"""`make demo` and `make test` on an ordinary machine: a bare Debian, a new clone, a user with an ordinary PATH.

The test clones HEAD. The machine has what the README asks for, and a browser. The two commands fetch everything else:
the packages of the lock, and the models. They use the network of this machine and its settings.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import platformdirs
import pytest

from tests.support.container import Lent, Root, bare_debian, in_root, need_overlays, open_place, perform
from tests.support.dockerfile import Setting
from tests.support.programs import program
from tests.support.proof import proof_only

ROOT = Path(__file__).parents[2]
PACKAGES: Final = "ca-certificates chromium git libgomp1 make"
NETWORK: Final = ("/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
HOME: Final = "/home/ordinary"
ORDINARY: Final = Setting("ordinary", f"{HOME}/glyphoxa", (("PATH", "/usr/local/bin:/usr/bin:/bin"),))
COMMANDS: Final = "make PYTHON={python} demo && make PYTHON={python} test && .venv/bin/{python} -V"


@proof_only
@pytest.mark.parametrize(("suite", "python"), [("bookworm", "python3.11"), ("testing", "python3.14")])
def test_both_commands_pass_for_an_ordinary_user(suite: str, python: str) -> None:
    kept = platformdirs.user_cache_path("glyphoxa") / "test-container"
    kept.mkdir(parents=True, exist_ok=True)
    with open_place(kept) as place:
        need_overlays(place)
        bare = Root(bare_debian(kept, suite), place)
        network = subprocess.run(
            [program("apt-config", package="apt"), "dump", "Acquire"], capture_output=True, check=True
        )
        (place / "upper/etc/apt/apt.conf.d").mkdir(parents=True)
        (place / "upper/etc/apt/apt.conf.d/network").write_bytes(network.stdout)
        install = f"apt-get update && apt-get install -y --no-install-recommends {PACKAGES} {python}-venv"
        prepare = f"{install} && useradd --create-home ordinary"
        perform(
            bare.mounting(), in_root(bare, Setting(), ["sh", "-ec", prepare], {"DEBIAN_FRONTEND": "noninteractive"})
        )
        clone = place / "upper" / ORDINARY.directory.lstrip("/")
        subprocess.run(["git", "clone", "-q", "--no-local", ROOT.as_uri(), clone], check=True)
        perform(bare.mounting(), in_root(bare, Setting(), ["chown", "-R", "ordinary:", HOME], {}))
        machine = Root(bare.image, place, [Lent(Path(file), file) for file in NETWORK if Path(file).is_file()])
        mounts = [*machine.mounting(), f"mount -t tmpfs tmpfs {machine.path}/dev/shm"]
        perform(mounts, in_root(machine, ORDINARY, ["sh", "-ec", COMMANDS.format(python=python)], {}))
        assert list(clone.glob("demo/out/*.wav")), "the demo writes what was heard"
