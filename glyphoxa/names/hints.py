"""What the recognisers of a running table are told to listen for: an `ContextualBiasing` that is kept with the events.

Watches the table like anybody else: the names of a new scene, of what is said by whomever and of what had to be put
right change what is expected, and the ears are told when names come or go. The same knowledge says what is near, and so
needs less evidence to be taken for what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import SceneChanged, TableEvent, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.biasing import ContextualBiasing
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.wrong_forms import LearnedName

LATELY_MS = 300_000
"""What was named so long ago is near."""


class Hints:
    """Args:
    now_ms: Unix epoch.
    """

    def __init__(self, campaign: Campaign, names: Gazetteer, *, now_ms: Callable[[], int]) -> None:
        self._campaign = campaign
        self._names = names
        self._now_ms = now_ms
        self._expectation = ContextualBiasing()
        self._listeners: list[Callable[[], None]] = []
        self._scene: Scene | None = None
        self._here: frozenset[EntityId] = frozenset()
        self._named_ms: dict[EntityId, int] = {}
        self._expectation.names_are(names)
        self._told = self.keyterms()

    def keyterms(self) -> tuple[str, ...]:
        """For a provider that boosts names; see `ContextualBiasing.keyterms`."""
        return self._expectation.keyterms(self._now_ms())

    def glossary(self) -> str:
        """For a recogniser that takes a prompt; see `ContextualBiasing.glossary`."""
        return self._expectation.glossary(self._now_ms())

    def nearby(self) -> frozenset[EntityId]:
        """Entities of the scene, and those that were named lately."""
        since_ms = self._now_ms() - LATELY_MS
        return self._here.union(entity for entity, at_ms in self._named_ms.items() if at_ms >= since_ms)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Be told when key terms come or go; at once, so a listener that costs something waits for the burst to end.
        Returns what ends the subscription.
        """
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed) if changed in self._listeners else None

    def on(self, event: TableEvent) -> None:
        """Takes every event of the table."""
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
        """The knowledge graph has changed. A listener for `glyphoxa.names.gazetteer.ObservableGazetteer`."""
        self._names = names
        self._expectation.names_are(names)
        if self._scene is not None:
            self._set(self._scene)
        self._tell()

    def scene_is(self, scene: Scene) -> None:
        self._scene = scene
        self._set(scene)
        self._tell()

    def garbled_before(self, pairs: Iterable[LearnedName]) -> None:
        """What was misheard in earlier sessions, as far as nobody has said that it was not."""
        for pair in pairs:
            if pair.status.state in ("active", "suggested"):
                self._expectation.garbled(pair.entity_id, pair.status.count)
        self._tell()

    def _set(self, scene: Scene) -> None:
        self._here = frozenset(self._in(scene))
        self._expectation.scene_is(self._here)

    def _in(self, scene: Scene) -> set[EntityId]:
        """The place, who is there, who sits at the table, and what the scene's description names."""
        entities = {npc.id: npc.entity_id for npc in self._campaign.npcs}
        here = {scene.location, *(EntityId(player.id) for player in self._campaign.players)}
        here |= {entities[npc] for npc in scene.npcs if npc in entities}
        return here | {mention.name.entity_id for mention in self._names.mentions(scene.description)}

    def _heard(self, utterance: Utterance, *, known: Sequence[Correction] = ()) -> None:
        for mention in self._names.mentions(utterance.text):
            entity = mention.name.entity_id
            self._expectation.said(entity, utterance.at_ms)
            self._named_ms[entity] = max(utterance.at_ms, self._named_ms.get(entity, utterance.at_ms))
        for correction in utterance.corrections:
            if correction in known:  # it was counted when the utterance was kept
                continue
            for mention in self._names.mentions(correction.after):
                self._expectation.garbled(mention.name.entity_id)
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, self.keyterms()
        if set(told) != set(self._told):
            for listener in tuple(self._listeners):
                listener()
