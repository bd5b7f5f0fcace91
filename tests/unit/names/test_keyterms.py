from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.events import SceneChanged, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.keyterms import LATELY_MS, Hints
from glyphoxa.names.naming import Entry
from glyphoxa.names.wrong_forms import LearnedName, PairStatus, State
from tests.support.builders import an_utterance, changed_names

CROWD = tuple(Entity(EntityId(f"e{n}"), "npc", f"Zorvath{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(200))
PLACES = (Entity(EntityId("mill"), "location", "The Old Mill"), Entity(EntityId("hold"), "location", "Karrath Hold"))
GRIMJAW = Npc(NpcId("grimjaw"), EntityId("grimjaw"), "Grimjaw", "You are Grimjaw.")
MILL = Scene(SceneId("mill"), EntityId("mill"), (), description="Zorvathhq sits by the wheel.")
HOLD = Scene(SceneId("hold"), EntityId("hold"), (GRIMJAW.id,))
CAMPAIGN = Campaign(
    id=CampaignId("c"),
    name="C",
    language="en",
    entities=(*CROWD, *PLACES),
    relationships=(),
    npcs=(GRIMJAW,),
    players=(Player(PlayerId("hanna"), "Hanna"),),
    scenes=(MILL, HOLD),
)


class Watched:
    """Hints of a campaign with more names than a recogniser takes, and how often they said that they changed."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.hints = Hints(CAMPAIGN, Gazetteer.build(entries_of(CAMPAIGN)), now_ms=lambda: self.now_ms)
        self.n_changes = 0
        self.forget = self.hints.subscribe(self._changed)

    def _changed(self) -> None:
        self.n_changes += 1

    def say(self, text: str, *corrections: Correction) -> Utterance:
        said = an_utterance(text, speaker="Hanna", at_ms=self.now_ms, corrections=corrections)
        self.hints.on(UtteranceKept(said))
        return said


def test_a_new_scene_brings_its_place_its_people_and_whom_its_description_names() -> None:
    watched = Watched()
    assert not {"The Old Mill", "Zorvathhq"} & set(watched.hints.keyterms())
    watched.hints.on(SceneChanged(MILL, 0))
    assert set(watched.hints.keyterms()[:3]) == {"Hanna", "The Old Mill", "Zorvathhq"}
    assert watched.n_changes == 1
    watched.hints.on(SceneChanged(HOLD, 1))
    assert {"Karrath Hold", "Grimjaw"} <= set(watched.hints.keyterms())
    assert "The Old Mill" not in watched.hints.keyterms()


def test_a_name_that_somebody_says_is_expected_again() -> None:
    watched = Watched()
    watched.say("What about Zorvathhr's brother?")
    assert watched.hints.keyterms()[0] == "Zorvathhr"
    assert watched.hints.glossary().startswith("Names: Zorvathhr,")
    assert watched.n_changes == 1


def test_corrected_name_stays_hinted_after_long_silence() -> None:
    watched = Watched()
    for _ in range(4):
        watched.say("Ask Zorvathhq.", Correction(4, 12, "sore vat", "Zorvathhq", 0.9, "phonetic", ""))
    watched.say("And Zorvathhr?")
    watched.now_ms = 10 * 3_600_000
    for n in range(150):
        watched.say(f"And {CROWD[n].name}?")
    watched.now_ms += 60_000
    watched.say("Well.")
    assert "Zorvathhq" in watched.hints.keyterms()
    assert "Zorvathhr" not in watched.hints.keyterms()


def test_talk_without_new_names_tells_nobody_anything() -> None:
    watched = Watched()
    watched.hints.on(SceneChanged(HOLD, 0))
    before, prompt, told = watched.hints.keyterms(), watched.hints.glossary(), watched.n_changes
    for minute in range(60):
        watched.now_ms = minute * 60_000
        watched.say("Grimjaw, how is Hanna?")
    assert watched.hints.keyterms() is before
    assert watched.hints.glossary() == prompt
    assert watched.n_changes == told


def test_a_name_that_the_graph_gains_is_expected_and_one_it_loses_is_not() -> None:
    watched = Watched()
    watched.hints.on(SceneChanged(HOLD, 0))
    names, told = Gazetteer.build(entries_of(CAMPAIGN)), watched.n_changes
    vaelith = Entry("Vaelith", EntityId("vaelith"), "npc", learned=("veil if",))
    watched.hints.names_are(changed_names(names, put=vaelith, remove=EntityId("grimjaw")))
    assert "Vaelith" in watched.hints.keyterms()
    assert "Grimjaw" not in watched.hints.keyterms()
    assert watched.n_changes == told + 1


def test_near_is_who_and_what_is_in_the_scene_and_what_was_named_within_the_last_minutes() -> None:
    watched = Watched()
    watched.hints.on(SceneChanged(HOLD, 0))
    assert watched.hints.nearby() == {"hold", "grimjaw", "hanna"}
    watched.say("Zorvathbc and Zorvathbd went by.")
    watched.now_ms = LATELY_MS
    watched.say("Zorvathbd again.")
    assert watched.hints.nearby() == {"hold", "grimjaw", "hanna", "e28", "e29"}
    watched.now_ms += 1
    assert watched.hints.nearby() == {"hold", "grimjaw", "hanna", "e29"}
    watched.hints.on(SceneChanged(MILL, 0))
    assert watched.hints.nearby() == {"mill", "hanna", "e198", "e29"}


def test_a_name_that_a_second_look_found_is_near_and_was_misheard_once() -> None:
    watched = Watched()
    edit = Correction(0, 7, "sorrows", "Zorvathhr", 0.8, "llm", "sounds alike")
    said = watched.say("sorrows went by.")
    assert "e199" not in watched.hints.nearby()
    watched.hints.on(UtteranceRevised(replace(said, text="Zorvathhr went by.", corrections=(edit,)), said))
    assert "e199" in watched.hints.nearby()
    watched.now_ms = 100 * LATELY_MS
    assert "Zorvathhr" in watched.hints.keyterms()


def test_a_name_that_was_misheard_beside_itself_counts_as_misheard() -> None:
    """ "Mira ... Meera", where Mira was heard right once."""
    watched = Watched()
    edit = Correction(14, 21, "sorrows", "Zorvathhr", 0.8, "llm", "sounds alike")
    for _ in range(4):
        said = watched.say("Zorvathhr met sorrows.")
        better = replace(said, text="Zorvathhr met Zorvathhr.", corrections=(edit,))
        watched.hints.on(UtteranceRevised(better, said))
    watched.now_ms = 10 * 3_600_000
    for n in range(150):
        watched.say(f"And {CROWD[n].name}?")
    assert "Zorvathhr" in watched.hints.keyterms()


def test_what_was_misheard_in_earlier_sessions_is_expected_unless_the_dm_said_that_it_was_not() -> None:
    def pair(entity: str, state: State) -> LearnedName:
        return LearnedName("sorrows", EntityId(entity), None, PairStatus(state, 4, ()))

    watched = Watched()
    watched.hints.garbled_before([pair("e197", "active"), pair("e198", "suggested"), pair("e199", "rejected")])
    assert {"Zorvathhp", "Zorvathhq", "Zorvathhr"} & set(watched.hints.keyterms()) == {"Zorvathhp", "Zorvathhq"}
    assert watched.n_changes == 1
