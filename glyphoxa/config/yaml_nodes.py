"""Text to YAML nodes: parsed in C where PyYAML has that, which takes a quarter of the time.

PyYAML's own fast loader builds the nodes in C too, and a text of ten thousand brackets crashes the process there; built
in Python they are a `RecursionError`.
"""

from __future__ import annotations

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _QuickLoader(Composer, CParser, SafeConstructor, Resolver):  # both can compose: the first does
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)

else:
    _QuickLoader = yaml.SafeLoader  # type: ignore[assignment,misc]


def compose(text: str) -> tuple[yaml.Node | None, SafeConstructor]:
    """The one document of a text, and what makes values of its scalars.

    Raises:
        yaml.YAMLError: It is not YAML.
        RecursionError: It is nested too deeply.
    """
    try:
        loader = _QuickLoader(text)
        return loader.get_single_node(), loader
    except yaml.YAMLError:
        # The other parser's messages say more, and are the same everywhere.
        slow = yaml.SafeLoader(text)
        return slow.get_single_node(), slow
