"""What the recognisers of a running table are told to listen for: `glyphoxa.speech.expectation`, kept with the events.

Watches the table like anybody else: the names of a new scene, of what is said by whomever and of what had to be put
right change what is expected, and the ears are told when names come or go.
"""

from __future__ import annotations

from collections.abc import Callable

from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import SceneChanged, TableEvent, UtteranceKept
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.speech.expectation import Expectation
from glyphoxa.speech.gazetteer import Gazetteer


class Hints:
    """Args:
    now_ms: Unix epoch.
    """

    def __init__(self, campaign: Campaign, names: Gazetteer, *, now_ms: Callable[[], int]) -> None:
        self._campaign = campaign
        self._names = names
        self._now_ms = now_ms
        self._expectation = Expectation()
        self._listeners: list[Callable[[], None]] = []
        self._scene: Scene | None = None
        self._expectation.names_are(names)
        self._told = self.keyterms()

    def keyterms(self) -> tuple[str, ...]:
        """For a provider that boosts names; see `Expectation.keyterms`."""
        return self._expectation.keyterms(self._now_ms())

    def glossary(self) -> str:
        """For a recogniser that takes a prompt; see `Expectation.glossary`."""
        return self._expectation.glossary(self._now_ms())

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
            case _:
                pass

    def names_are(self, names: Gazetteer) -> None:
        """The knowledge graph has changed. A listener for `glyphoxa.speech.name_book.NameBook`."""
        self._names = names
        self._expectation.names_are(names)
        if self._scene is not None:
            self._expectation.scene_is(self._in(self._scene))
        self._tell()

    def scene_is(self, scene: Scene) -> None:
        self._scene = scene
        self._expectation.scene_is(self._in(scene))
        self._tell()

    def _in(self, scene: Scene) -> set[EntityId]:
        """The place, who is there, who sits at the table, and what the scene's description names."""
        entities = {npc.id: npc.entity_id for npc in self._campaign.npcs}
        here = {scene.location, *(EntityId(player.id) for player in self._campaign.players)}
        here |= {entities[npc] for npc in scene.npcs if npc in entities}
        return here | {mention.name.entity_id for mention in self._names.mentions(scene.description)}

    def _heard(self, utterance: Utterance) -> None:
        for mention in self._names.mentions(utterance.text):
            self._expectation.said(mention.name.entity_id, utterance.at_ms)
        for correction in utterance.corrections:
            for mention in self._names.mentions(correction.after):
                self._expectation.garbled(mention.name.entity_id)
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, self.keyterms()
        if set(told) != set(self._told):
            for listener in tuple(self._listeners):
                listener()
