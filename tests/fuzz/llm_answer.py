"""Answers of a language model, refused with `Unparseable`. Whatever is in them, the chronicle and the second look keep
only what they were shown, and say of the rest why it does not count.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from glyphoxa.chat.asker import QuestionLimits
from glyphoxa.chat.questions import ModelQuestion, Unparseable, parsed, validated
from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.llm_extractor import KnownBefore, Merging, TalkFindings, TalkQuestion, question_about
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.language.words import applied, composed
from glyphoxa.names.gazetteer import Entry, Gazetteer
from glyphoxa.npc import second_look as review
from glyphoxa.npc.second_look import CorrectedTranscript, Span, declared_in, verified
from tests.fuzz.running import FuzzTarget
from tests.support.builders import SMITH, an_utterance

ODO = KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",))
LINES = ("Odo Fennimore brews ale at the Saltmere.", "He serves Countess Marrin.", "I promise to find the bell.")
MISHEARD, DOUBTED = "so we asked elder nacks about iron holt", (Span(12, 23), Span(30, 39))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A stretch of talk, what the rules found in it, and what a model is asked about it."""

    talk: SceneTalk
    question: TalkQuestion
    known: KnownBefore


def feed(data: bytes, scratch: Path) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(Unparseable):
        _remembered(validated(TalkFindings, parsed(text)))
    with suppress(Unparseable):
        _looked_at(validated(CorrectedTranscript, parsed(text)))


def _remembered(answer: TalkFindings) -> None:
    asked = _asked()
    found = Merging(asked.question, asked.known).merge(answer)
    shown = {line.utterance.id for line in asked.question.lines}
    for each in (*found.entities, *found.relations, *found.facts):
        assert each.evidence, each
        assert shown.issuperset(each.evidence), each
    effects_of(found, asked.talk, [ODO])


def _looked_at(answer: CorrectedTranscript) -> None:
    text, declared = answer.corrected_text, declared_in(answer)
    gazetteer, _ = _misheard()
    edits = verified(MISHEARD, text, declared, doubtful=DOUBTED, gazetteer=gazetteer)
    composed(MISHEARD, (), edits)
    # Words that nobody doubted stay.
    assert applied(MISHEARD, edits).startswith("so we asked "), edits


@cache
def _asked() -> _Asked:
    said = tuple(
        NumberedUtterance(replace(an_utterance(text, id=f"u{n}", speaker="Tamsin"), witnesses=frozenset({SMITH})), n)
        for n, text in enumerate(LINES, start=1)
    )
    talk = SceneTalk(CampaignId("town"), SessionId("s"), "en", said, ())
    question = question_about(talk, QuestionLimits(10_000))
    assert question is not None
    rules = RulesExtractor("en")
    found = rules.find(talk, [ODO])
    return _Asked(talk, question, KnownBefore([ODO], rules.names, found))


@cache
def _misheard() -> tuple[Gazetteer, ModelQuestion[CorrectedTranscript]]:
    names = ("Eldrinax", "Ironhold", "Grimjaw")
    gazetteer = Gazetteer.build([Entry(name, EntityId(name)) for name in names])
    return gazetteer, review.question_about(MISHEARD, DOUBTED, names, language="en")


WORDS = (
    b'"',
    b"{",
    b"[" * 3_000,
    b"```json\n",
    b"9" * 5_000,
    b"\\ud800",
    b"\\u0000",
    b"NaN",
    b"1e999",
    b"null",
    b"true",
)
MEANT = (b'"lines": [', b"-1", b"0", b"Odo", b"Saltmere", b"Eldrinax", b"elder nacks", b'"facts": ', b'"PARENT_OF"')
TARGET = FuzzTarget("llm_answer", feed, (*WORDS, *MEANT))
