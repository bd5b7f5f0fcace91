"""Reads the pages of an import: claims in their prose become facts that the DM reviews.

The extractor reads sentences as if a narrator without a name had said them, so that nothing is learned about an "I".
Only claims about entities that the campaign has are kept: what an import brings has a page of its own. Visible and
hidden pages are never read together.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from glyphoxa.chronicle.effects import MAX_VALUE_CHARS
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.rules_extractor import PEOPLE
from glyphoxa.chronicle.statements import named_first
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, NEVER, PUBLIC, Claim, Provenance
from glyphoxa.language.sentences import sentences
from glyphoxa.world.fact_events import FactStated

MOST_OF_PAGE: Final = 3
MOST_OF_IMPORT: Final = 200
"""A DM would not review more. The surest ones are proposed."""
_RELATION: Final = 0.7
_FACT: Final = 0.8
"""Least confidence. It leaves out sentences that are kept verbatim: the page has them."""
_AT_ONCE: Final = 2_000
"""Sentences of a call to the extractor, which indexes all names for each call."""
_LONGEST: Final = 2_000
"""Characters of a sentence that is read."""
_NOWHERE: Final = CampaignId("")
_NEVER_SAID: Final = SessionId("")


@dataclass(frozen=True, slots=True)
class Page:
    """A text of a document that was accepted.

    Attributes:
        entity: The entity that the document became.
        text: Markdown. Headings, tables and quoted blocks of it are not read.
        source: Where it stands, for the DM.
    """

    entity: EntityId
    text: str
    hidden: bool
    source: str


async def claims_in(
    pages: Sequence[Page],
    known: Sequence[KnownEntity],
    extractor: Extractor,
    *,
    language: str,
    stated: Container[FactId] = (),
) -> tuple[FactStated, ...]:
    """Return claims in the prose of these pages that the DM should review, the surest first.

    A claim of a hidden page, or about a hidden entity, is hidden. Raises: As `Extractor.extract`.

    Args:
        known: All entities of the campaign, those of the import included.
        stated: Facts that hold, or that the DM rejected: they are not proposed again.
    """
    entities = {each.id: each for each in known}
    found: dict[FactId, FactStated] = {}
    # Visible ones first: what a visible page says is not hidden because a hidden one repeats it.
    for hidden, of_kind in groupby(sorted(pages, key=lambda page: page.hidden), key=lambda page: page.hidden):
        lines = ((page, text) for page in of_kind for text in _lines(page, entities.get(page.entity)))
        while part := await asyncio.to_thread(list, islice(lines, _AT_ONCE)):  # a table may be playing on this loop
            page_of = {UtteranceId(str(n)): page for n, (page, _) in enumerate(part)}
            said = tuple(_narrated(n, text) for n, (_, text) in enumerate(part))
            extraction = await extractor.extract(SceneTalk(_NOWHERE, _NEVER_SAID, language, said), known)
            for claim, confidence, evidence in _claims(extraction):
                page, ends = page_of[evidence], [entities.get(end) for end in (claim.subject, claim.object) if end]
                about = entities.get(page.entity)
                # On a page about one person, half of the attributes of somebody else are wrong.
                is_persons = about is not None and about.type in PEOPLE
                in_passing = is_persons and claim.object is None and claim.subject != page.entity
                if None in ends or in_passing or claim.fact_id in found or claim.fact_id in stated:
                    continue
                is_hidden = hidden or any(end is not None and end.visibility != PUBLIC for end in ends)
                provenance = Provenance(confidence, origin="import", reason=page.source, accept_at=NEVER)
                found[claim.fact_id] = FactStated(claim, provenance, HIDDEN if is_hidden else PUBLIC)
    n_of = Counter[str]()
    surest = []
    for fact in sorted(found.values(), key=lambda fact: -fact.provenance.confidence):
        n_of[fact.provenance.reason] += 1
        if n_of[fact.provenance.reason] <= MOST_OF_PAGE:
            surest.append(fact)
    return tuple(surest[:MOST_OF_IMPORT])


def _lines(page: Page, about: KnownEntity | None) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items.

    On the page of a person, a sentence that begins with "she" is about that person.
    """
    name = about.name if about is not None and about.type in PEOPLE else ""
    for block in page.text.split("\n\n"):
        lines = [line.strip() for line in block.splitlines()]
        prose = " ".join(line.lstrip("-*+ ") for line in lines if not line.startswith(("#", "|", ">", "```")))
        for mark in ("**", "__", "*", "_"):
            prose = prose.replace(mark, "")
        for sentence in sentences(prose):
            yield named_first(sentence, name)[:_LONGEST] if name else sentence[:_LONGEST]


def _narrated(n: int, text: str) -> NumberedUtterance:
    said = Utterance(UtteranceId(str(n)), _NOWHERE, _NEVER_SAID, SpeakerId(""), "", text, text, at_ms=0)
    return NumberedUtterance(said, n + 1)


def _claims(extraction: Extraction) -> Iterator[tuple[Claim, float, UtteranceId]]:
    known = {each.key: each.known for each in extraction.entities}
    for relation in extraction.relations:
        subject, object_ = known.get(relation.source), known.get(relation.target)
        if subject is not None and object_ is not None and subject != object_ and relation.confidence >= _RELATION:
            yield Claim.relation(subject, relation.type, object_), relation.confidence, relation.evidence[0]
    for fact in extraction.facts:
        subject = known.get(fact.subject)
        if subject is not None and fact.confidence >= _FACT and len(fact.value) <= MAX_VALUE_CHARS:
            yield Claim.attribute(subject, fact.about, fact.value), fact.confidence, fact.evidence[0]
