"""What happened, in the words of those who were there: lines are selected, nothing is made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.chronicle.rules.extractor import names_of
from glyphoxa.chronicle.rules.salience import SalienceJudge
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.domain.ids import NpcId
from glyphoxa.speech.language.quoted import as_label, quoted
from glyphoxa.speech.language.vocabulary import vocabulary_of
from glyphoxa.speech.language.words import words
from glyphoxa.speech.names.gazetteer import Gazetteer

TOKENS: Final = 200
"""Of a summary."""
_CHARACTERS_PER_TOKEN: Final = 4
_LONGEST_LINE: Final = 240
"""Characters: who talks longer is cut at the end of a sentence, or of a word."""
_ALIKE: Final = 0.6
"""Share of a line's telling words that a chosen line has already, from which on it says nothing new."""
_LEAST: Final = 0.3
"""Salience of a line that is worth a place."""
_SAID: Final = {"de": "{speaker} sagte: „{text}“"}
_SAID_ELSE: Final = "{speaker} said: “{text}”"


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One utterance of a summary, in full or its beginning."""

    said: NumberedUtterance
    text: str

    def in_words(self, language: str) -> str:
        form = _SAID.get(language.lower()[:2], _SAID_ELSE)
        return form.format(speaker=as_label(self.said.utterance.speaker_name), text=quoted(self.text))


def heard_by(npc: NpcId, said: Sequence[NumberedUtterance]) -> list[NumberedUtterance]:
    """All that a summary for that NPC may be made of."""
    return [each for each in said if npc in each.utterance.witnesses]


def for_players(
    said: Sequence[NumberedUtterance], known: Sequence[KnownEntity], language: str
) -> list[NumberedUtterance]:
    """All that may be read to the players: what was said, in words that name nobody whom not everybody may know. Names
    are put right for the log; where that made a guarded one of what was heard, the words are as they were heard.
    """
    guarded = names_of((each for each in known if each.visibility.scope != "public" and not each.is_of_talk), language)
    shown: list[NumberedUtterance] = []
    for each in said:
        utterance = each.utterance
        # Of an NPC `raw_text` is what it meant to say, and not all of it was heard.
        heard = (utterance.text,) if utterance.npc_id is not None else (utterance.text, utterance.raw_text)
        text = next((text for text in heard if not guarded.mentions(text)), None)
        if text is not None and not guarded.mentions(utterance.speaker_name):
            shown.append(replace(each, utterance=replace(utterance, text=text)))
    return shown


def summary_of(
    said: Sequence[NumberedUtterance], *, language: str, names: Gazetteer | None = None, tokens: int = TOKENS
) -> list[SummaryLine]:
    """The most salient lines that there is room for, none of which says what another does; in their order.

    Args:
        said: In order. Whoever the summary is for may know of all of it.
        tokens: About four characters each.
    """
    judge, vocabulary = SalienceJudge(language, names), vocabulary_of(language)
    judged = [(judge.judge(each.utterance.text), each) for each in said]
    by_salience = sorted(
        ((one, each) for one, each in judged if one.score >= _LEAST and not one.asks_to_forget),
        key=lambda pair: (-pair[0].score, pair[1].ordinal),
    )
    left = tokens * _CHARACTERS_PER_TOKEN
    chosen: list[SummaryLine] = []
    told: list[frozenset[str]] = []
    for _, each in by_salience:
        line = SummaryLine(each, _shortened(each.utterance.text))
        length = len(line.in_words(language)) + 1
        telling = frozenset(word.folded for word in words(line.text)) - vocabulary.stop
        if length > left or not telling or any(len(telling & other) >= _ALIKE * len(telling) for other in told):
            continue
        left -= length
        chosen.append(line)
        told.append(telling)
    return sorted(chosen, key=lambda line: line.said.ordinal)


def in_words(lines: Sequence[SummaryLine], language: str) -> str:
    return " ".join(line.in_words(language) for line in lines)


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    if len(plain) <= _LONGEST_LINE:
        return plain
    cut = plain[:_LONGEST_LINE]
    end = max(cut.rfind(f"{mark} ") for mark in ".!?")
    return cut[: end + 1] if end > 0 else cut[: cut.rfind(" ")].rstrip(",;:-") + " …"
