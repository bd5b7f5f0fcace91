"""Signs that a text is not for players are found in the words of any author, and ordinary names are no signs."""

from __future__ import annotations

import pytest

from glyphoxa.plugins.imports.labels import doubts_about, is_mark, is_marked, name_mark, property_mark, text_mark

FOR_THE_DM = """
GM-only|GM_only|gmOnly|DM's notes|G.M.|G. M. info|GMNotes|Game Master only|Dungeon Master information|Lore for the DM
Storyteller only|Keeper|Keeper's notes|Referee notes|MC only|Narrator|MJ|Warden's notes|For the Keeper|Maître de jeu
for your eyes only|DM's eyes only|Behind the Screen|not for players|hidden from players|What the players don't know
What your players shouldn't see|Unknown to the party|Not player-facing|Do not share with players|Keep secret
Spoilers|Secrets|Her secrets|Player secrets|Vessa's secret|Secrets of Vessa|The Secret of the Mill|Private notes
Secret identity|Secret plans|Hidden agenda|Hidden|Private|Confidential|Secret?|dm/secret|dungeon-master-notes|gmonly
SL-Notizen|Nur SL|Spielleiter|Spielleitungsnotizen|Für die Spielleitung|Meister|Meisterinfos|Meisterwissen
Nur für den Meister|Nicht für Spieler|Was die Helden nicht wissen|Den Spielern unbekannt|Hinter dem Schirm|Geheim
Geheimnisse der Stadt|Geheime Pläne|Vertraulich|Privat|Die Wahrheit (SL)|Streng geheim|Nicht vorlesen|Spoilerwarnung
Behind the curtain|What really happened|The truth|Twist|True identity|Was wirklich geschah|Die Wahrheit
"""
ORDINARY = """
Secret Door|Secret passage|Hidden Valley|The Hidden Vale|The Master Smith|The Spoils|Dmitri|Secret Societies|Notes
The Chamber of Secrets|Non-Player Characters|Keepers|Master Plan|St. Cuthbert|Private Room|Players|Player Characters
What the players know|Player knowledge|History|The Keeper of the Lighthouse|Session notes|Public|Private detective
Hidden treasure|Secret Service|Notes for players|McDonald|Director Vane|Author Bell|The Judge|Rumours|No Heroes
The heroes are not here|Secret Party|Appearance|Warden of the North|Temple of Truth|Oliver Twistle|The Truth Shop
Sekretär|Geheimgang|Geheime Tür|Meister Eder|Meisterbrief|Der Bund der Erzähler|Nicht-Spieler-Charaktere|Gruppe
Nichtspielercharaktere|Wissen|Hintergrund|Bekannt|Helden ohne Furcht|Ausrüstung der Helden|Keine Gnade|Versteck
"""


def listed(text: str) -> list[str]:
    return [each for line in text.strip().splitlines() for each in line.split("|")]


@pytest.mark.parametrize("label", listed(FOR_THE_DM))
def test_label_that_is_not_for_players_is_marked(label: str) -> None:
    assert is_marked(label)


@pytest.mark.parametrize("label", listed(ORDINARY))
def test_ordinary_label_is_not_marked(label: str) -> None:
    assert not is_marked(label)
    assert not is_marked(label, "folder")
    assert not is_marked(label, "name")


def test_word_that_is_also_a_trade_marks_a_label_and_no_name() -> None:
    assert (is_marked("Keeper"), is_marked("Keeper", "folder"), is_marked("Keeper", "name")) == (True, True, False)
    assert is_marked("Keeper's notes", "name")


NAMES = """
Orla - SECRET|Orla – hidden|Orla (secret)|Hidden - Orla|Secret: Orla|Orla -hidden-|Orla_-_hidden|Prep for Session 12
Session 3 preparation|Session Nine Prep|2031-05-01 prep|Prep|Abend 3 - Vorbereitung|Orla (geheim)|Orla - Geheimnis
Sitzung 12 Vorbereitung|Vorbereitung Sitzung 3
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_part_of_a_name_that_is_nothing_but_a_mark_hides(name: str) -> None:
    assert is_marked(name, "name")
    assert is_marked(name, "folder")


@pytest.mark.parametrize(
    "name",
    [
        "Orla - Keeper",
        "Orla (The Hidden Vale)",
        "Session 9",
        "Session 9 - The Secret Door",
        "Session 9: Preparation of a feast",
    ],
)
def test_part_of_a_name_that_says_more_than_a_mark_hides_nothing(name: str) -> None:
    assert not is_marked(name, "name")


@pytest.mark.parametrize("name", ["Vessa's Secret", "The Secret of Bone Hill", "The Dragon's Secret"])
def test_name_of_a_note_with_a_secret_in_it_is_a_name(name: str) -> None:
    assert not is_marked(name, "name")


def test_only_a_label_of_nothing_else_is_a_mark() -> None:
    assert all(map(is_mark, ("GM only", "Hidden", "for your eyes only", "Nur SL", "Not for players", "DM notes 2")))
    assert not any(map(is_mark, ("The DM smiles.", "Secret identity", "A hidden door", "Notes", "")))


def test_name_of_a_document_or_a_folder_around_it_is_reported() -> None:
    assert name_mark(("Session 4 - DM prep",), ()) == "name 'Session 4 - DM prep'"
    assert name_mark(("Session 9 prep",), ()) == "name 'Session 9 prep'"
    assert name_mark(("The duke",), ("World", "_DM")) == "folder '_DM'"
    assert name_mark(("The duke",), ("World", "Hidden Vale")) == ""


@pytest.mark.parametrize(
    ("key", "value", "hides"),
    [
        ("visibility", "gm-only", "note"),
        ("visibility", "inner circle", "note"),
        ("visibility", "Public", ""),
        ("visibility", "all players", ""),
        ("visible", False, "note"),
        ("visible", True, ""),
        ("visible", None, ""),
        ("access", "storyteller", "note"),
        ("audience", "everyone", ""),
        ("known to", "Mira", "note"),
        ("known_to", "everybody", ""),
        ("player-visible", "no", "note"),
        ("showToPlayers", "false", "note"),
        ("dg-publish", True, ""),
        ("publish", False, "note"),
        ("public", 0, "note"),
        ("players", "no", "note"),
        ("private", True, "note"),
        ("private", "no", ""),
        ("private", "partly", "note"),
        ("secret?", "x", "note"),
        ("secret", "maybe", "note"),
        ("secret", "He is a vampire", "value"),
        ("gm_notes", "Serves Mog", "value"),
        ("gmOnly", 1, "note"),
        ("gm", "none", ""),
        ("secret ally", "Mog", "value"),
        ("status", "hidden", "note"),
        ("for", "DM only", "note"),
        ("status", "dead", ""),
        ("occupation", "Keeper", ""),
        ("notes", "GM: he lies", "value"),
        ("player knowledge", "He bakes", ""),
        ("race", "elf", ""),
        ("level", 0, ""),
        ("known for", "singing", ""),
        ("facing", "north", ""),
        ("published", "2023-05-01", ""),
        ("player-facing", "no", "note"),
        ("party knows", "no", "note"),
        ("discovered", False, "note"),
        ("discovered", "by Mira", ""),
        ("knowledge", "dm", "note"),
        ("share", "never", "note"),
        ("hideFromPlayers", True, "note"),
        ("who can see", "gm", "note"),
        ("Sichtbarkeit", "SL", "note"),
        ("Sichtbarkeit", "alle", ""),
        ("öffentlich", "nein", "note"),
        ("geheim", "ja", "note"),
    ],
)
def test_property_hides_unless_its_value_is_known_to_be_open(key: str, value: object, hides: str) -> None:
    assert property_mark(key, [value]) == hides


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("**DM notes** He lies.", "DM notes"),
        ("GM: he lies", "GM"),
        ("He bakes. GM: he lies", "GM"),
        ("G.M.: he lies", "G.M."),
        ("(GM only) He lies", "GM only"),
        ("He lies (DM only).", "DM only"),
        ("GM only - he lies", "GM only"),
        ("==Spoiler== He lies", "Spoiler"),
        ("What the players don't know: he lies", "What the players don't know"),
        ("Nur für die Spielleitung: er lügt", "Nur für die Spielleitung"),
        ("She has a secret: she lies", "She has a secret"),
        ("The DM smiles.", ""),
        ("He has a *secret* door", ""),
        ("Secret door: DC 15", ""),
        ("At 12:30 he leaves the Master Smith", ""),
        ("NPC: Bob", ""),
    ],
)
def test_paragraph_is_marked_by_a_label_in_it(text: str, mark: str) -> None:
    assert text_mark(text) == mark


def test_words_that_often_tell_a_secret_are_doubts() -> None:
    assert doubts_about("She betrays him, and the Traitor is dead.") == ("betrays", "traitor", "dead")
    assert doubts_about("Er ist heimlich ein Spion.") == ("heimlich", "spion")
    assert doubts_about("She bakes bread.") == ()
