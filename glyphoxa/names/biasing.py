"""Which names will probably be said next: what a recogniser is told to listen for.

A recogniser takes a hundred names, a campaign has thousands. Those are chosen that belong to the scene, that were
heard wrong before, that were said lately, that no dictionary holds. Two forms of the same choice: key terms for a
provider, a sentence for the prompt of the local Whisper.

Speech-to-speech models take no such hint: their transcripts are corrected, and nothing is sent.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from typing import NamedTuple

from glyphoxa.domain.ids import EntityId
from glyphoxa.language.vocabulary import Vocabulary
from glyphoxa.names.gazetteer import Gazetteer, Name

# Which names a recogniser is asked to expect, when it takes only so many.
#
# Deepgram takes about 100 key terms and 500 tokens in all; one more and it refuses the request. So what a name is worth
# is estimated here, and the list is packed, best first. Who keeps track of all that is `expectation`.


MAX_TERMS = 100
MAX_TOKENS = 500

_RECENT_HALF_LIFE_MS = 600_000
_GARBLES_THAT_COUNT = 4
_MISFITS_IN_A_ROW = 20
_OF_A_KNOWN_NAME = 0.4
_PARTING = re.compile(r"[^a-zA-Z0-9]")


def estimated_tokens(term: str) -> int:
    """An upper guess of a term's tokens.

    Invented names fall into pieces of two or three letters, an apostrophe or a hyphen is a piece of its own and parts
    what is around it, letters beyond ASCII may take a piece for each byte. Deepgram's own count is not published.
    """
    return sum(map(_tokens_of_word, term.split()))


def oddness(words: Sequence[str], vocabulary: Vocabulary) -> float:
    """How little of a name a recogniser knows already: 0 for dictionary words only, 1 for invented ones.

    Args:
        words: Folded (see `glyphoxa.language.words.fold`).
    """
    if not words:
        return 0.0
    return sum(_oddness(word, vocabulary) for word in words) / len(words)


def worth(*, odd: float, in_scene: bool = False, garbled: int = 0, said_ms_ago: int | None = None) -> float:
    """What it is worth to have a recogniser expect a name: above all names of the present scene and such as it got
    wrong before, then those said lately, then those that are not made of ordinary words.

    Args:
        odd: See `oddness`.
        garbled: How often it was heard wrong.
        said_ms_ago: Since it was last said at this table; None when it never was.
    """
    recent = 0.5 ** (max(0, said_ms_ago) / _RECENT_HALF_LIFE_MS) if said_ms_ago is not None else 0.0
    often = min(garbled, _GARBLES_THAT_COUNT) / _GARBLES_THAT_COUNT
    # "Hope", said a moment ago, is heard right without help.
    return 3 * in_scene + 2 * often + 2 * recent * odd + odd


def pack(
    names: Iterable[str],
    *,
    max_terms: int = MAX_TERMS,
    max_tokens: int = MAX_TOKENS,
    count_tokens: Callable[[str], int] = estimated_tokens,
) -> tuple[str, ...]:
    """The first names that fit, each whole: one that does not fit is skipped, and when many in a row do not, the rest
    is not looked at. Two spellings that differ only in case or spaces are one.
    """
    packed: list[str] = []
    seen: set[str] = set()
    tokens_left, misfits = max_tokens, 0
    for given in names:
        if len(packed) == max_terms or tokens_left <= 0 or misfits == _MISFITS_IN_A_ROW:
            break
        name = " ".join(given.split())
        if not name or name.casefold() in seen:
            continue
        cost = count_tokens(name)
        if cost > tokens_left:
            misfits += 1
            continue
        misfits = 0
        packed.append(name)
        seen.add(name.casefold())
        tokens_left -= cost
    return tuple(packed)


@lru_cache(4096)
def _tokens_of_word(word: str) -> int:
    parting = sum(len(letter.encode("utf-8", "replace")) for letter in _PARTING.findall(word))
    return max(1, parting + sum(-(-len(piece) * 2 // 5) for piece in _PARTING.split(word)))


def _oddness(word: str, vocabulary: Vocabulary) -> float:
    if len(word) < 2 or vocabulary.is_ordinary(word):
        return 0.0
    return _OF_A_KNOWN_NAME if vocabulary.is_proper(word) else 1.0


GLOSSARY_NAMES = 40
GLOSSARY_TOKENS = 190
"""The local recogniser cuts its prompt at 200."""

_STAYS = 0.5
"""By so much must a name be worth more to take another's place: no recogniser is told anew of what hardly changed."""
_ALSO_CALLED = 0.5
"""By so much is another name of somebody worth less than their own."""
_ONE_BY_ONE = 100
"""More names that come and go are a new start."""


class ContextualBiasing:
    """Keeps what is needed to choose, and the choice until a better one is worth a change.

    Cost: choosing looks at the names that are in the scene, were said or were garbled, and at the best of the others.
    A name that comes or goes is found by its identity: gazetteers share those that did not change (10,000 names:
    0.8 ms when somebody spoke, 5.4 ms when a name changed).

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
        self._names: dict[int, Name] = {}
        """By identity, which is theirs as long as they are kept here."""
        self._of: dict[EntityId, list[_Listed]] = {}
        self._at: dict[str, _Listed] = {}
        self._by_themselves: list[_Listed] = []
        """Best first, as if nothing was known of the table."""
        self._scene: frozenset[EntityId] = frozenset()
        self._said: dict[EntityId, int] = {}
        self._garbled: Counter[EntityId] = Counter()
        self._learned: Counter[EntityId] = Counter()
        self._keyterms: tuple[str, ...] = ()
        self._listed: tuple[str, ...] = ()

    def names_are(self, gazetteer: Gazetteer) -> None:
        """The campaign's names from now on. Wrong forms that were learned are not asked for, but count as garbles."""
        before, now = self._names, dict(zip(map(id, gazetteer.names), gazetteer.names, strict=True))
        gone = [before[key] for key in before.keys() - now.keys()]
        come = [now[key] for key in now.keys() - before.keys()]
        if len(gone) + len(come) > _ONE_BY_ONE:
            self._of, self._at, self._by_themselves, self._learned = {}, {}, [], Counter()
            gone, come = [], list(now.values())
        self._names = now
        for name in gone:
            self._drop(name)
        listed = [each for name in come if (each := self._taken(name, gazetteer.vocabulary)) is not None]
        if len(listed) > _ONE_BY_ONE:
            self._by_themselves.extend(listed)
            self._by_themselves.sort(key=_order)
        else:
            for each in listed:
                insort(self._by_themselves, each, key=_order)

    def _drop(self, name: Name) -> None:
        if name.kind == "learned":
            self._learned -= Counter((name.entity_id,))
            return
        others = self._of.get(name.entity_id, [])
        listed = next((each for each in others if each.rank == name.rank), None)
        if listed is None:
            return
        del self._by_themselves[bisect_left(self._by_themselves, _order(listed), key=_order)]
        del self._at[listed.text]
        others.remove(listed)
        if not others:
            del self._of[name.entity_id]

    def _taken(self, name: Name, vocabulary: Vocabulary) -> _Listed | None:
        if name.kind == "learned":
            self._learned[name.entity_id] += 1
            return None
        listed = _listed(name, vocabulary)
        if listed is not None:
            self._of.setdefault(name.entity_id, []).append(listed)
            self._at[listed.text] = listed
        return listed

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
            (name.text for name in self._ranked(before, now_ms)),
            max_terms=terms,
            max_tokens=tokens,
            count_tokens=lambda name: estimated_tokens(name) + each,
        )
        return before if set(chosen) == set(before) else chosen

    def _ranked(self, before: tuple[str, ...], now_ms: int) -> Iterator[_Listed]:
        """Every name, best first; of the same worth, the one given first."""
        staying = {self._at[text].rank: self._at[text] for text in before if text in self._at}
        moved = {
            name.rank: name
            for entity in chain(self._scene, self._said, self._garbled, self._learned)
            for name in self._of.get(entity, ())
        }
        weighed = moved | staying
        near = sorted(
            (-self._worth(name, now_ms) - _STAYS * (rank in staying), rank, name) for rank, name in weighed.items()
        )
        far = ((-name.by_itself, name.rank, name) for name in self._by_themselves if name.rank not in weighed)
        return (name for _, _, name in merge(near, far))

    def _worth(self, name: _Listed, now_ms: int) -> float:
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
    rank: tuple[int, int, int]
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
    if not is_own and not odd:
        return None
    return _Listed(name.rank, name.text, name.entity_id, odd, discount, worth(odd=odd) - discount)


def _order(name: _Listed) -> tuple[float, tuple[int, int, int]]:
    return -name.by_itself, name.rank
