"""Parts that are off by default are not loaded before somebody switches them on."""

from __future__ import annotations

import json
import subprocess
import sys

ASKED = """
import importlib, json, sys
from pathlib import Path
import glyphoxa

OFF = ("glyphoxa.plugins.memory_graph.", "glyphoxa.names.first_design")
root = Path(glyphoxa.__path__[0])
for package in ("cli", "app", "web"):
    for path in sorted((root / package).rglob("*.py")):
        name = ".".join(("glyphoxa", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")
        if not name.endswith("__main__"):
            importlib.import_module(name)

from glyphoxa.app.background import corrector_of
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.names.gazetteer import Gazetteer

def loaded():
    return sorted(name for name in sys.modules if name.startswith(OFF))

corrector_of(Gazetteer.build([]), CorrectionSettings())
by_default = loaded()
corrector_of(Gazetteer.build([]), CorrectionSettings(algorithm="documents"))
print(json.dumps([by_default, loaded()]))
"""


def test_a_verb_and_a_table_load_what_is_off_by_default_only_when_it_is_switched_on() -> None:
    answer = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True)
    by_default, switched_on = json.loads(answer.stdout.splitlines()[-1])
    assert by_default == []
    assert switched_on == [*by_default, "glyphoxa.names.first_design"]
