"""Claims in the pages of an import are proposed for review, and none that a page hides becomes public."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chronicle import page_reading
from glyphoxa.chronicle.page_reading import MOST_OF_IMPORT, MOST_OF_PAGE, Page, claims_in
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Claim
from glyphoxa.world.fact_events import FactStated

ODO, WENNA, DUNHARROW, GUILD, CHAPTER = map(EntityId, ("odo", "wenna", "dunharrow", "guild", "chapter"))
KNOWN = (
    KnownEntity(ODO, "npc", "Odo Fennimore", ("Odo",)),
    KnownEntity(WENNA, "npc", "Wenna"),
    KnownEntity(DUNHARROW, "location", "Dunharrow"),
    KnownEntity(GUILD, "faction", "the Lantern Guild"),
    KnownEntity(CHAPTER, "concept", "Chapter One"),
)


def page(text: str, of: EntityId = ODO, *, hidden: bool = False, source: str = "foundry page") -> Page:
    return Page(of, text, hidden, source)


def claims(
    *pages: Page, known: Sequence[KnownEntity] = KNOWN, stated: Container[FactId] = (), language: str = "en"
) -> tuple[FactStated, ...]:
    return asyncio.run(claims_in(pages, known, RulesExtractor(language), language=language, stated=stated))


LIVES = Claim.relation(ODO, "LOCATED_AT", DUNHARROW)
LEADS = Claim.relation(ODO, "LEADS", GUILD)
TRADE = Claim.attribute(ODO, "occupation", "miller")


def test_claims_wait_for_the_dm_with_their_page_as_reason() -> None:
    (fact,) = claims(page("Odo lives in Dunharrow.", source="foundry Actor (npc) Odo, Biography (data/actors.db, a1)"))
    assert fact.claim == LIVES and fact.visibility == PUBLIC
    assert fact.provenance.origin == "import"
    assert not fact.provenance.dm_confirmed and not fact.provenance.is_enough
    assert fact.provenance.reason == "foundry Actor (npc) Odo, Biography (data/actors.db, a1)"


def test_pronoun_on_page_of_person_means_that_person() -> None:
    text = (
        "A quiet man. He is a miller.\n\n- He lives in **Dunharrow**.\n- Wenna knows him. He leads the Lantern Guild."
    )
    assert {fact.claim for fact in claims(page(text))} == {TRADE, LIVES, LEADS}


def test_pronoun_on_other_page_is_not_resolved_across_sentences() -> None:
    assert claims(page("Wenna knows Odo. She saw Dunharrow. He leads the Lantern Guild.", CHAPTER))[1:] == ()


def test_german_pages_are_read() -> None:
    assert {fact.claim for fact in claims(page("Odo wohnt in Dunharrow."), language="de")} == {LIVES}


def test_headings_tables_quotes_and_code_are_not_read() -> None:
    text = "# Odo lives in Dunharrow\n\n| Odo lives in Dunharrow. |\n|---|\n\n> Odo lives in Dunharrow.\n\n```\n"
    assert claims(page(text)) == ()


def test_first_person_promises_and_unknown_names_yield_nothing() -> None:
    text = "I live in Dunharrow. We promise to help the Lantern Guild. Zorblax lives in Dunharrow. Odo gave us coins."
    assert claims(page(text)) == ()


def test_attribute_of_other_person_in_passing_is_left_out() -> None:
    text = "Wenna is a miller. Odo is a miller."
    assert [fact.claim for fact in claims(page(text))] == [TRADE]
    assert len(claims(page(text, CHAPTER))) == 2


def test_claim_of_hidden_page_is_hidden() -> None:
    assert [fact.visibility for fact in claims(page("Odo lives in Dunharrow.", hidden=True))] == [HIDDEN]


def test_claim_about_hidden_entity_on_visible_page_is_hidden() -> None:
    known = [replace(each, visibility=HIDDEN) if each.id == DUNHARROW else each for each in KNOWN]
    assert [fact.visibility for fact in claims(page("Odo lives in Dunharrow."), known=known)] == [HIDDEN]


def test_claim_on_visible_and_hidden_page_is_proposed_once_and_visible() -> None:
    text = "Odo lives in Dunharrow."
    assert [fact.visibility for fact in claims(page(text, hidden=True), page(text))] == [PUBLIC]


def test_claim_that_was_stated_is_not_proposed_again() -> None:
    assert claims(page("Odo lives in Dunharrow."), stated={LIVES.fact_id}) == ()


def test_claims_of_a_page_and_of_an_import_are_limited() -> None:
    people = [KnownEntity(EntityId(f"p{n}"), "npc", f"Perrin{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(300)]
    known = [*KNOWN, *people]
    text = "\n\n".join(f"{each.name} lives in Dunharrow." for each in people)
    assert len(claims(page(text, CHAPTER), known=known)) == MOST_OF_PAGE
    each_on_its_page = [page(f"{one.name} lives in Dunharrow.", one.id, source=one.name) for one in people]
    assert len(claims(*each_on_its_page, known=known)) == MOST_OF_IMPORT


def test_pages_are_read_in_parts_of_one_visibility(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    class Listening(RulesExtractor):
        async def extract(self, talk, known):  # type: ignore[no-untyped-def]
            calls.append([each.utterance.text for each in talk.said])
            return await super().extract(talk, known)

    monkeypatch.setattr(page_reading, "_AT_ONCE", 2)
    pages = [page("Odo lives in Dunharrow. One. Two."), page("Secret.", hidden=True), page("Three.")]
    (fact,) = asyncio.run(claims_in(pages, KNOWN, Listening("en"), language="en"))
    assert fact.claim == LIVES
    assert calls == [["Odo lives in Dunharrow.", "One."], ["Two.", "Three."], ["Secret."]]


SAID = (
    "Odo",
    "Wenna",
    "Dunharrow",
    "the Lantern Guild",
    "He",
    "She",
    "I",
    "lives in",
    "leads",
    "is a miller",
    "is not",
)
MARKS = (".", ".\n\n", "- ", "# ", "|", "> ", "**", "_", "?", ",", "\x00", "\ud800", "\ue100")
WORDS = st.sampled_from((*SAID, *MARKS))


@given(st.lists(st.tuples(st.lists(WORDS, max_size=12), st.booleans(), st.sampled_from([ODO, CHAPTER])), max_size=4))
def test_public_claims_follow_from_the_visible_pages_alone(
    drawn: list[tuple[list[str], bool, EntityId]],
) -> None:
    pages = [page(" ".join(words), of, hidden=hidden) for words, hidden, of in drawn]
    public = {fact.claim for fact in claims(*pages) if fact.visibility == PUBLIC}
    assert public <= {fact.claim for fact in claims(*(each for each in pages if not each.hidden))}
