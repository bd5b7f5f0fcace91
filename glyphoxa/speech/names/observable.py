"""The names of a table while it plays: the one place where they change (the observer pattern).

Readers take `current` once and work with that: it never changes under their hands. Whoever keeps something
of his own for the names (a corrector, key terms) subscribes and is told after each change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from glyphoxa.speech.names.gazetteer import Gazetteer

NamesListener = Callable[[Gazetteer], None]


@dataclass(slots=True)
class ObservableGazetteer:
    """Holds the names that count now.

    Changes come from one thread, readers from any: `current` is replaced whole, in one step.
    """

    current: Gazetteer
    _listeners: list[NamesListener] = field(default_factory=list)

    def subscribe(self, listener: NamesListener) -> Callable[[], None]:
        """Have `listener` called with the new gazetteer after each change. Returns how to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def replace(self, names: Gazetteer) -> None:
        """Take names that were made elsewhere, and tell of them unless they are the very same as before.

        Raises:
            ExceptionGroup: What listeners raised. All others were told.
        """
        if names is self.current:
            return
        self.current = names
        raised: list[Exception] = []
        for listener in tuple(self._listeners):
            try:
                listener(names)
            except Exception as error:  # whatever it is, it is no reason to leave the next one behind
                raised.append(error)
        if raised:
            raise ExceptionGroup("not everybody took the new names", raised)
