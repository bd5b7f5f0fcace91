"""Who is meant, by what is said at a table: the clear cases, in English and German.

The names are a table's own: the words go through the same index of names, and the same rules, as in a session.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed, Addressing, Said

LIORA, OSKAR, TIB = NpcId("liora"), NpcId("oskar"), NpcId("tib")
JON = PlayerId("jon")
PLAYER, ABSENT, OOC, FILLER, NO_NAME = (
    Unaddressed.PLAYER,
    Unaddressed.ABSENT,
    Unaddressed.OUT_OF_CHARACTER,
    Unaddressed.FILLER,
    Unaddressed.NO_NAME,
)
ABOUT, PLANNING = Unaddressed.ABOUT, Unaddressed.PLANNING
TWO, ONE = (LIORA, OSKAR), (LIORA,)


def _entity(id: str, kind: str, name: str, *aliases: str) -> Entity:
    return Entity(EntityId(id), kind, name, aliases)


ENGLISH = Campaign(
    id=CampaignId("harbour"),
    name="The harbour",
    language="en",
    entities=(
        _entity("liora", "npc", "Liora Vance", "the captain"),
        _entity("oskar", "npc", "Oskar Fenn", "the miller"),
        _entity("tib", "npc", "Tib", "the stable boy"),
        _entity("zhar", "npc", "Zharothrix"),
        _entity("hope", "npc", "Hope"),
        _entity("keep", "location", "Grondheim Keep"),
    ),
    relationships=(),
    npcs=(
        Npc(LIORA, EntityId("liora"), "Liora Vance", ""),
        Npc(OSKAR, EntityId("oskar"), "Oskar Fenn", ""),
        Npc(TIB, EntityId("tib"), "Tib", ""),
    ),
    players=(Player(PlayerId("mira"), "Mira"), Player(JON, "Jon")),
    scenes=(Scene(SceneId("quay"), EntityId("keep"), TWO),),
)
GERMAN = replace(
    ENGLISH,
    language="de",
    entities=(
        _entity("liora", "npc", "Liora Vance", "der Hauptmann"),
        _entity("oskar", "npc", "Oskar Fenn", "der Müller"),
        _entity("tib", "npc", "Tib", "der Stallbursche"),
        _entity("keep", "location", "Burg Grondheim"),
    ),
)

CASES = [
    # Called without the article that the alias has.
    ("Captain, where do we go?", TWO, LIORA),
    ("Captain, my sister was lost at the weir.", TWO, LIORA),
    ("Captain, I need a word with you.", TWO, LIORA),
    ("Captain, the river is rising!", TWO, LIORA),
    ("Captain and crew were lost.", TWO, NO_NAME),
    ("captain where are you", TWO, LIORA),
    ("Hello captain!", TWO, LIORA),
    ("What do you think, captain?", TWO, LIORA),
    ("Well, captain, it is done.", TWO, LIORA),
    ("Miller, what does the flour cost?", TWO, OSKAR),
    ("Good evening, miller.", TWO, OSKAR),
    ("We need bread. Miller, have you any?", TWO, OSKAR),
    ("Stable boy, come here!", TWO, ABSENT),
    ("Old miller, are you deaf?", TWO, OSKAR),
    # The same words as plain nouns call nobody.
    ("I met a captain on the road.", TWO, NO_NAME),
    ("She wants to be captain one day.", TWO, NO_NAME),
    ("We saw a miller and his wife.", TWO, NO_NAME),
    ("Captains are seldom poor.", TWO, NO_NAME),
    ("My brother sailed under some captain from the south.", TWO, NO_NAME),
    ("Every ship has a captain.", TWO, NO_NAME),
    # With the article they are talked about.
    ("The captain knows more.", TWO, ABOUT),
    ("I do not trust the miller.", TWO, ABOUT),
    # Calling by name goes on as it was.
    ("Liora, how are you?", TWO, LIORA),
    ("Oskar Fenn, how are you?", TWO, OSKAR),
    ("Hey Oskar, come here.", TWO, OSKAR),
    ("How much is it, Oskar?", TWO, OSKAR),
    ("Liora, do you sell pizza?", TWO, LIORA),
    ("Oskar, roll for initiative!", TWO, OSKAR),
    ("Oskar, hm.", TWO, OSKAR),
    ("Liora, where is Tib?", TWO, LIORA),
    ("Tib, Oskar, come here!", TWO, OSKAR),
    ("Jon and I need a room, Liora.", TWO, LIORA),
    # Who is called first is meant, and not who the question is about; a recogniser leaves out commas.
    ("Liora, has the miller told you anything about my brother?", TWO, LIORA),
    ("Liora has the Miller told you anything about my brother.", TWO, LIORA),
    ("Good evening Liora has the miller told you anything?", TWO, LIORA),
    ("Liora has Oskar told you anything?", TWO, LIORA),
    ("Oskar, do you know where Liora is?", TWO, OSKAR),
    ("Oskar do you know where Liora is", TWO, OSKAR),
    ("Miller, what did the captain say?", TWO, OSKAR),
    ("Miller what did the captain say?", TWO, OSKAR),
    ("Oskar is Liora at home?", TWO, OSKAR),
    ("Liora does the miller owe you money?", TWO, LIORA),
    ("Jon has Mira told you the plan?", ONE, PLAYER),
    ("Liora has told the miller about you.", TWO, ABOUT),
    ("Liora has the miller in her pocket.", TWO, ABOUT),
    ("Liora has Oskar's hammer for you.", TWO, ABOUT),
    ("Oskar is Liora's friend?", TWO, ABOUT),
    ("Oskar is the miller here?", TWO, ABOUT),
    ("Oskar told Liora about your sister?", TWO, ABOUT),
    ("Liora will tell you about the miller.", TWO, ABOUT),
    # Somebody who is not here is answered by nobody, also where only one is here.
    ("Tib, are you hungry?", TWO, ABSENT),
    ("Tib, are you hungry?", ONE, ABSENT),
    ("tib are you there", ONE, ABSENT),
    ("Hey Tib!", ONE, ABSENT),
    ("Oskar, what does the flour cost?", ONE, ABSENT),
    ("What do you think, Oskar?", ONE, ABSENT),
    ("Come here, Tib.", ONE, ABSENT),
    ("Miller, where are you?", ONE, ABSENT),
    ("Zharothrix, hear me!", ONE, ABSENT),
    ("Hope, are you there?", ONE, ABSENT),
    ("Tib, Oskar, come here!", ONE, ABSENT),
    # Who is talked about is not called.
    ("Tib stole my purse.", ONE, NO_NAME),
    ("Tib, my cousin, stole my purse.", ONE, NO_NAME),
    ("Tib and Marek went to the mill.", ONE, NO_NAME),
    ("I saw the boy from the stables, Tib.", ONE, NO_NAME),
    ("It was Tib.", ONE, NO_NAME),
    ("Tib.", ONE, NO_NAME),
    ("Have you seen Tib?", ONE, LIORA),
    ("Oskar is a liar.", ONE, NO_NAME),
    ("Hope this works.", ONE, NO_NAME),
    ("Where does Zharothrix live?", ONE, LIORA),
    ("Have you seen my brother, Tib?", ONE, LIORA),
    ("Did you ever meet my old friend, Oskar?", ONE, LIORA),
    ("So you know my brother, Tib, well?", ONE, LIORA),
    ("Tib, who is he?", ONE, LIORA),
    ("Tib, where does she hide him?", ONE, LIORA),
    ("The miller, where is he?", ONE, LIORA),
    ("Tib, is he with you?", ONE, ABSENT),
    # To another player.
    ("Mira, are you coming?", ONE, PLAYER),
    ("(to Mira) He lies.", ONE, PLAYER),
    ("(to Mira) Liora, he lies.", TWO, PLAYER),
    ("[whispers to Mira] He lies.", ONE, PLAYER),
    ("(whispering, to Mira): he lies", ONE, PLAYER),
    ("*to Mira* he lies", ONE, PLAYER),
    ("/w Mira he lies", ONE, PLAYER),
    ("@Mira he lies", ONE, PLAYER),
    ("(to Bob) he lies", ONE, PLAYER),
    ("(to the DM) can I see him?", ONE, PLAYER),
    ("(to the group) let us go", ONE, PLAYER),
    ("(to Liora) he lies", TWO, LIORA),
    ("(to Tib) he lies", ONE, ABSENT),
    ("(to the left) I see a door.", ONE, NO_NAME),
    ("(to the North) What lies there?", ONE, LIORA),
    ("(quietly) What is behind that door?", ONE, LIORA),
    # Out of character.
    ("brb", ONE, OOC),
    ("brb, pizza", ONE, OOC),
    ("afk for a minute", ONE, OOC),
    ("I'll be right back.", ONE, OOC),
    ("bathroom break", ONE, OOC),
    ("I need to pee.", ONE, OOC),
    ("The pizza's here!", ONE, OOC),
    ("Should we order pizza?", ONE, OOC),
    ("Five minute break?", ONE, OOC),
    ("(ooc what time is it?)", ONE, OOC),
    ("OOC: Liora is funny", TWO, OOC),
    ("((Liora is funny))", TWO, OOC),
    ("(ooc sorry) What does it cost?", ONE, LIORA),
    ("// my cat is on the keyboard", ONE, OOC),
    ("I roll for stealth.", ONE, OOC),
    ("I rolled a 17.", ONE, OOC),
    ("Natural twenty!", ONE, OOC),
    ("That's 2d6 plus three.", ONE, OOC),
    ("Does a 15 hit?", ONE, OOC),
    ("What's my dex save?", ONE, OOC),
    ("How many hit points do you have left?", ONE, OOC),
    ("Can I use a bonus action for that?", ONE, OOC),
    ("Hey DM, is the door locked?", ONE, OOC),
    ("You're muted.", ONE, OOC),
    ("Did we do that last session?", ONE, OOC),
    # What sounds like it and is of the story.
    ("Shall we play a game of dice?", ONE, PLANNING),
    ("Can you help me roll this barrel?", ONE, LIORA),
    ("We need a short rest before the climb.", ONE, LIORA),
    ("The door is broken.", ONE, NO_NAME),
    ("Who has the advantage in this war?", ONE, LIORA),
    ("I hit the table with my fist.", ONE, NO_NAME),
    ("What is the history of this place?", ONE, LIORA),
    ("I will be back tomorrow.", ONE, NO_NAME),
    ("We'll be back in ten days with the money.", ONE, PLANNING),
    ("Back in five minutes.", ONE, OOC),
    ("When is the next session of the council?", ONE, LIORA),
    ("The council is in discord.", ONE, NO_NAME),
    ("Are you on Discord?", ONE, OOC),
    # Fillers.
    ("hm", ONE, FILLER),
    ("Mhm.", ONE, FILLER),
    ("Um, uh...", ONE, FILLER),
    ("Haha!", ONE, FILLER),
    ("Okay.", ONE, FILLER),
    ("...", ONE, FILLER),
    ("Hello!", ONE, LIORA),
    ("No.", ONE, NO_NAME),
    ("Yes?", ONE, LIORA),
    ("Well?", ONE, LIORA),
    ("Hm?", ONE, FILLER),
    ("17", ONE, NO_NAME),
]

CASES_DE = [
    ("Hauptmann, wohin gehen wir?", TWO, LIORA),
    ("Herr Hauptmann, ein Wort!", TWO, LIORA),
    ("Guten Abend, Müller.", TWO, OSKAR),
    ("Was meint Ihr, Hauptmann?", TWO, LIORA),
    ("Hauptmann, was hat der Müller gesagt?", TWO, LIORA),
    ("Oskar weißt du wo Liora ist?", TWO, OSKAR),
    ("Oskar hat die Liora vor dir gewarnt.", TWO, ABOUT),
    ("Ich habe einen Hauptmann getroffen.", TWO, NO_NAME),
    ("Jeder Müller weiß das.", TWO, NO_NAME),
    ("Der Hauptmann weiß mehr.", TWO, ABOUT),
    ("Stallbursche, komm her!", ONE, ABSENT),
    ("Tib, hast du Hunger?", ONE, ABSENT),
    ("Was meinst du, Tib?", ONE, ABSENT),
    ("Tib, mein Vetter, war hier.", ONE, NO_NAME),
    ("Tib hat mich bestohlen.", ONE, NO_NAME),
    ("(zu Mira) Der lügt.", ONE, PLAYER),
    ("(flüstert zu Mira) Der lügt.", ONE, PLAYER),
    ("(flüstert zu Bob) Der lügt.", ONE, PLAYER),
    ("(an alle) Los!", ONE, PLAYER),
    ("(an der Theke) Was kostet ein Bier?", ONE, LIORA),
    ("*an Bord* Wohin fahren wir?", ONE, LIORA),
    ("(zu der Tür) Ist da jemand?", ONE, LIORA),
    ("Mira, kommst du?", ONE, PLAYER),
    ("Bin gleich wieder da.", ONE, OOC),
    ("Ich muss kurz aufs Klo.", ONE, OOC),
    ("Pinkelpause!", ONE, OOC),
    ("Die Pizza ist da.", ONE, OOC),
    ("Ich würfle auf Wahrnehmung.", ONE, OOC),
    ("Wirf bitte einen W20.", ONE, OOC),
    ("Muss ich eine Wahrnehmungsprobe machen?", ONE, OOC),
    ("Wie viele Trefferpunkte hast du noch?", ONE, OOC),
    ("Spielleiter, ist die Tür zu?", ONE, OOC),
    ("Du bist stumm.", ONE, OOC),
    ("(OT: wie spät ist es?)", ONE, OOC),
    ("Wollt Ihr mit mir würfeln?", ONE, LIORA),
    ("Ist der Wirt gleich da?", ONE, LIORA),
    ("Ähm, hm.", ONE, FILLER),
    ("Tja.", ONE, FILLER),
    ("Ja, genau.", ONE, FILLER),
    ("Was kostet das?", ONE, LIORA),
    ("Na?", ONE, LIORA),
    ("Kennst du meinen Bruder, Tib?", ONE, LIORA),
    ("Was sagst du dazu, Tib?", ONE, ABSENT),
    ("Ich muss sofort weg von hier!", ONE, NO_NAME),
    ("Muss kurz weg.", ONE, OOC),
    ("Wo geht es hier zum Bad?", ONE, LIORA),
    ("Was kostet ein Wurf auf die Scheibe?", ONE, LIORA),
    ("Ich mache eine Probe auf Wahrnehmung.", ONE, OOC),
    ("Wann ist die nächste Sitzung des Rates?", ONE, LIORA),
    ("Nächste Sitzung spielen wir weiter.", ONE, OOC),
]


@cache
def names_of(campaign_language: str) -> TableNames:
    campaign = GERMAN if campaign_language == "de" else ENGLISH
    return TableNames(campaign, now_ms=lambda: 0)


def decide(
    text: str, here: tuple[NpcId, ...], *, language: str = "en", going_on_with: NpcId | None = None
) -> Addressed:
    addressing = Addressing()
    if going_on_with is not None:
        addressing.remember(JON, going_on_with, at_ms=0)
    said = Said(JON, text, names_of(language).mentions(text))
    return addressing.decide(said, present=here, names={npc.id: npc.name for npc in ENGLISH.npcs}, at_ms=1_000)


@pytest.mark.parametrize(("text", "here", "meant"), CASES)
def test_an_english_table(text: str, here: tuple[NpcId, ...], meant: NpcId | Unaddressed) -> None:
    decided = decide(text, here)
    assert (decided.npc or decided.unaddressed) == meant and decided.reason


@pytest.mark.parametrize(("text", "here", "meant"), CASES_DE)
def test_a_german_table(text: str, here: tuple[NpcId, ...], meant: NpcId | Unaddressed) -> None:
    decided = decide(text, here, language="de")
    assert (decided.npc or decided.unaddressed) == meant and decided.reason


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("And what does it cost?", OSKAR),
        ("Yes.", OSKAR),  # may be an answer
        ("Okay.", OSKAR),
        ("No, I don't think so.", OSKAR),
        ("Tib stole it.", OSKAR),
        ("Hm.", FILLER),
        ("Well?", OSKAR),
        ("Have you seen my brother, Tib?", OSKAR),
        ("Mhm, uh...", FILLER),
        ("brb, pizza", OOC),
        ("Tib, are you hungry?", ABSENT),
        ("Captain, is that true?", LIORA),
        ("I once knew a captain who lied.", OSKAR),
        ("(to Mira) he lies", PLAYER),
    ],
)
def test_somebody_who_goes_on_with_an_npc(text: str, meant: NpcId | Unaddressed) -> None:
    decided = decide(text, TWO, going_on_with=OSKAR)
    assert (decided.npc or decided.unaddressed) == meant


def test_the_reason_names_who_was_called_and_is_not_here() -> None:
    assert decide("Tib, are you hungry?", ONE).reason == "Tib was called, who is not here"
    assert decide("brb, pizza", ONE).reason == "out of character: somebody leaves the table for a moment"


def test_of_two_captains_the_one_who_is_here_is_meant() -> None:
    entities = (*ENGLISH.entities[1:], _entity("liora", "npc", "Liora Vance", "the captain"))
    other = _entity("old", "npc", "Old Brand", "the captain")
    campaign = replace(ENGLISH, entities=(other, *entities))
    names = TableNames(campaign, now_ms=lambda: 0)
    for text in ("Captain, where do we go?", "Is the captain here?"):
        said = Said(JON, text, names.mentions(text))
        assert Addressing().decide(said, present=TWO, names={LIORA: "Liora", OSKAR: "Oskar"}, at_ms=0).npc == LIORA


@pytest.mark.parametrize(
    ("language", "text", "both"),
    [
        ("en", "Liora, Oskar, what do you say?", (LIORA, OSKAR)),
        ("de", "Liora, Oskar, was meint ihr?", (LIORA, OSKAR)),
        ("en", "Liora, where is Oskar?", (LIORA, None)),
        ("en", "Liora, Liora, listen!", (LIORA, None)),
    ],
)
def test_of_two_that_are_called_the_second_reacts(language: str, text: str, both: tuple[NpcId, NpcId | None]) -> None:
    addressed = decide(text, TWO, language=language)
    assert (addressed.npc, addressed.second) == both
