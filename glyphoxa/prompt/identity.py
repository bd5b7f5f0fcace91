"""Provide what is in all prompts of an NPC: who it is, how it speaks, and what it knows of itself and of the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import itemgetter
from typing import Final, TypeAlias

from glyphoxa.domain.budgets import PERSONA_TOKENS, Budgets
from glyphoxa.domain.campaign import Campaign, Exchange, Npc
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import HOLDINGS, Fact, RecalledFact
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.facts import RUMOUR, WHOLE_SENTENCES, as_sentence, is_named_in, spoken
from glyphoxa.language.prompt_quotes import SAYS, in_one_line
from glyphoxa.language.relations import RelationWords, in_words
from glyphoxa.language.sentences import RoomLeft, characters_in, shortened
from glyphoxa.language.text import Text
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prompt import Message, with_facts, with_kept
from glyphoxa.prompt.select import OwnSecret, recalled, sentences_of, told_sentence
from glyphoxa.prompt.wording import OCCUPATIONS, said_line, wording
from glyphoxa.recall.world import World
from glyphoxa.world.graph import IdentitySnapshot, Known


@dataclass(frozen=True, slots=True)
class Identity:
    """
    Attributes:
        facts: The content of the lines.
        secrets: In a prompt only when the conversation touches them.
        known: The source of all of it; None: nothing is known.
        holdings: Lines about things that it got or gave in play.
    """

    lines: tuple[str, ...] = ()
    facts: frozenset[FactId] = frozenset()
    secrets: tuple[OwnSecret, ...] = ()
    known: Known | None = None
    holdings: tuple[str, ...] = ()

    def tells(self, one: RecalledFact) -> bool:
        """Return whether the prompt already contains it, so that nothing is in the identity and recalled as well."""
        return one.fact_id in self.facts or one.text in self.lines


def identity_of(known: Known, *, tokens: int, words: RelationWords, secrets: Sequence[OwnSecret] = ()) -> Identity:
    """Return what is known of an NPC, as far as it fits.

    Facts from the transcript are recalled when a question asks for them. At this place, before the transcript, a new
    one would invalidate the prompt cache in the middle of a scene.

    Args:
        tokens: Secrets not counted.
    """
    told = sentences_of(known, words)
    lines = RoomLeft.of(tokens).fitting((text for text, fact in told.items() if not _is_hearsay(fact)), cuts=True)
    held = (text for text, fact in told.items() if _is_hearsay(fact) and fact.claim.predicate in HOLDINGS)
    # A line that was shortened states no whole fact.
    facts = frozenset(told[line].id for line in lines if line in told)
    return Identity(tuple(lines), facts, tuple(secrets), known, tuple(held))


def _is_hearsay(fact: Fact) -> bool:
    of = fact.provenance
    return of.origin == "talk" and of.session_id is not None and not of.dm_confirmed


class Identities:
    """The identities of a campaign's NPCs, each as read last.

    Args:
        tokens: Budget of one identity without its secrets.
        always_tokens: Budget for what it knows of entities whose type is in each prompt.
    """

    def __init__(self, campaign: Campaign, world: KnownWorld, *, tokens: int, always_tokens: int = 0) -> None:
        self._campaign = campaign
        self._words = RelationWords.of(campaign)
        self._world = world
        self._tokens = tokens
        self._always_tokens = always_tokens
        self._always = campaign.schema.always_injected()
        self._last: dict[NpcId, tuple[IdentitySnapshot | None, Identity]] = {}

    def read(self, npc: NpcId) -> Identity:
        """Return what an NPC knows of itself now, or knew at the last reading while the world is not in memory.

        Before the first reading it is what the file lets it know.
        """
        before, identity = self._last.get(npc, (None, None))
        if (world := self._world.current) is None:
            if identity is not None:
                return identity
            world = self._world.of_file
        snapshot = world.identity(npc, self._campaign.npc(npc).entity_id, always=self._always)
        if identity is None or snapshot != before:
            identity = Identity()
            if snapshot is not None:
                secrets = filter(None, (self._secret(npc, fact, world) for fact in snapshot.secrets))
                identity = identity_of(snapshot.known, tokens=self._tokens, words=self._words, secrets=[*secrets])
                identity = self._with_always(identity, snapshot.always)
            self._last[npc] = snapshot, identity
        return identity

    def _with_always(self, identity: Identity, known: Sequence[Known]) -> Identity:
        """Return the identity with what the NPC knows of entities whose type is in each prompt, as far as it fits."""
        room, facts = RoomLeft.of(self._always_tokens), set(identity.facts)
        lines = list(identity.lines)
        for one in known:
            told = sentences_of(one, self._words)
            fitting = room.fitting(text for text in told if text not in lines)
            lines += fitting
            facts.update(told[line].id for line in fitting)
        return replace(identity, lines=tuple(lines), facts=frozenset(facts))

    def _secret(self, npc: NpcId, fact: Fact, world: World) -> OwnSecret | None:
        claim, own = fact.claim, self._campaign.npc(npc).entity_id
        found = {end: world.entity(npc, end) for end in claim.ends}
        ends = [one for one in found.values() if one is not None]
        if claim.predicate == "secret" and isinstance(claim.content, str):
            text = claim.content  # a sentence of its own
        elif len(ends) < len(found):
            return None
        else:
            text = told_sentence(fact, ends[0], ends[-1] if claim.object is not None else None, words=self._words)
        about = [name for end in ends if end.id != own for name in end.names]
        words = Text.of(" ".join((text, *about))).telling(self._campaign.language)
        return OwnSecret(recalled(text, fact, npc), words) if text else None


# The start of all prompts of an NPC: who it is, how it speaks, and examples of its answers.
#
# It stays the same for the whole session, so a prompt cache reads it once. An NPC without examples by its author gets
# some from the campaign's file: without any, a small model speaks about the NPC instead of as the NPC. They have the
# form of questions at the table, which it copies.


_LONGEST_VALUE = 60
_SURE = 1.0
"""Facts that may need review are in no example."""


def beginning_of(campaign: Campaign, npc: Npc, known: Known | None) -> tuple[Message, ...]:
    """Return the messages before the transcript.

    Args:
        known: The NPC's present knowledge of itself; None: nothing.
    """
    words, safety = wording(campaign.language), topics_of(campaign)
    persona = safety.allowed(npc.persona) or words.persona.format(name=npc.name)
    shown = [Message("system", f"{persona}\n{words.frame.format(name=npc.name)}")]
    for example in npc.examples or default_examples(campaign, npc, known):
        if safety.forbids("\n".join((example.said, example.facts, example.remembered, example.kept, example.reply))):
            continue
        said = in_one_line(example.said) if SAYS.match(example.said) else said_line(words.somebody, example.said)
        asked = with_facts(said, in_one_line(example.facts), in_one_line(example.remembered))
        shown.append(Message("user", with_kept(asked, words.keeps, in_one_line(example.kept))))
        shown.append(Message("assistant", example.reply))
    return tuple(shown)


def default_examples(campaign: Campaign, npc: Npc, known: Known | None) -> tuple[Exchange, ...]:
    """Return examples for an NPC without its own; a speaker is added as to others. For `known`, see `beginning_of`."""
    words = wording(campaign.language)
    told = {"name": npc.name, **_told_of(known)}
    first, *others = words.examples
    shown = [first]
    shown += [words.works] if "occupation" in told else []
    shown += [words.is_at] if "place" in told else []
    shown += [words.unknown_then] if _is_of_old(campaign) else []
    return tuple(_filled(example, told) for example in (*shown, *others))


_YEAR: Final = re.compile(r"(?<![\d,.])[12]\d{3}(?![\d,.]\d|\d)")
_NEW_WORLD: Final = 1_900


def _is_of_old(campaign: Campaign) -> bool:
    """Return whether the years in its name, bible and current day are all before 1900. Without a year, it is not."""
    years = _YEAR.findall(" ".join((campaign.name, campaign.bible, campaign.story_day)))
    return bool(years) and all(int(year) < _NEW_WORLD for year in years)


def _filled(example: Exchange, told: dict[str, str]) -> Exchange:
    said, reply, facts, kept = (
        text.format(**told) for text in (example.said, example.reply, example.facts, example.kept)
    )
    return Exchange(said, reply, facts, kept=kept)


def _told_of(known: Known | None) -> dict[str, str]:
    """Return the NPC's occupation and place, if they are public and short."""
    if known is None:
        return {}
    found: dict[str, str] = {}
    for fact in known.attributes:
        value = fact.claim.content
        is_named = fact.claim.predicate.casefold() in OCCUPATIONS and isinstance(value, str) and value.strip()
        if is_named and _is_plain(fact) and len(str(value)) <= _LONGEST_VALUE:
            found.setdefault("occupation", str(value).strip())
    for fact, other in known.relations:
        is_its_place = fact.claim.predicate == "LOCATED_AT" and fact.claim.subject == known.entity.id
        if is_its_place and _is_plain(fact):
            found.setdefault("place", other.name)
    return found


def _is_plain(fact: Fact) -> bool:
    return fact.visibility.scope == "public" and replace(fact.provenance, accept_at=_SURE).is_enough


_DRAFT_TOKENS: Final = PERSONA_TOKENS * 2 // 3
"""The author adds how the NPC speaks."""


def allowed_draft(campaign: Campaign, text: str, *, secret_names: Collection[str]) -> str:
    """Return the sentences of a text that are about no forbidden topic and contain none of these names."""
    found = Text.of(topics_of(campaign).allowed(text)).sentences
    return " ".join(each for each in found if not any(is_named_in(each, name) for name in secret_names))


def persona_draft(campaign: Campaign, known: Known, *, secret_names: Collection[str], written: str = "") -> str:
    """Return a persona in the second person, from the public and certain attributes of a person, without rumours.

    A persona is in every prompt of its NPC, so it contains nothing that only some may know, and no forbidden topic.

    Args:
        secret_names: Names that not everybody may know. A sentence that contains one is left out.
        written: A text of an author for this NPC, instead of the attributes.
    """
    words, topics, left_out = wording(campaign.language), topics_of(campaign), {*OCCUPATIONS, RUMOUR}

    allowed = partial(allowed_draft, campaign, secret_names=secret_names)
    name, occupation = known.entity.name, allowed(_told_of(known).get("occupation", ""))
    own = [fact for fact in known.attributes if _is_plain(fact) and fact.claim.predicate.casefold() not in left_out]
    facts = []
    for fact in sentences_of(Known(known.entity, tuple(own)), RelationWords.of(campaign)).values():
        predicate, value = fact.claim.predicate, spoken(fact)
        text = allowed(value if predicate in WHOLE_SENTENCES else f"{in_words(predicate).capitalize()}: {value}")
        facts += [as_sentence(text)] if text else []
    begun = (words.persona_of_trade if occupation else words.persona).format(name=name, occupation=occupation)
    told = shortened(allowed(written), characters_in(PERSONA_TOKENS) - len(begun) - len(words.known_of_you))
    told = told or " ".join(RoomLeft.of(_DRAFT_TOKENS).fitting(facts, cuts=True))
    persona = f"{begun} {words.known_of_you.format(facts=told)}" if told else begun
    return words.persona.format(name=name) if topics.forbids(persona) else persona


def examples_draft(campaign: Campaign, npc: Npc, texts: Sequence[str], *, secrets: Collection[str]) -> list[Exchange]:
    """Return an author's examples (two lines each), and the default ones, against inventions of a small model."""
    allowed = partial(allowed_draft, campaign, secret_names=secrets)
    own = [Exchange(*each.partition("\n")[::2]) for each in texts if allowed(each) == in_one_line(each)]
    said = {each.said for each in own}
    return own + [each for each in default_examples(campaign, npc, None) if own and each.said not in said]


# The sentences of an author's text that one NPC may read.


_MOST_HELD: Final = 2_048
"""Texts whose sentences are cached."""


class KnownSentences:
    """The sentences of an author's text that one NPC may read.

    Attributes:
        known: Returns what an NPC may know of an entity; None if nothing.
    """

    def __init__(self, campaign: Campaign, known: Callable[[NpcId, EntityId], Known | None]) -> None:
        self.known = known
        self._campaign = campaign
        self._held = lru_cache(_MOST_HELD)(self._sentences)

    def of(self, npc: NpcId, text: str) -> list[tuple[str, frozenset[EntityId]]]:
        """Return the sentences that name nothing unknown to the NPC, each with the entities in it."""
        return [
            (sentence, named)
            for sentence, named in self._held(text)
            if all(self.known(npc, one) is not None for one in named)
        ]

    def _sentences(self, text: str) -> list[tuple[str, frozenset[EntityId]]]:
        folded = " ".join(text.split()).casefold()
        # A campaign may have thousands of names, and this runs for every answer.
        names = [(e.id, name) for e in self._campaign.entities for name in e.names if name.casefold() in folded]
        return [
            (sentence, frozenset(entity for entity, name in names if is_named_in(sentence, name)))
            for sentence in Text.of(text).sentences
        ]


# Instructions of an author for all prompts of an NPC: the same words from turn to turn, before everything that changes.
#
#     1. the campaign's bible: the party, the world, how it began          as far as its budget allows
#     2. the NPC's standing orders, and the languages that it speaks       always
#     3. the glossary: the author's terms, then those that were coined     all, if they fit; otherwise those
#        in play and have a meaning                                         that occur in another of these parts
#     4. the newest terms without a meaning                                as far as there is room
#
# If the glossary does not fit, the terms of the question and of the talk follow the question. A sentence that names
# what this NPC may not know is left out.

_BARE_TOKENS: Final = 100
"""Budget of terms without a meaning: a name alone says little."""
CoinedOf: TypeAlias = Callable[[NpcId], Sequence[tuple[str, str]]]


class Bible:
    """The author's instructions in all prompts of an NPC.

    Args:
        budgets: Budgets of the bible and the glossary. The terms that follow a question take as much as the facts, and
            that much less is left for a glossary that does not fit.
        terms: The terms coined in play that an NPC may know, each with its meaning; empty if it has none.
    """

    def __init__(
        self,
        campaign: Campaign,
        sentences: KnownSentences,
        *,
        budgets: Budgets,
        terms: CoinedOf = lambda _npc: (),
    ) -> None:
        self._campaign = campaign
        self._sentences = sentences
        self._terms = terms
        self._budgets = budgets
        self._words_of = lru_cache(_MOST_HELD)(lambda text: Text.of(text).telling(campaign.language))
        self._words = wording(campaign.language)

    def lines(self, npc: NpcId) -> tuple[str, ...]:
        """Return the lines that this NPC may read now."""
        bible = RoomLeft.of(self._budgets.bible_tokens).fitting(self._known(npc, self._campaign.bible))
        return (*bible, *self.orders(npc))

    def orders(self, npc: NpcId) -> tuple[str, ...]:
        """Return the lines among them that no budget leaves out."""
        who = self._campaign.npc(npc)
        kept_to = [sentence for text in who.standing for sentence in self._known(npc, text)]
        speaks = [self._words.speaks_only(who.speaks)] if who.speaks else []
        return (*kept_to, *speaks)

    def glossary(self, npc: NpcId, beside: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a line for each term with a meaning, and one for the others, as far as they fit.

        Args:
            beside: The other texts in all prompts. If not all terms fit, only those that occur here are returned.
        """
        meanings, room = self._meanings(npc), RoomLeft.of(self._budgets.glossary_tokens)
        if sum(len(f"{term}: {meaning}. ") for term, meaning in meanings.items() if meaning) > room.left:
            room = RoomLeft.of(self._budgets.glossary_tokens - self._budgets.facts_tokens)
            meanings = self._occurring(meanings, beside)
        lines = self._lines(npc, meanings)
        told = room.fitting(lines.values())
        bare = [term for term, line in lines.items() if not line]
        most = min(room.left, characters_in(_BARE_TOKENS))
        while bare and len(self._words.said_here(bare)) > most:
            bare.pop()
        return tuple(line for line in (*told, self._words.said_here(bare)) if line)

    def mentioned(self, npc: NpcId, texts: Sequence[str], shown: Sequence[str]) -> list[str]:
        """Return a line for each term with a meaning that occurs in one of the texts, as far as they fit.

        Args:
            texts: The first one's terms come first.
            shown: Lines that are in the prompt.
        """
        lines, tokens = self._lines(npc, self._occurring(self._meanings(npc), texts)), self._budgets.facts_tokens
        return RoomLeft.of(tokens).fitting((line for line in lines.values() if line not in shown), cuts=True)

    def _meanings(self, npc: NpcId) -> dict[str, str]:
        """Return the terms and their meanings; "" for one without."""
        return {**self._campaign.glossary, **dict(self._terms(npc)), **self._campaign.glossary}

    def _lines(self, npc: NpcId, meanings: Mapping[str, str]) -> dict[str, str]:
        """Return the terms, each with its line; "" for one that was coined and whose meaning the NPC may not know."""
        authors = self._campaign.glossary
        lines = {
            term: self._known(npc, f"{term}: {as_sentence(text)}" if text else "") for term, text in meanings.items()
        }
        return {term: " ".join(line) for term, line in lines.items() if line or term not in authors}

    def _occurring(self, meanings: Mapping[str, str], texts: Sequence[str]) -> dict[str, str]:
        """Return the terms that occur in a text, those of the first text first."""
        words = [self._words_of(text) for text in texts]
        anywhere = frozenset[str]().union(*words)
        found: list[tuple[int, str]] = []
        for term in meanings:
            own = self._words_of(term)
            at = (n for n, text in enumerate(texts) if own <= words[n] and (own or is_named_in(text, term)))
            if own <= anywhere and (first := next(at, None)) is not None:
                found.append((first, term))
        return {term: meanings[term] for _, term in sorted(found, key=itemgetter(0))}

    def texts(self, npc: NpcId) -> Iterator[tuple[str, str, str]]:
        """Yield each sentence about the NPC and the world that it may read now: its source, itself, what is embedded.

        "How deep are we?" is near to a sentence about the world only if that says of whom it is.
        """
        for sentence in Text.of(self._campaign.npc(npc).persona).sentences:
            yield "persona", sentence, sentence
        coined = [f"{term}: {meaning}" for term, meaning in self._campaign.glossary.items()]
        for text in (self._campaign.bible, *coined):
            for sentence in self._known(npc, text):
                yield "bible", sentence, self._words.of_us.format(what=sentence)

    def _known(self, npc: NpcId, text: str) -> list[str]:
        return [sentence for sentence, _ in self._sentences.of(npc, as_sentence(text))] if text else []
