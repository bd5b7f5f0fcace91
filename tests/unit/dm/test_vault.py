"""The notes of a vault: their names, their links, and what players may read in them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.handouts import PlayedSession, PlayersView, VaultContent, file_name, notes_of
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Visibility, secret_of
from glyphoxa.domain.turn_record import Unaddressed
from tests.support.builders import SMITH, a_campaign, an_utterance
from tests.support.memory import GraphTwin
from tests.support.secret_campaigns import SecretCampaign, words_in

_LINK: Final = re.compile(r"\[\[([^]|]+)(?:\|[^]]*)?\]\]")


def a_session(*said: Utterance, number: int = 1) -> PlayedSession:
    began = datetime(1970, 1, 1 + number, tzinfo=UTC)
    return PlayedSession(SessionId(f"s{number}"), number, began, began + timedelta(minutes=1), said=said)


def content_of(
    campaign: Campaign, graph: GraphTwin, *sessions: PlayedSession, transcript: bool = False
) -> VaultContent:
    names = NameResolver.of(campaign, (entity for entity, _ in graph.scoped))
    return VaultContent(campaign.name, campaign.language, names, graph.scoped, graph.of_world, sessions, transcript)


def players_notes(content: VaultContent) -> dict[str, str]:
    known = [KnownEntity(e.id, e.type, e.name, e.aliases, scope) for e, scope in content.entities]
    return notes_of(
        content.for_players(PlayersView(known, replace(a_campaign(), language=content.language, secrets=())))
    )


def the_town(*facts: Fact, also: tuple[tuple[Entity, Visibility], ...] = ()) -> VaultContent:
    graph = GraphTwin.of(a_campaign())
    return content_of(a_campaign(), GraphTwin([*graph.scoped, *also], [*graph.of_world, *facts]))


def a_fact(claim: Claim, visibility: Visibility = PUBLIC, **more: object) -> Fact:
    return Fact(claim.fact_id, claim, seq=1, visibility=visibility, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(30))
def test_players_vault_contains_only_what_is_public(seed: int) -> None:
    town = SecretCampaign.of(seed)
    for _ in range(8):
        town.decide()
    scopes = {entity.id: scope for entity, scope in town.graph.scoped}
    public = {
        word
        for entity, scope in town.graph.scoped
        if scope.scope == "public"
        for word in words_in(" ".join((entity.name, *entity.aliases)))
    }
    for fact in town.graph.of_world:
        ends = [scopes[end].scope for end in (fact.claim.subject, fact.claim.object) if end is not None]
        if fact.status == "accepted" and {*ends, fact.visibility.scope} == {"public"}:
            public |= words_in(f"{fact.claim.value} {fact.attributes}")
    notes = players_notes(content_of(town.campaign, town.graph))
    written = words_in(" ".join((*notes, *notes.values())))
    assert written <= public
    assert written, "the vault is not empty"
    everything = notes_of(content_of(town.campaign, town.graph))
    assert words_in(" ".join(everything.values())) > written


@pytest.mark.parametrize("seed", range(10))
def test_every_wikilink_leads_to_a_note(seed: int) -> None:
    town = SecretCampaign.of(seed)
    content = content_of(town.campaign, town.graph, a_session(an_utterance(town.campaign.npcs[0].name)))
    for notes in (notes_of(content), players_notes(content)):
        stems = {path.rpartition("/")[2].removesuffix(".md") for path in notes}
        linked = {stem for text in notes.values() for stem in _LINK.findall(text)}
        assert linked <= stems
        assert len(stems) == len(notes), "no two notes share a name"


def test_what_is_not_public_stands_in_a_secret_callout() -> None:
    smith = EntityId("e-grimjaw")
    secret = a_fact(Claim.attribute(smith, "fears", "the sea"), secret_of([SMITH]))
    pending = a_fact(Claim.attribute(smith, "likes", "cheese"), status="pending")
    hidden = (Entity(EntityId("e-x"), "npc", "Nethra"), Visibility("hidden"))
    knows = a_fact(Claim.relation(smith, "KNOWS", EntityId("e-x")))
    content = the_town(secret, pending, knows, also=(hidden,))
    notes = notes_of(content)
    text = notes["npc/Grimjaw.md"]
    public, _, callout = text.partition("> [!secret]")
    assert "Grimjaw is a smith." in public
    assert "sea" not in public
    assert "> - fears: the sea (secret: Grimjaw)" in callout
    assert "Nethra" not in public
    assert "> - Grimjaw knows [[Nethra]]" in callout
    assert "cheese" not in text
    front = yaml.safe_load(notes["npc/Nethra.md"].split("---")[1])
    assert front["hidden"] is True
    told = " ".join(players_notes(content).values())
    assert "sea" not in told
    assert "Nethra" not in told


def test_all_descriptions_of_an_entity_are_written() -> None:
    also = a_fact(Claim.attribute(EntityId("e-grimjaw"), "description", "He is tall.\n\nHe is old."))
    text = notes_of(the_town(also))["npc/Grimjaw.md"]
    assert "He is tall.\n\nHe is old.\n\n" in text
    assert "Grimjaw is a smith.\n\n" in text


def test_public_fact_that_mentions_a_hidden_name_is_left_out() -> None:
    hidden = (Entity(EntityId("e-x"), "npc", "Nethra"), Visibility("hidden"))
    rumour = a_fact(Claim.attribute(EntityId("e-grimjaw"), "rumours", ["He dreams.", "He serves\nNethra."]))
    content = the_town(rumour, also=(hidden,))
    assert "Nethra" in notes_of(content)["npc/Grimjaw.md"]
    assert "Nethra" not in " ".join(players_notes(content).values())


def test_note_of_an_entity_has_aliases_tag_relations_and_sessions() -> None:
    content = the_town()
    sessions = (a_session(an_utterance("The smith is away.")), a_session(an_utterance("What a night."), number=2))
    notes = notes_of(content_of(a_campaign(), GraphTwin.of(a_campaign()), *sessions))
    front = yaml.safe_load(notes["npc/Mirelle.md"].split("---")[1])
    assert front == {"type": "npc", "aliases": [], "tags": ["npc"], "KNOWS": ["[[Grimjaw]]"]}
    assert "- Mirelle knows [[Grimjaw]]" in notes["npc/Mirelle.md"]
    smith = notes["npc/Grimjaw.md"]
    assert yaml.safe_load(smith.split("---")[1])["aliases"] == ["the smith"]
    assert "- [[Mirelle]] knows Grimjaw" in smith
    assert smith.endswith("## Sessions\n\n- [[Session 1 1970-01-02]]\n")
    assert set(notes_of(content)) == {path for path in notes if "Session" not in path}


def test_note_of_a_session_has_times_recap_speakers_and_names() -> None:
    grimjaw = an_utterance("Good evening.", id="u2", speaker="Grimjaw", npc=SMITH)
    whispered = an_utterance("Let's rob him.", id="u3", speaker="Bran", aside=Unaddressed.WHISPER)
    told = replace(
        a_session(an_utterance("Mirelle is here."), grimjaw, whispered),
        days="3 Hammer 1492",
        recap=["Tamsin said: “Mirelle is here.”"],
        dm_recap=["Bran lied."],
    )
    graph = GraphTwin.of(a_campaign())
    text = notes_of(content_of(a_campaign(), graph, told, transcript=True))["Sessions/Session 1 1970-01-02.md"]
    assert "1970-01-02, 00:00 to 00:01. Days of the story: 3 Hammer 1492." in text
    assert "- Tamsin said: “Mirelle is here.”" in text
    assert "> [!secret] For the game master\n> - Bran lied." in text
    assert "Spoke: Tamsin, [[Grimjaw]]\n" in text
    assert "Named: [[Mirelle]]\n" in text
    assert text.endswith("**Bran:** Let's rob him. (whisper)  \n")
    assert "Transcript" not in notes_of(content_of(a_campaign(), graph, told))["Sessions/Session 1 1970-01-02.md"]


def test_markup_in_texts_stays_text() -> None:
    odd = Entity(EntityId("e-odd"), "item", "A [[B]] | #c", ("%%d%%",))
    claim = Claim.attribute(odd.id, "note", "---\n# x [[Grimjaw]] <script> `y` > [!secret] %% z %%")
    text = notes_of(the_town(a_fact(claim), also=((odd, PUBLIC),)))["item/A B c.md"]
    assert _LINK.findall(text) == []
    assert yaml.safe_load(text.split("\n---\n")[0])["aliases"] == ["%%d%%"]
    assert r"- note: --- \# x \[\[Grimjaw\]\] \<script\> \`y\` \> \[!secret\] \%\% z \%\%" in text


@given(st.text(max_size=300))
def test_file_name_is_safe_on_every_file_system(name: str) -> None:
    safe = file_name(name)
    assert safe
    assert not set(safe) & set('<>:"/\\|?*#^[]\0')
    assert safe.isprintable()
    assert safe == safe.strip(". ")
    assert len(safe.encode()) <= 121
    assert safe.partition(".")[0].strip().casefold() not in {"con", "prn", "aux", "nul", "com1", "lpt9"}
    assert file_name(safe) == safe


@pytest.mark.parametrize("name", ["CON", "con.txt", "Lpt1", "NUL .x", "aux"])
def test_reserved_name_of_windows_is_changed(name: str) -> None:
    assert file_name(name).startswith("_")


def test_notes_of_the_same_name_get_names_of_their_own() -> None:
    same = [
        ("npc", "Mara"),
        ("npc", "MARA"),
        ("location", "Mara"),
        ("npc", "The town"),
        ("npc", "M/ara"),
        ("npc", "M ara"),
    ]
    entities = tuple((Entity(EntityId(f"x{n}"), kind, name), PUBLIC) for n, (kind, name) in enumerate(same))
    notes = notes_of(the_town(also=entities))
    stems = [path.rpartition("/")[2].casefold() for path in notes]
    assert len(set(stems)) == len(stems)
    assert {"npc/Mara.md", "npc/MARA (npc).md", "location/Mara (location).md", "npc/The town (npc).md"} <= set(notes)
