"""Who is meant, by the kinds of what is said at a table: called, asked, planned, told of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed, Addressing, Said, cast_of

OSKAR, MIRELLE, TIB = NpcId("oskar"), NpcId("mirelle"), NpcId("tib")
JON, KARA = PlayerId("jon"), PlayerId("kara")
_PEOPLE = ((OSKAR, "Oskar Fenn", "blacksmith"), (MIRELLE, "Mirelle", "innkeeper"), (TIB, "Tib", "guard"))
_ROLES_DE = {OSKAR: "Hufschmied", MIRELLE: "Wirtin", TIB: "Torwächter"}
ENGLISH = Campaign(
    id=CampaignId("harbour"),
    name="The harbour",
    language="en",
    entities=(
        *(Entity(EntityId(npc), "npc", name) for npc, name, _ in _PEOPLE),
        Entity(EntityId("heron"), "location", "Copper Heron"),
    ),
    relationships=(),
    npcs=tuple(Npc(npc, EntityId(npc), name, "", role=role) for npc, name, role in _PEOPLE),
    players=(Player(KARA, "Kara"), Player(JON, "Jon")),
    scenes=(Scene(SceneId("inn"), EntityId("heron"), (OSKAR, MIRELLE)),),
)
GERMAN = replace(ENGLISH, language="de", npcs=tuple(replace(npc, role=_ROLES_DE[npc.id]) for npc in ENGLISH.npcs))
TWO, ONE = (OSKAR, MIRELLE), (OSKAR,)


@cache
def names_of(language: str) -> TableNames:
    return TableNames(GERMAN if language == "de" else ENGLISH, now_ms=lambda: 0)


def is_german(text: str) -> bool:
    return text in {case[0] for cases in (CALLED_DE, NOBODY_DE, GOING_ON_DE) for case in cases}


def decide(text: str, here: tuple[NpcId, ...] = TWO, *, last: NpcId | None = None) -> Addressed:
    language = "de" if is_german(text) else "en"
    addressing = Addressing(cast_of(GERMAN if language == "de" else ENGLISH))
    if last is not None:
        addressing.remember(JON, last, at_ms=0)
    said = Said(JON, text, names_of(language).mentions(text))
    return addressing.decide(said, present=here, names={npc: name for npc, name, _ in _PEOPLE}, at_ms=5_000)


CALLED = [
    ("Smith, can you mend this?", TWO, OSKAR),
    ("Good innkeeper, two beers.", TWO, MIRELLE),
    ("Excuse me, innkeeper?", TWO, MIRELLE),
    ("Blacksmith! A word.", TWO, OSKAR),
    ("Two ales, barkeep.", TWO, MIRELLE),
    ("How much for the axe, master smith?", TWO, OSKAR),
    ("Evening, landlady.", TWO, MIRELLE),
    ("I turn to the innkeeper and ask for a room.", TWO, MIRELLE),
    ("I ask the blacksmith what he wants for the sword.", TWO, OSKAR),
    ("A question for the smith: is it done?", TWO, OSKAR),
    ("smith what do you want for this blade", TWO, OSKAR),
    ("Oskar what do you know about the mine", TWO, OSKAR),
    ("Oskar I need a new blade", TWO, OSKAR),
    ("So tell me, Oskar, where were you last night?", TWO, OSKAR),
    ("Thanks, Mirelle.", TWO, MIRELLE),
    ("Does anyone here know how to mend a wheel, Oskar?", TWO, OSKAR),
    ("Anyone know how to mend a sword?", TWO, OSKAR),
    ("Can anybody here sharpen a blade?", TWO, OSKAR),
    ("Is there a bed for the night?", TWO, MIRELLE),
    ("Do you have any soup left?", TWO, MIRELLE),
    ("Does someone have a room for us?", TWO, MIRELLE),
    ("Good evening to you.", ONE, OSKAR),
    ("What do you know of my brother?", ONE, OSKAR),
    ("Please look for his silver lantern.", ONE, OSKAR),
    ("Hello there!", ONE, OSKAR),
    ("How much is that?", ONE, OSKAR),
    ("I'd like to buy a dagger.", ONE, OSKAR),
    ("Two horseshoes, please.", ONE, OSKAR),
    ("Tell me about the old mine.", ONE, OSKAR),
    ("Have you seen Tib?", ONE, OSKAR),
    ("We are looking for a place to sleep. Do you know one?", ONE, OSKAR),
    ('I say: "Oskar, we come in peace."', TWO, OSKAR),
    ("Not you, Oskar. Mirelle, what do you think?", TWO, MIRELLE),
    ("Jon is waiting outside. Mirelle, do you have a room?", TWO, MIRELLE),
    ("Kara, wait. Oskar, what does it cost?", TWO, OSKAR),
]
CALLED_DE = [
    ("Wirtin, noch ein Bier!", TWO, MIRELLE),
    ("Herr Schmied, ist mein Schwert fertig?", TWO, OSKAR),
    ("Schmied, was kostet das?", TWO, OSKAR),
    ("Guten Abend, Frau Wirtin.", TWO, MIRELLE),
    ("Ich frage den Schmied, ob er Zeit hat.", TWO, OSKAR),
    ("Oskar, hast du den Dolch repariert?", TWO, OSKAR),
    ("Was meinst du dazu, Mirelle?", TWO, MIRELLE),
    ("Kann hier jemand ein Schwert schleifen?", TWO, OSKAR),
    ("Habt ihr noch ein Zimmer frei?", TWO, MIRELLE),
    ("Guten Abend!", ONE, OSKAR),
    ("Was weißt du über meinen Bruder?", ONE, OSKAR),
    ("Könnt Ihr mir helfen?", ONE, OSKAR),
    ("Können Sie mir den Weg zeigen?", ONE, OSKAR),
    ("Ich hätte gern einen Dolch.", ONE, OSKAR),
]
NOBODY = [
    ("What did we agree on?", ONE),
    ("We should ask the smith.", TWO),
    ("Let's talk to Oskar first.", ONE),
    ("Should we trust him?", ONE),
    ("I say we leave at dawn.", ONE),
    ("What if we sneak in through the back?", ONE),
    ("We could split up and meet at the gate.", ONE),
    ("Do we have any rope?", ONE),
    ("Who has the map?", ONE),
    ("You take the left, I'll take the right.", ONE),
    ("Can we trust Mirelle?", TWO),
    ("Kara, what do you think we should do?", ONE),
    ("Okay, so the plan is to go at night.", ONE),
    ("How about we rest first?", ONE),
    ("The captain knows more than he says.", TWO),
    ("Oskar is a liar.", TWO),
    ("Oskar stole my purse.", TWO),
    ("Oskar seems nervous today.", TWO),
    ("I don't trust the innkeeper.", TWO),
    ("What did Oskar say?", TWO),
    ("You should ask Oskar about it.", TWO),
    ("Do you believe Mirelle?", TWO),
    ("He's lying.", ONE),
    ("I think she is hiding something.", ONE),
    ("Maybe the smith can fix it.", TWO),
    ("Oskar and Mirelle are working together.", TWO),
    ("Remember what Mirelle told us?", TWO),
    ("I walk to the bar and look around.", ONE),
    ("I draw my sword.", ONE),
    ("Kara draws her sword.", ONE),
    ("I sit down next to Oskar.", TWO),
    ("My character hides behind the door.", ONE),
    ("I look at the smith and nod slowly.", TWO),
    ("Can you pass me the chips?", ONE),
    ("Whose turn is it?", ONE),
    ("My mic is broken.", ONE),
    ("Do I get advantage on that?", ONE),
    ("That's a seventeen plus four.", ONE),
    ("Anyone want another soda?", ONE),
    ("I wonder if he is still alive.", ONE),
    ("Hm, let me think.", ONE),
    ("Not you, Oskar.", TWO),
    ("I wasn't talking to you, Oskar.", TWO),
    ("He said 'Oskar, run'.", TWO),
    ('And then she shouted: "Oskar, get out of there!"', TWO),
    ('The letter says: "Oskar, meet me at the mill."', TWO),
    ("Guard, open the gate!", ONE),
    ("Innkeeper, a beer!", ONE),
    ("Has anyone seen my dice?", TWO),
    ("That was close.", ONE),
    ("It is getting late.", TWO),
]
NOBODY_DE = [
    ("Wir sollten den Schmied fragen.", TWO),
    ("Lasst uns erst mal zum Tor gehen.", ONE),
    ("Sollen wir ihm trauen?", ONE),
    ("Ich schlage vor, wir warten bis morgen.", ONE),
    ("Haben wir noch ein Seil?", ONE),
    ("Oskar lügt doch.", TWO),
    ("Die Wirtin weiß bestimmt mehr.", TWO),
    ("Ich traue Mirelle nicht.", TWO),
    ("Was hat Oskar gesagt?", TWO),
    ("Frag doch mal den Schmied.", TWO),
    ("Kara zieht ihr Schwert.", ONE),
    ("Ich gehe zur Theke und schaue mich um.", ONE),
    ("Ich setze mich an den Tisch.", ONE),
    ("Wer hat die Chips?", ONE),
    ("Mein Mikro spinnt.", ONE),
    ("Wer ist dran?", ONE),
    ("Nicht du, Oskar.", TWO),
    ("Er sagte: „Oskar, lauf!“", TWO),
    ("Ich frage mich, wo er steckt.", ONE),
    ("Kara, kommst du mit?", ONE),
    ("Der lügt uns doch an.", ONE),
    ("Wächter, öffnet das Tor!", ONE),
]
GOING_ON = [
    ("What did we talk about the last time?", OSKAR),
    ("What did we agree on?", OSKAR),
    ("And what does it cost?", OSKAR),
    ("My sister was lost at the weir.", OSKAR),
    ("No, I don't think so.", OSKAR),
    ("Ten crowns, no more.", OSKAR),
    ("What do you think of Mirelle?", OSKAR),
    ("Where was Mirelle last night?", OSKAR),
    ("Do you trust Mirelle?", OSKAR),
    ("We need two of them.", OSKAR),
    ("I take it.", OSKAR),
    ("Can we see it?", OSKAR),
    ("Oskar is a liar.", None),
    ("Mirelle is a liar.", None),
    ("We should ask Mirelle about it.", None),
    ("Let's go.", None),
    ("I draw my sword.", None),
    ("He's lying.", None),
    ("Whose turn is it?", None),
    ("Mirelle, what do you say to that?", MIRELLE),
]
GOING_ON_DE = [
    ("Worüber haben wir letztes Mal gesprochen?", OSKAR),
    ("Und was kostet das?", OSKAR),
    ("Mein Bruder ist seit dem Winter fort.", OSKAR),
    ("Was hältst du von Mirelle?", OSKAR),
    ("Lasst uns gehen.", None),
    ("Oskar lügt.", None),
    ("Ich ziehe mein Schwert.", None),
]


@pytest.mark.parametrize(("text", "here", "meant"), [*CALLED, *CALLED_DE])
def test_who_is_called_or_asked_answers(text: str, here: tuple[NpcId, ...], meant: NpcId) -> None:
    decided = decide(text, here)
    assert decided.npc == meant, decided.reason


@pytest.mark.parametrize(("text", "here"), [*NOBODY, *NOBODY_DE])
def test_nobody_answers_what_is_meant_for_nobody(text: str, here: tuple[NpcId, ...]) -> None:
    decided = decide(text, here)
    assert decided.npc is None and decided.unaddressed and decided.reason


@pytest.mark.parametrize(("text", "meant"), [*GOING_ON, *GOING_ON_DE])
def test_who_talks_with_an_npc_goes_on_unless_they_talk_past_it(text: str, meant: NpcId | None) -> None:
    decided = decide(text, last=OSKAR)
    assert decided.npc == meant, decided.reason
