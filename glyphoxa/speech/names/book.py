"""The names of a table while it plays: the one place where they change.

Readers take `book.current` once and work with that: it never changes under their hands. Whoever keeps something
of his own for the names (a corrector, a spotter, key terms) subscribes and is told after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.words import fold
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

NamesListener = Callable[[Gazetteer], None]


@dataclass(slots=True)
class NameBook:
    """Holds the names that count now.

    Changes come from one thread, readers from any: `current` is replaced whole, in one step. A change that
    changes nothing tells nobody.
    """

    current: Gazetteer
    _listeners: list[NamesListener] = field(default_factory=list)
    _told: Gazetteer = field(init=False)
    _depth: int = 0

    def __post_init__(self) -> None:
        self._told = self.current

    def subscribe(self, listener: NamesListener) -> Callable[[], None]:
        """Have `listener` called with the new gazetteer after each change. Returns how to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def put(self, entry: Entry) -> None:
        """Name an entity, or name it differently. What was learned for it is kept unless the entry brings its own."""
        known = self.current.entry(entry.entity_id)
        if known is not None and not entry.learned:
            entry = replace(entry, learned=known.learned)
        self._become(self.current.with_entry(entry))

    def remove(self, entity_id: EntityId) -> None:
        self._become(self.current.without(entity_id))

    def replace_all(self, entries: Iterable[Entry]) -> None:
        """Take these names and no others, as after a campaign was read anew."""
        self._become(Gazetteer.build(entries, language=self.current.language))

    def become(self, names: Gazetteer) -> None:
        """Take what was built elsewhere: building takes long when there are many names."""
        self._become(names)

    def learn(self, entity_id: EntityId, wrong: str) -> None:
        """From now on these words mean this entity. Words that are learned, and unknown entities, are passed over."""
        entry = self.current.entry(entity_id)
        if entry is not None and fold(wrong) not in map(fold, entry.learned):
            self._become(self.current.with_learned(entity_id, (*entry.learned, wrong)))

    def unlearn(self, entity_id: EntityId, wrong: str) -> None:
        """Take a learned form back, however it was spaced and accented."""
        entry = self.current.entry(entity_id)
        if entry is not None:
            kept = (form for form in entry.learned if fold(form) != fold(wrong))
            self._become(self.current.with_learned(entity_id, kept))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Tell of all changes within as of one, at its end, also if it ends in an error."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self._tell()

    def _become(self, names: Gazetteer) -> None:
        self.current = names
        self._tell()

    def _tell(self) -> None:
        if self._depth or self.current is self._told:
            return
        self._told = self.current
        for listener in tuple(self._listeners):
            listener(self.current)
