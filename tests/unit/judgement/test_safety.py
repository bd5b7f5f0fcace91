"""Topics that a group does not play are found by words, in English and German."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random

import pytest

from glyphoxa.domain.campaign import Safety
from glyphoxa.domain.turn_record import Asked, Character, Fault
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.judgement.safety import MINORS, Mode, Risk, SafetyTopics, TurnJudgement, mode_and_risk
from glyphoxa.language.plain_text import PlainText
from glyphoxa.language.sentences import SentenceSplitter
from tests.support.proof import n_examples

CASES = tomllib.loads(Path(__file__).with_name("safety.toml").read_text("utf-8"))
GRIMJAW = Character("Grimjaw")
LINES = SafetyTopics(Safety(("spiders", "harm to children", "suicide")))


def touches(topic: str, text: str, language: str) -> bool:
    return bool(SafetyTopics(Safety((topic,)), language).flags(text))


@pytest.mark.parametrize("language", ["en", "de"])
def test_topics_are_found_with_few_misses_and_false_hits(language: str) -> None:
    hits = [text for topic, text in CASES[language]["touching"] if touches(topic, text, language)]
    false_hits = [text for topic, text in CASES[language]["innocent"] if touches(topic, text, language)]
    assert len(hits) / len(CASES[language]["touching"]) >= 0.9
    assert len(hits) / len([*hits, *false_hits]) >= 0.9


@pytest.mark.parametrize("language", ["en", "de"])
def test_floor_holds_without_any_topic_of_the_campaign(language: str) -> None:
    topics = SafetyTopics(language=language)
    cases = CASES["floor"]
    assert [text for _, text in cases["touching"] if topics.flags(text) != (MINORS,)] == []
    assert [text for _, text in cases["innocent"] if topics.flags(text)] == []


@pytest.mark.parametrize(
    ("topic", "language", "text"),
    [
        ("clowns", "en", "The clown laughs."),
        ("rats", "en", "A rat, and another rat."),
        ("explicit gore", "en", "There was gore on the walls."),
        ("Ratten", "de", "Eine Rattenplage!"),
        ("Puppen", "de", "Die Puppe sieht mich an."),
        ("Alkohol", "de", "Er ist Alkoholiker."),
        ("araignées", "fr", "Une araignée et des araignées"),
        ("spiders", "en", "spi\u200bders"),
        ("Folter", "de", "He was tortured."),
    ],
)
def test_topic_is_found_in_other_forms(topic: str, language: str, text: str) -> None:
    assert SafetyTopics(Safety((topic,)), language).flags(text) == (f"line:{topic}",)


@pytest.mark.parametrize(
    ("topic", "language", "text"),
    [("rats", "en", "He rates it highly."), ("Mord", "de", "Wir ziehen nach Mordor."), ("gore", "en", "A gorge.")],
)
def test_other_words_with_the_same_letters_are_no_topic(topic: str, language: str, text: str) -> None:
    assert SafetyTopics(Safety((topic,)), language).flags(text) == ()


def test_flags_name_floor_lines_and_veils_in_this_order() -> None:
    topics = SafetyTopics(Safety(("spiders",), ("torture",)))
    assert topics.flags("They tortured him with spiders.") == ("line:spiders", "veil:torture")
    assert topics.flags("They tortured the naked child.") == (MINORS, "veil:torture")
    assert topics.flags("Good morning.") == ()


def test_only_floor_and_lines_are_forbidden() -> None:
    topics = SafetyTopics(Safety(("spiders",), ("torture",)))
    assert topics.forbids("A spider!") and topics.forbids("a naked child")
    assert not topics.forbids("They tortured him.")


@pytest.mark.parametrize(
    ("flags", "mode", "risk", "is_blocked", "is_reviewed"),
    [
        ((), Mode.IN_WORLD_ANSWER, Risk.LOW, False, False),
        (("veil:torture",), Mode.IN_WORLD_ANSWER, Risk.MEDIUM, False, True),
        (("line:spiders", "veil:torture"), Mode.SAFE_REDIRECT, Risk.MEDIUM, True, True),
        ((MINORS,), Mode.SAFE_REDIRECT, Risk.HIGH, True, True),
    ],
)
def test_mode_and_risk_follow_from_flags(
    flags: tuple[str, ...], mode: Mode, risk: Risk, is_blocked: bool, is_reviewed: bool
) -> None:
    judgement = TurnJudgement(*mode_and_risk(flags), flags=flags, extract_memory=True)
    assert (judgement.mode, judgement.risk) == (mode, risk)
    assert (judgement.is_blocked, judgement.needs_review) == (is_blocked, is_reviewed)
    assert judgement.may_extract is (mode is Mode.IN_WORLD_ANSWER)


def test_topic_is_rejected_across_the_pieces_of_a_sentence() -> None:
    asked = Asked(so_far="Mind the step. He used to beat")
    assert LINES.rejects("the children with a stick.", GRIMJAW, asked) is Fault.SAFETY
    assert LINES.rejects("the children with a stick.", GRIMJAW, Asked(so_far="He used to beat iron.")) is None


SENTENCES = (
    "I have seen nothing of the kind",
    "there are spiders under the floor, hundreds of them",
    "he *beat* the boy until he bled",
    "the widow hanged herself in the barn, poor thing",
    "well, the road is dry",
    "a **tarantula** sat on my bread",
    "they say the smith, an old man who hits children, left",
    "come in and sit by the fire",
)


@pytest.mark.parametrize("seed", range(n_examples(200)))
def test_no_forbidden_sentence_is_said_however_the_stream_is_split(seed: int) -> None:
    random = Random(seed)
    text = " ".join(f"{random.choice(SENTENCES).capitalize()}." for _ in range(random.randint(1, 5)))
    cuts = sorted(random.randint(0, len(text)) for _ in range(random.randint(0, len(text))))
    plain, splitter = PlainText(char="Grimjaw", user="Tamsin"), SentenceSplitter(marks_end=random.random() < 0.5)
    check = ReplyCheck(GRIMJAW, Asked(), repairs=random.random() < 0.5, more_rules=(LINES.rejects,))
    said: list[str] = []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        said += [check.decide(piece).text for piece in splitter.push(plain.push(text[start:end]))]
    said += [check.decide(piece).text for piece in (*splitter.push(plain.flush()), *splitter.flush())]
    assert LINES.flags(" ".join(said)) == ()
