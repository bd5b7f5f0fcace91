"""Voice characters for tabletop role-playing.

Nothing of a table leaves its machine but for the providers that its settings name (`docs/privacy.md`). Some libraries
report on their use unless they are told not to, and they look for that when they are first imported: this file runs
before any other of the package does.
"""

import os
import sys

_REPORTS_OF_LIBRARIES = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")

for _switch in _REPORTS_OF_LIBRARIES:
    os.environ[_switch] = os.environ.get(_switch) or "1"
if "onnxruntime" in sys.modules:  # imported before this package, it has read the environment already
    sys.modules["onnxruntime"].disable_telemetry_events()
