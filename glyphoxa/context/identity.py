"""What an NPC knows of itself, in words: it stands in every prompt of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from glyphoxa.context.knowledge import fact_sentence, fitting, names_of, recalled, sentences_of
from glyphoxa.context.of_file import ScopedKnowledge
from glyphoxa.context.own_secrets import OwnSecret, words_of
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import DM, Fact
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.terms import Terms
from glyphoxa.world.api import IdentitySnapshot, KnowledgeGraph, Known


@dataclass(frozen=True, slots=True)
class Identity:
    """
    Attributes:
        facts: What the lines say.
        secrets: What stands in a prompt only where the talk comes to it.
        known: What all of it is made of; None: nothing is known.
    """

    lines: tuple[str, ...] = ()
    facts: frozenset[FactId] = frozenset()
    secrets: tuple[OwnSecret, ...] = ()
    known: Known | None = None

    def tells(self, one: RecalledFact) -> bool:
        """Whether it stands in the prompt already: nothing is told as identity and recalled as well."""
        return one.fact_id in self.facts or one.text in self.lines


NOTHING_KNOWN = Identity()


def identity_of(known: Known, *, tokens: int, secrets: Sequence[OwnSecret] = ()) -> Identity:
    """What is known of an NPC, as far as it fits. What was only heard in talk is recalled where a question asks for it:
    here, in front of all talk, it would have the whole prompt read anew in the middle of a scene.

    Args:
        tokens: Secrets not counted.
    """
    sentences = fitting(sentences_of(_settled(known)), tokens=tokens)
    return Identity(
        tuple(dict.fromkeys(sentence.text for sentence in sentences)),
        frozenset(sentence.fact.id for sentence in sentences if sentence.is_whole),
        tuple(secrets),
        known,
    )


def _settled(known: Known) -> Known:
    return replace(
        known,
        attributes=tuple(fact for fact in known.attributes if not _is_hearsay(fact)),
        relations=tuple((fact, entity) for fact, entity in known.relations if not _is_hearsay(fact)),
    )


def _is_hearsay(fact: Fact) -> bool:
    of = fact.provenance
    return of.origin == "talk" and of.session_id is not None and not of.dm_confirmed


class Identities:
    """Of a campaign's NPCs, each as it was read last.

    Args:
        graph: None without long-term memory: the campaign's file tells.
        tokens: Of one identity, its secrets not counted.
        accept_at: The confidence from which the file's facts are accepted.
    """

    def __init__(self, campaign: Campaign, graph: KnowledgeGraph | None, *, tokens: int, accept_at: float) -> None:
        self._campaign = campaign
        self._graph = graph
        self._tokens = tokens
        self._terms = Terms(campaign.language)
        self._of_file = ScopedKnowledge.of_file(campaign, accept_at=accept_at)
        self._last: dict[NpcId, Identity] = {}
        self._were_stored: set[NpcId] = set()
        self._ends: dict[tuple[NpcId, EntityId], Entity] = {}

    def last(self, npc: NpcId) -> Identity:
        """As it was read last."""
        return self._last.get(npc, NOTHING_KNOWN)

    def new_scene(self) -> None:
        """Names of others may have changed."""
        self._ends.clear()

    async def read(self, npc: NpcId) -> None:
        """
        Raises:
            GlyphoxaError: It cannot be read now; the last one stays.
        """
        if self._graph is None:
            await self.read_file(npc)
            return
        entity = self._campaign.npc(npc).entity_id
        snapshot = await self._graph.identity_snapshot(self._campaign.id, npc, entity)
        if snapshot is not None:
            self._were_stored.add(npc)
            self._last[npc] = await self._in_words(npc, snapshot)
        elif npc in self._were_stored or await self._graph.known(self._campaign.id, DM, entity) is not None:
            # It was removed, or is not for this NPC to know, whatever it or the file knew before.
            self._last[npc] = NOTHING_KNOWN
        else:
            await self.read_file(npc)  # it is not stored yet

    async def read_file(self, npc: NpcId) -> None:
        """As far as the campaign's file lets it know, unless something was read before."""
        if npc in self._last:
            return
        snapshot = self._of_file.identity(npc, self._campaign.npc(npc).entity_id)
        self._last[npc] = await self._in_words(npc, snapshot) if snapshot is not None else NOTHING_KNOWN

    async def _in_words(self, npc: NpcId, snapshot: IdentitySnapshot) -> Identity:
        known = snapshot.known
        ends = {known.entity.id: known.entity, **{other.id: other for _, other in known.relations}}
        secrets = [await self._secret(npc, fact, ends) for fact in snapshot.secrets]
        return identity_of(known, tokens=self._tokens, secrets=[secret for secret in secrets if secret is not None])

    async def _secret(self, npc: NpcId, fact: Fact, ends: dict[EntityId, Entity]) -> OwnSecret | None:
        claim, own = fact.claim, self._campaign.npc(npc).entity_id
        subject = await self._end(npc, claim.subject, ends)
        other = await self._end(npc, claim.object, ends) if claim.object is not None else None
        if claim.predicate == "secret" and isinstance(claim.content, str):
            text = claim.content  # a sentence of its own
        elif subject is None or (claim.object is not None and other is None):
            return None
        else:
            text = fact_sentence(fact, subject, other)
        about = [name for end in (subject, other) if end is not None and end.id != own for name in names_of(end)]
        words = words_of(" ".join((text, *about)), self._terms)
        return OwnSecret(recalled(text, fact, npc), words) if text else None

    async def _end(self, npc: NpcId, entity: EntityId, ends: dict[EntityId, Entity]) -> Entity | None:
        """An entity that a secret speaks of: asked for once, as it is only for its name."""
        found = ends.get(entity) or self._ends.get((npc, entity)) or self._of_file.entity(npc, entity)
        if found is None and self._graph is not None:
            known = await self._graph.known(self._campaign.id, npc, entity)
            if known is not None:
                found = self._ends[npc, entity] = known.entity
        return found
