"""Which names will probably be said next: what a recogniser is told to listen for.

A recogniser takes a hundred names, a campaign has thousands. Those are chosen that belong to the scene, that were
heard wrong before, that were said lately, that no dictionary holds. Two forms of the same choice: key terms for a
provider, a sentence for the prompt of the local Whisper.

Speech-to-speech models take no such hint (R-167, R-197): their transcripts are corrected, and nothing is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import NamedTuple, Protocol

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.vocabulary import Vocabulary
from glyphoxa.speech.names.keyterms import MAX_TERMS, MAX_TOKENS, estimated_tokens, oddness, pack, worth

GLOSSARY_NAMES = 40
GLOSSARY_TOKENS = 190
"""The local recogniser cuts its prompt at 200."""

_STAYS = 0.5
"""By so much must a name be worth more to take another's place: no recogniser is told anew of what hardly changed."""
_ALSO_CALLED = 0.5
"""By so much is another name of somebody worth less than their own."""


class Name(Protocol):
    """A way to name an entity. See `glyphoxa.speech.names.gazetteer.Name`."""

    @property
    def text(self) -> str: ...
    @property
    def entity_id(self) -> EntityId: ...
    @property
    def kind(self) -> str: ...
    @property
    def words(self) -> tuple[str, ...]: ...


class Names(Protocol):
    """See `glyphoxa.speech.names.gazetteer.Gazetteer`. The order decides between names of the same worth."""

    @property
    def names(self) -> Collection[Name]: ...
    @property
    def vocabulary(self) -> Vocabulary: ...


class Expectation:
    """Keeps what is needed to choose, and the choice until a better one is worth a change.

    Cost: choosing looks at the names that are in the scene, were said or were garbled, and at the best of the others;
    only `names_are` goes through all of them (10,000 names: see `benchmarks.hints`).

    Args:
        max_terms: Of the key terms; `max_tokens` for all of them together, by an upper guess.
        glossary_names: Of the prompt; `glossary_tokens` for all of it.
    """

    def __init__(
        self,
        *,
        max_terms: int = MAX_TERMS,
        max_tokens: int = MAX_TOKENS,
        glossary_names: int = GLOSSARY_NAMES,
        glossary_tokens: int = GLOSSARY_TOKENS,
    ) -> None:
        self._limits = (max_terms, max_tokens)
        self._glossary_limits = (glossary_names, glossary_tokens)
        self._names: list[_Listed] = []
        self._of: dict[EntityId, list[int]] = {}
        """Places in `_names`."""
        self._at: dict[str, int] = {}
        self._by_themselves: list[int] = []
        """Places in `_names`, best first, as if nothing was known of the table."""
        self._listed_of: dict[int, tuple[Name, _Listed | None]] = {}
        """By the identity of a name, which is kept alive: most names are the same from one gazetteer to the next."""
        self._scene: frozenset[EntityId] = frozenset()
        self._said: dict[EntityId, int] = {}
        self._garbled: Counter[EntityId] = Counter()
        self._learned: Counter[EntityId] = Counter()
        self._keyterms: tuple[str, ...] = ()
        self._listed: tuple[str, ...] = ()

    def names_are(self, gazetteer: Names) -> None:
        """The campaign's names from now on. Wrong forms that were learned are not asked for, but count as garbles."""
        before, self._listed_of = self._listed_of, {}
        listed: list[_Listed] = []
        learned: Counter[EntityId] = Counter()
        for name in gazetteer.names:
            if name.kind == "learned":
                learned[name.entity_id] += 1
                continue
            key = id(name)
            known = before.get(key)
            if known is None:
                known = name, _listed(name, gazetteer.vocabulary)
            self._listed_of[key] = known
            if known[1] is not None:
                listed.append(known[1])
        of: dict[EntityId, list[int]] = {}
        for n, each in enumerate(listed):
            of.setdefault(each.entity_id, []).append(n)
        self._names, self._of, self._learned = listed, of, learned
        self._at = {each.text: n for n, each in enumerate(listed)}
        by_itself = [each.by_itself for each in listed]
        self._by_themselves = sorted(range(len(listed)), key=by_itself.__getitem__, reverse=True)

    def scene_is(self, entities: Iterable[EntityId]) -> None:
        """Who and what is here from now on."""
        self._scene = frozenset(entities)

    def said(self, entity: EntityId, at_ms: int) -> None:
        """It was named."""
        self._said[entity] = max(at_ms, self._said.get(entity, at_ms))

    def garbled(self, entity: EntityId, times: int = 1) -> None:
        """Its name was heard wrong."""
        self._garbled[entity] += times

    def keyterms(self, now_ms: int) -> tuple[str, ...]:
        """The names to boost, best first, within the limits.

        The same tuple as before unless other names are in it: their order does not matter to a recogniser.
        """
        self._keyterms = self._chosen(self._keyterms, *self._limits, now_ms)
        return self._keyterms

    def glossary(self, now_ms: int) -> str:
        """The names as a prompt: "Names: Grimjaw, Ironhold." or nothing. Changes only when a name comes or goes."""
        self._listed = self._chosen(self._listed, *self._glossary_limits, now_ms, each=1)
        return f"Names: {', '.join(self._listed)}." if self._listed else ""

    def _chosen(
        self, before: tuple[str, ...], terms: int, tokens: int, now_ms: int, *, each: int = 0
    ) -> tuple[str, ...]:
        chosen = pack(
            (self._names[n].text for n in self._ranked(before, now_ms)),
            max_terms=terms,
            max_tokens=tokens,
            count_tokens=lambda name: estimated_tokens(name) + each,
        )
        return before if set(chosen) == set(before) else chosen

    def _ranked(self, before: tuple[str, ...], now_ms: int) -> Iterator[int]:
        """Every name, best first; of the same worth, the one given first."""
        staying = {self._at[text] for text in before if text in self._at}
        moved = {
            n
            for entity in chain(self._scene, self._said, self._garbled, self._learned)
            for n in self._of.get(entity, ())
        }
        weighed = moved | staying
        near = sorted((-self._worth(n, now_ms) - _STAYS * (n in staying), n) for n in weighed)
        far = ((-self._names[n].by_itself, n) for n in self._by_themselves if n not in weighed)
        return (n for _, n in merge(near, far))

    def _worth(self, n: int, now_ms: int) -> float:
        name = self._names[n]
        entity = name.entity_id
        said_ms = self._said.get(entity)
        return (
            worth(
                odd=name.odd,
                in_scene=entity in self._scene,
                garbled=self._garbled[entity] + self._learned[entity],
                said_ms_ago=None if said_ms is None else now_ms - said_ms,
            )
            - name.discount
        )


class _Listed(NamedTuple):
    text: str
    entity_id: EntityId
    odd: float
    discount: float
    by_itself: float
    """What it is worth as long as nothing is known of the table."""


def _listed(name: Name, vocabulary: Vocabulary) -> _Listed | None:
    """None for another name that is made of ordinary words ("the smith")."""
    odd = oddness(name.words, vocabulary)
    is_own = name.kind == "name"
    discount = 0.0 if is_own else _ALSO_CALLED
    return _Listed(name.text, name.entity_id, odd, discount, worth(odd=odd) - discount) if is_own or odd else None
