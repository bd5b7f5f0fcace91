from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.support.proof import n_examples

# How long an example takes says something of the machine and nothing of the rule that is tested. Where a change is
# judged by whether the tests pass, it is judged by the same examples each time; elsewhere each run tries new ones.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=n_examples(100),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("any machine")
