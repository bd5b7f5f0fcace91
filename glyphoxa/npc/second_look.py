"""Asks a language model about doubtful words of a transcript, and verifies its answer.

1. `doubtful_spans` finds the words. With recogniser confidence, these are words below a limit that no earlier stage
   has corrected. Otherwise it is everything that looks like an unknown name: in no dictionary, or with a
   capital letter within a sentence. Without a doubtful word, no model is asked.
2. `question_about` writes the question. The utterance is data: it is marked in the last message, and
   whatever it contains, only its marked words can change.
3. `verified` checks the answer, which is a whole text and a list of replacements. Neither is sufficient alone: the two
   texts are compared token by token. A replacement is made only

   - where its words occur, with the changed ones inside a doubtful span,
   - if it is a known name (or an alias, a possessive, a plural of one) that sounds like them, and no other name is
     clearly closer,
   - if the model's text contains it there.

   All other differences are reverted: the result contains words of the original text and names of the gazetteer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import Annotated, Final

from loguru import logger
from pydantic import AfterValidator, SkipValidation
from rapidfuzz.distance import LCSseq, Postfix, Prefix

from glyphoxa.chat.questions import ModelAnswer, ModelQuestion, take_each
from glyphoxa.domain.heard import UNSURE, Correction, HeardWord
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.language_data import lexicon, texts
from glyphoxa.language.prompt_quotes import in_one_line
from glyphoxa.language.sentences import shortened
from glyphoxa.language.words import Places, Put, Word, applied, fold, words, words_of_text
from glyphoxa.names.evidence import confidences_of
from glyphoxa.names.gazetteer import SHORTEST, Gazetteer, likeness
from glyphoxa.names.naming import Name, looks_like_a_name

_WITHIN_NAMES: Final = lexicon("names").words("within")


@dataclass(frozen=True, slots=True)
class Span:
    """Adjacent doubtful words: a span of the text, including the last possessive ending."""

    start: int
    end: int


def doubtful_spans(
    text: str,
    *,
    gazetteer: Gazetteer,
    corrections: Sequence[Correction] = (),
    heard: Sequence[HeardWord] = (),
    low_confidence: float = UNSURE,
) -> tuple[Span, ...]:
    """The doubtful spans of a transcript, in order, without overlap. Very common words alone are none.

    Args:
        corrections: The corrections from the raw text to `text`; their spans are positions in the raw text, in order.
        heard: Recogniser details for the words of the raw text.
    """
    spoken = words(text)
    settled = _settled(text, spoken, Places(corrections), gazetteer)
    confidences = confidences_of(spoken, words_of_text(heard, corrections))
    if any(confidence is not None for confidence in confidences):
        is_doubtful = [known is not None and known < low_confidence for known in confidences]
        bridges = [False] * len(spoken)
    else:
        is_doubtful = [looks_like_a_name(word, gazetteer.vocabulary) for word in spoken]
        bridges = [word.folded in _WITHIN_NAMES for word in spoken]
    for at in settled:
        is_doubtful[at] = bridges[at] = False
    return tuple(
        Span(spoken[first].start, spoken[last].end)
        for first, last in _runs(spoken, is_doubtful, bridges)
        if any(word.folded not in gazetteer.vocabulary.stop for word in spoken[first : last + 1])
    )


def _settled(text: str, spoken: Sequence[Word], places: Places, gazetteer: Gazetteer) -> set[int]:
    """Indices of words that an earlier stage has corrected, or that spell a name that is not an ordinary word."""
    found: set[int] = set()
    for start, end in places.replaced:
        found.update(at for at, word in enumerate(spoken) if word.start < end and start < word.end)
    for mention in gazetteer.mentions(text):
        if not mention.name.is_ordinary or any(spoken[at].is_capital for at in range(mention.first, mention.last + 1)):
            found.update(range(mention.first, mention.last + 1))
    return found


def _runs(spoken: Sequence[Word], is_doubtful: Sequence[bool], bridges: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """First and last index of each run of doubtful words; up to two words that may be inside a name join runs."""
    first = last = -1
    for at, word in enumerate(spoken):
        if first >= 0 and not (word.joins and (is_doubtful[at] or (bridges[at] and at - last <= 2))):
            yield first, last
            first = -1
        if is_doubtful[at]:
            first, last = (at if first < 0 else first), at
    if first >= 0:
        yield first, last


TEMPERATURE = 0.1
_WIDEST_ORIGINAL = 6
_MAX_ORIGINALS = 40
_LONGEST_REASON = 120


class NameReplacement(ModelAnswer):
    """A replacement declared by a model."""

    original: str
    corrected: str
    reason: Annotated[str, AfterValidator(lambda text: shortened(in_one_line(text), _LONGEST_REASON))]


class CorrectedTranscript(ModelAnswer):
    """An answer of a model. Each replacement is validated when it is read, so that a bad one costs no other."""

    corrections: list[SkipValidation[NameReplacement]]
    corrected_text: str


def question_about(
    text: str, doubtful: Sequence[Span], names: Sequence[str], *, language: str, before: Iterable[str] = ()
) -> ModelQuestion[CorrectedTranscript]:
    """The request about `text`. Takes milliseconds for a long text: do not call in a loop that carries audio.

    Args:
        doubtful: In order, without overlap.
        names: Candidates; the answer can contain no others.
        language: BCP 47 tag of the campaign.
        before: The preceding lines, oldest first, each with its speaker.
    """
    marked = applied(text, (Put(each.start, each.end, f"<<{text[each.start : each.end]}>>") for each in doubtful))
    prompt = texts("tasks", language).value("second_look")
    lines = [prompt["names"].format(names=", ".join(names))]
    earlier = [in_one_line(line) for line in before]
    if earlier:
        lines += [prompt["before"], *earlier]
    user = "\n".join([*lines, prompt["transcript"].format(text=in_one_line(marked))])
    # With this grammar, a small model cannot write names that do not exist, or words that were not said.
    of_names = frozenset(word.folded for name in names for word in words(name))
    originals = list(dict.fromkeys(_windows(text, doubtful, of_names)))
    allowed = {
        "original": originals if len(originals) <= _MAX_ORIGINALS else [],
        "corrected": names,
        "reason": prompt["reasons"],
    }
    limits = {f"corrections.*.{field}": {"enum": [*values]} for field, values in allowed.items() if values}
    return ModelQuestion(CorrectedTranscript, prompt["system"], user, limits)


def _windows(text: str, spans: Iterable[Span], of_names: Container[str]) -> Iterator[str]:
    """The spans a replacement may cover: adjacent words of each span, without the last possessive ending.

    Includes adjacent words that occur in names: "Tower of Wispers", where only the last is doubtful.
    """
    spoken = words(text)
    starts = [word.start for word in spoken]
    for span in spans:
        begin = bisect_left(starts, span.start)
        end = begin
        while end < len(spoken) and spoken[end].end <= span.end:
            end += 1
        for first in range(max(0, begin - _WIDEST_ORIGINAL + 1), end):
            for last in range(first, min(first + _WIDEST_ORIGINAL, len(spoken))):
                is_doubted = begin <= last < end
                if (last > first and not spoken[last].joins) or not (is_doubted or spoken[last].folded in of_names):
                    break
                if begin <= last and first < end:
                    yield text[spoken[first].start : spoken[last].start + len(spoken[last].text)]


MIN_LIKENESS = 0.5
MIN_FOR_WORDS = 0.7
"""Minimum likeness for words in a dictionary, which may have been said."""
MIN_OF_WORDS = 0.8
"""Minimum likeness for names made of dictionary words ("Hope"), which are no evidence of the name."""
MARGIN = 0.1
"""How much closer another name may be; beyond it, the match is rejected.

Small models replace whatever they are shown; these limits bound the damage. Of 1,200 words in clean sentences (tuning
half of the spoken set) 82 % resemble some name by 0.5, 20 % by 0.7; of the 353 wrong forms that the stage by sound
misses, the right name passes for 89 of 110 with an odd word and 44 of 243 without.
"""

MAX_NAMES = 60
_MAX_QUERIES = 8
_PER_QUERY = 8


def likely_names(
    text: str,
    doubtful: Sequence[Span],
    gazetteer: Gazetteer,
    *,
    nearby: Container[EntityId] = frozenset(),
    limit: int = MAX_NAMES,
) -> list[str]:
    """Candidates for a request: the names most similar to the doubtful words, best first, then the nearby ones."""
    scores: dict[str, float] = {}
    for letters in _queries(text, doubtful):
        for score, name in _alike(letters, gazetteer):
            scores[name.text] = max(score, scores.get(name.text, 0.0))
    likely = sorted(scores, key=scores.__getitem__, reverse=True)
    here = (name.text for name in gazetteer.names if name.kind == "name" and name.entity_id in nearby)
    return list(dict.fromkeys((*likely, *here)))[:limit]


def supported(heard: str, name: Name, gazetteer: Gazetteer) -> float | None:
    """Likeness of the words to the name, 0 to 1; None if they cannot mean it."""
    letters = fold(heard)
    its_own = likeness(letters, gazetteer.sounder(letters), name)
    best = max((score for score, _ in _alike(letters, gazetteer)), default=0.0)
    return its_own if its_own >= max(_least(heard, name, gazetteer), best - MARGIN) else None


def _alike(letters: str, gazetteer: Gazetteer) -> list[tuple[float, Name]]:
    """The most similar names with their likeness, best first."""
    sound = gazetteer.sounder(letters)
    near = gazetteer.alike(letters, gazetteer.coder(letters), limit=_PER_QUERY)
    short = (name for name in gazetteer.names if len(name.joined) < SHORTEST)  # no index has them
    found = [(likeness(letters, sound, name), name) for name in (*near, *short) if name.kind != "learned"]
    return nlargest(_PER_QUERY, found, key=itemgetter(0))


def _least(heard: str, name: Name, gazetteer: Gazetteer) -> float:
    if name.is_ordinary:
        return MIN_OF_WORDS
    vocabulary = gazetteer.vocabulary
    are_ordinary = all(vocabulary.is_ordinary(word.folded) for word in words(heard))
    return MIN_FOR_WORDS if are_ordinary else MIN_LIKENESS


def _queries(text: str, doubtful: Sequence[Span]) -> Iterator[str]:
    """Texts to compare names with: whole spans first, then their words."""
    spans = [[w for w in words(text) if span.start <= w.start and w.end <= span.end] for span in doubtful]
    whole = ["".join(word.folded for word in spoken) for spoken in spans]
    single = [word.folded for spoken in spans if len(spoken) > 1 for word in spoken if len(word.folded) >= 4]
    yield from [query for query in dict.fromkeys((*whole, *single)) if query][:_MAX_QUERIES]


def declared_in(answer: CorrectedTranscript) -> list[NameReplacement]:
    """The replacements a model declared. Skips malformed and contradictory ones.

    A model that replaces the same words by two names knows neither.
    """
    found: dict[str, NameReplacement] = {}
    refused: set[str] = set()

    def take(declared: NameReplacement) -> None:
        key = " ".join(declared.original.split()).casefold()
        if fold(found.setdefault(key, declared).corrected) != fold(declared.corrected):
            refused.add(key)

    for why in take_each(answer.corrections, NameReplacement, take, what="the corrections", most=_MAX_ORIGINALS):
        logger.debug("rejected: {}", why)
    return [declared for key, declared in found.items() if key and key not in refused]


def verified(
    text: str,
    answer: str,
    declared: Sequence[NameReplacement],
    *,
    doubtful: Sequence[Span],
    gazetteer: Gazetteer,
) -> tuple[Correction, ...]:
    """The replacements to make in `text`, as positions in it, in order, without overlap. See the module."""
    own, theirs = _tokens(text), [token.key for token in _tokens(answer)]
    steps = [step for each in declared for step in _steps(text, own, each, doubtful, gazetteer)]
    return tuple(_taken([token.key for token in own], theirs, steps))


@dataclass(frozen=True, slots=True)
class _Token:
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Step:
    """A replacement of `length` tokens from token `first` on by `becomes`."""

    first: int
    length: int
    becomes: tuple[str, ...]
    edit: Correction


def _tokens(text: str) -> list[_Token]:
    """Words and their possessive endings. Punctuation may differ: nobody said it."""
    found: list[_Token] = []
    for word in words(text):
        stem_end = word.start + len(word.text)
        found.append(_Token(word.text.casefold(), word.start, stem_end))
        if word.tail:
            found.append(_Token(word.tail.casefold().replace("’", "'"), stem_end, word.end))
    return found


def _steps(
    text: str, own: Sequence[_Token], declared: NameReplacement, doubtful: Sequence[Span], gazetteer: Gazetteer
) -> Iterator[_Step]:
    """The places where the declared replacement is permitted."""
    known = _known(declared.corrected, gazetteer)
    before = [token.key for token in _tokens(declared.original)]
    if known is None or not before:
        return
    name, written = known
    becomes = _tokens(written)
    after_keys = [token.key for token in becomes]
    lead = Prefix.similarity(before, after_keys)
    trail = Postfix.similarity(before[lead:], after_keys[lead:])
    if lead + trail >= len(before) or lead + trail >= len(becomes):
        return
    after = written[becomes[lead].start : becomes[-1 - trail].end]
    score = supported(declared.original, name, gazetteer)
    if score is None:
        return
    for first in range(len(own) - len(before) + 1):
        window = own[first : first + len(before)]
        if [token.key for token in window] != before:
            continue
        start, end = window[lead].start, window[-1 - trail].end
        if any(span.start <= start and end <= span.end for span in doubtful) and text[start:end] != after:
            edit = Correction(start, end, text[start:end], after, round(score, 3), "llm", declared.reason)
            yield _Step(first, len(before), tuple(token.key for token in becomes), edit)


def _known(corrected: str, gazetteer: Gazetteer) -> tuple[Name, str] | None:
    """The name that this is, and its spelling; None for anything else, also for a name with more words."""
    corrected = " ".join(corrected.split())
    name, spelled = gazetteer.spelled(corrected), fold(corrected)
    if name is None or name.is_shared or not spelled.startswith(name.joined):
        return None
    if spelled == name.joined:
        return name, name.text
    return name, name.text + ("'s" if corrected[-2:-1] in ("'", "’") else "s")


def _taken(own: Sequence[str], theirs: Sequence[str], steps: Iterable[_Step]) -> list[Correction]:
    """Return the steps after which more tokens are those of the other text, in order, without overlap.

    Of two that overlap, the later or longer one counts.
    """
    made, best, end = list(own), LCSseq.similarity(own, theirs), len(own)
    taken: list[Correction] = []
    # From the end, so that the positions of the other steps stay.
    for step in sorted(steps, key=lambda step: (step.first, step.length), reverse=True):
        changed = [*made[: step.first], *step.becomes, *made[step.first + step.length :]]
        if step.first + step.length <= end and (same := LCSseq.similarity(changed, theirs)) > best:
            made, best, end = changed, same, step.first
            taken.append(step.edit)
    return taken[::-1]
