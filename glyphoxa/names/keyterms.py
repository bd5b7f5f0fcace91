"""Key terms and prompts for recognisers: the names that are likely to be said next.

A recogniser accepts a hundred names, a campaign has thousands. `Hints` prefers names in the scene, names misheard
before, recently said ones, and those in no dictionary. The result has two forms: key terms for a provider, and a
sentence for the prompt of the local Whisper. Speech-to-speech models accept no hints: only their transcripts are
corrected.

`Hints` updates the choice with the events of a table and notifies the ears of changes. It also provides the nearby
entities, whose names need less evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from typing import NamedTuple

from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import SceneChanged, TableEvent, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.language_data import Vocabulary
from glyphoxa.language.sentences import RoomLeft
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Name
from glyphoxa.names.wrong_forms import LearnedName

# Deepgram accepts about 100 key terms and 500 tokens in total; beyond that it rejects the request.
MAX_TERMS = 100
MAX_TOKENS = 500
GLOSSARY_NAMES = 40
GLOSSARY_TOKENS = 190
"""The local recogniser truncates its prompt at 200."""
LATELY_MS = 300_000
"""Entities named within this time are nearby."""
_RECENT_HALF_LIFE_MS = 600_000
_GARBLES_THAT_COUNT = 4
_MISFITS_IN_A_ROW = 20
_OF_A_KNOWN_NAME = 0.4
_PARTING = re.compile(r"[^a-zA-Z0-9]")
_STAYS = 0.5
"""Minimum gain before a name replaces another one, so that recognisers are not updated for small changes."""
_ALSO_CALLED = 0.5
"""Penalty of an alias relative to the entity's own name."""


def estimated_tokens(term: str) -> int:
    """An upper bound for a term's tokens.

    Invented names split into pieces of two or three letters, an apostrophe or a hyphen is a piece and splits its
    surroundings, non-ASCII letters may take a piece per byte. Deepgram's own count is not published.
    """
    return sum(map(_tokens_of_word, term.split()))


def oddness(words: Sequence[str], vocabulary: Vocabulary) -> float:
    """How unfamiliar a name is to a recogniser: 0 for dictionary words only, 1 for invented ones.

    Args:
        words: Folded (see `glyphoxa.language.words.fold`).
    """
    if not words:
        return 0.0
    return sum(_oddness(word, vocabulary) for word in words) / len(words)


def worth(*, odd: float, in_scene: bool = False, garbled: int = 0, said_ms_ago: int | None = None) -> float:
    """Priority of a name: the present scene and earlier misrecognitions first, then recency, then oddness.

    Args:
        odd: See `oddness`.
        garbled: How often it was misheard.
        said_ms_ago: Time since it was last said at this table; None if never.
    """
    recent = 0.5 ** (max(0, said_ms_ago) / _RECENT_HALF_LIFE_MS) if said_ms_ago is not None else 0.0
    often = min(garbled, _GARBLES_THAT_COUNT) / _GARBLES_THAT_COUNT
    # "Hope", just said, is recognised without help.
    return 3 * in_scene + 2 * often + 2 * recent * odd + odd


def pack(
    names: Iterable[str],
    *,
    max_terms: int = MAX_TERMS,
    max_tokens: int = MAX_TOKENS,
    count_tokens: Callable[[str], int] = estimated_tokens,
) -> tuple[str, ...]:
    """The first names that fit. Skips a name that does not, and stops after many in a row.

    Two spellings that differ only in case or spaces are one.
    """
    packed: list[str] = []
    seen: set[str] = set()
    room, misfits = RoomLeft(max_tokens), 0
    for given in names:
        if len(packed) == max_terms or room.left <= 0 or misfits == _MISFITS_IN_A_ROW:
            break
        name = " ".join(given.split())
        if not name or name.casefold() in seen:
            continue
        if not room.takes(count_tokens(name)):
            misfits += 1
            continue
        misfits = 0
        packed.append(name)
        seen.add(name.casefold())
    return tuple(packed)


@lru_cache(4096)
def _tokens_of_word(word: str) -> int:
    parting = sum(len(letter.encode("utf-8", "replace")) for letter in _PARTING.findall(word))
    return max(1, parting + sum(-(-len(piece) * 2 // 5) for piece in _PARTING.split(word)))


def _oddness(word: str, vocabulary: Vocabulary) -> float:
    if len(word) < 2 or vocabulary.is_ordinary(word):
        return 0.0
    return _OF_A_KNOWN_NAME if vocabulary.is_proper(word) else 1.0


class Hints:
    """Chooses names by the events of a table, and keeps the choice until a better one is worth a change.

    Considers the names that are in the scene, were said or were misheard, and the best of the others.

    Args:
        now_ms: Unix epoch.
        max_terms: Maximum number of key terms.
        glossary_names: Maximum number of names in the prompt.
    """

    def __init__(
        self,
        campaign: Campaign,
        names: Gazetteer,
        *,
        now_ms: Callable[[], int],
        max_terms: int = MAX_TERMS,
        glossary_names: int = GLOSSARY_NAMES,
    ) -> None:
        self._campaign = campaign
        self._now_ms = now_ms
        self._max_terms, self._glossary_names = max_terms, glossary_names
        self._changed = Subscribers[[]]("the key terms")
        self.subscribe = self._changed.subscribe
        """Called at once when key terms change, so an expensive subscriber should wait for the end of a burst."""
        self._scene: Scene | None = None
        self._here: frozenset[EntityId] = frozenset()
        self._odd: dict[tuple[str, ...], float] = {}
        self._said: dict[EntityId, int] = {}
        self._garbled: Counter[EntityId] = Counter()
        self._keyterms: tuple[str, ...] = ()
        self._in_prompt: tuple[str, ...] = ()
        self._told: tuple[str, ...] = ()
        self.names_are(names)

    def keyterms(self) -> tuple[str, ...]:
        """The names to boost, best first, within the limits.

        The same tuple as before unless the set changes: recognisers ignore the order.
        """
        self._keyterms = self._chosen(self._keyterms, self._max_terms, MAX_TOKENS)
        return self._keyterms

    def glossary(self) -> str:
        """The names as a prompt: "Names: Grimjaw, Ironhold." or nothing. Changes only with the set of names."""
        self._in_prompt = self._chosen(self._in_prompt, self._glossary_names, GLOSSARY_TOKENS, each=1)
        return f"Names: {', '.join(self._in_prompt)}." if self._in_prompt else ""

    def nearby(self) -> frozenset[EntityId]:
        """Entities of the scene, and recently named ones."""
        since_ms = self._now_ms() - LATELY_MS
        return self._here.union(entity for entity, at_ms in self._said.items() if at_ms >= since_ms)

    def on(self, event: TableEvent) -> None:
        """Process an event of the table."""
        match event:
            case SceneChanged(scene):
                self.scene_is(scene)
            case UtteranceKept(utterance):
                self._heard(utterance)
            case UtteranceRevised(utterance, was):
                self._heard(utterance, known=was.corrections)
            case _:
                pass

    def names_are(self, names: Gazetteer) -> None:
        """Take the campaign's names.

        Learned wrong forms are not hinted, but count as misrecognitions.
        """
        self._names = names
        self._learned = Counter(name.entity_id for name in names.names if name.kind == "learned")
        self._of: dict[EntityId, list[_Listed]] = {}
        self._at: dict[str, _Listed] = {}
        for rank, name in enumerate(names.names):
            listed = self._listing(rank, name, names.vocabulary) if name.kind != "learned" else None
            if listed is not None:
                self._of.setdefault(name.entity_id, []).append(listed)
                self._at[listed.text] = listed
        # Best first, independent of the table.
        self._by_themselves = sorted(self._at.values(), key=lambda name: (-name.by_itself, name.rank))
        self.scene_is(self._scene)

    def scene_is(self, scene: Scene | None) -> None:
        self._scene = scene
        self._here = frozenset() if scene is None else self._in(scene)
        self._tell()

    def garbled_before(self, pairs: Iterable[LearnedName]) -> None:
        """Take misrecognitions of earlier sessions, except for rejected ones."""
        for pair in pairs:
            if pair.status.state in ("active", "suggested"):
                self._garbled[pair.entity_id] += pair.status.count
        self._tell()

    def _in(self, scene: Scene) -> frozenset[EntityId]:
        """The place, everybody present, the players, and entities named in the scene's description."""
        entities = {npc.id: npc.entity_id for npc in self._campaign.npcs}
        here = {scene.location, *(EntityId(player.id) for player in self._campaign.known_players)}
        here |= {entities[npc] for npc in scene.npcs if npc in entities}
        return frozenset(here.union(self._names.entities_in(scene.description)))

    def _heard(self, utterance: Utterance, *, known: Sequence[Correction] = ()) -> None:
        for entity in self._names.entities_in(utterance.text):
            self._said[entity] = max(utterance.at_ms, self._said.get(entity, utterance.at_ms))
        for correction in utterance.corrections:
            if correction not in known:  # others were counted when the utterance was recorded
                self._garbled.update(mention.name.entity_id for mention in self._names.mentions(correction.after))
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, self.keyterms()
        if set(told) != set(self._told):
            self._changed.tell()

    def _listing(self, rank: int, name: Name, vocabulary: Vocabulary) -> _Listed | None:
        """The name, or None for an alias made of ordinary words ("the smith")."""
        odd = self._odd.get(name.words)
        if odd is None:
            odd = self._odd[name.words] = oddness(name.words, vocabulary)
        if name.kind != "name" and not odd:
            return None
        discount = 0.0 if name.kind == "name" else _ALSO_CALLED
        return _Listed(rank, name.text, name.entity_id, odd, discount, worth(odd=odd) - discount)

    def _chosen(self, before: tuple[str, ...], terms: int, tokens: int, *, each: int = 0) -> tuple[str, ...]:
        chosen = pack(
            (name.text for name in self._ranked(before)),
            max_terms=terms,
            max_tokens=tokens,
            count_tokens=lambda name: estimated_tokens(name) + each,
        )
        return before if set(chosen) == set(before) else chosen

    def _ranked(self, before: tuple[str, ...]) -> Iterator[_Listed]:
        """All names, best first; ties in the given order."""
        now_ms = self._now_ms()
        staying = {self._at[text].rank: self._at[text] for text in before if text in self._at}
        moved = {
            name.rank: name
            for entity in chain(self._here, self._said, self._garbled, self._learned)
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
                in_scene=entity in self._here,
                garbled=self._garbled[entity] + self._learned[entity],
                said_ms_ago=None if said_ms is None else now_ms - said_ms,
            )
            - name.discount
        )


class _Listed(NamedTuple):
    rank: int
    text: str
    entity_id: EntityId
    odd: float
    discount: float
    by_itself: float
    """Priority independent of the table."""
