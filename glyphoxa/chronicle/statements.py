"""Finds facts and relations in sentences.

First, each name in a sentence is replaced by one placeholder character, so that a pattern can match "a name" and the
character identifies it. The patterns are data, English and German: see `glyphoxa/language/data/en/chronicle.toml`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from glyphoxa.chronicle.talk import NOT_TOLD, STORED, ExtractedFact, ExtractedRelation, Kind
from glyphoxa.language.calls import NamedPlace
from glyphoxa.language.language_data import Lexicon, languages, lexicon
from glyphoxa.language.new_names import occupation_in
from glyphoxa.language.sentences import sentence_spans
from glyphoxa.language.text import Text, Weights, is_grammatical, log_odds, phrases, shipped
from glyphoxa.language.words import Put, applied

_SPOKEN_ASIDE: Final = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_FIRST_SIGN: Final = 0xE100
_NAMED: Final = "[\ue100-\uf8ff]"
"""Pattern of one name in `MarkedSentence.marked`."""
_ANY_NAME: Final = re.compile(_NAMED)
SPEAKER: Final = "I"
"""Used in place of a key for the speaker. What is found in a sentence has no evidence yet."""

_WORDS: Final = lexicon("chronicle")
_BY_LANGUAGE: Final = [
    lexicon("chronicle", language) for language in sorted(languages(), key=lambda each: each != "en")
]
"""English first: of two matching patterns, the earlier one wins."""
_CLAUSE_END: Final = _WORDS.compile(r"[,;:—–]| {clause_joins} ")
_PRONOUN: Final = _WORDS.compile(r"{pronoun}(?=[ '])")


# The kind of a claim, from the words around it: "Wenna was Odo's wife until last year" is past, "they say that Wenna
# owns the mill" is a rumour. Only a claim that holds now becomes a fact of the world. One logistic regression for each
# kind reads the words of the claim's clause, of the other clauses, and of the other sentences of the line. The weights
# are data, `kinds.json`, written by `python -m benchmarks.statements`, and cost a claim that holds now rather than
# store one that does not.

LEAST: Final = 0.75
"""Score from which a claim holds now. `python -m benchmarks.statements` measures it."""
ANY: Final = -math.inf
"""The least score for what is kept verbatim. Any other kind needs better reasons: a score of `_SURE`."""
_SURE: Final = 0.5
_CLAIM: Final = "claim"
A_NAME: Final = "nn"
"""The word in place of each name."""
_ANOTHER: Final = "~"


def features(parts: Mapping[str, str]) -> frozenset[str]:
    """Return the phrases of a claim and of its surroundings, each with the name of its part.

    Marks stand for the words of one meaning, such as those for a lie. Around the claim, they alone count besides
    function words, because any other word may be there; in the claim, each word and each ending counts, too.

    Args:
        parts: Texts by the name of their part; see `MarkedSentence.parts`.
    """
    found = set[str]()
    for part, text in parts.items():
        general = phrases(text, _as_mark) if text.strip() else frozenset[str]()
        exact = phrases(text, str) | phrases(text, _ending) if part == _CLAIM else frozenset[str]()
        found.update(f"{part}:{phrase}" for phrase in general | exact)
        found.update(f"any:{phrase}" for phrase in general if phrase in _MARKS and part != _CLAIM)
    return frozenset(found)


_MARKS: Final = {
    f"*{mark}": re.compile("|".join(sorted(listed))) for mark, listed in lexicon("chronicle").table("marks").items()
}


@lru_cache(20_000)
def _as_mark(word: str) -> str:
    mark = next((mark for mark, words in _MARKS.items() if words.fullmatch(word)), None)
    return mark or (word if word == A_NAME or is_grammatical(word) else _ANOTHER)


def _ending(word: str) -> str:
    return f"-{word[-2:]}"


def kind_of(found: Collection[str], weights: Mapping[str, Weights] | None = None, *, least: float = LEAST) -> Kind:
    """Return the kind of a claim with these features: now only if its score is at least this, and the highest.

    Args:
        weights: Those of each kind; None: the shipped ones.
    """
    known = weights or shipped(__package__, "kinds")
    scores = {Kind(kind): log_odds(found, each) for kind, each in known.items()}
    if scores[Kind.NOW] < least:
        del scores[Kind.NOW]
    best = max(scores, key=scores.__getitem__)
    return best if least > ANY or scores[best] >= _SURE else Kind.NOW


# Sentences with their names marked.


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence with placeholders for names.

    Attributes:
        text: The original text.
        marked: The text with one placeholder for each name; `key_of` resolves it.
        is_question: It asks.
        line: The text of which it is one sentence; `text_before` and `text_after` are its rest, also with placeholders.
    """

    text: str
    marked: str
    keys: tuple[str, ...]
    is_question: bool
    line: str = ""
    text_before: str = ""
    text_after: str = ""

    def key_of(self, sign: str) -> str:
        """Return the key of a placeholder; the speaker's for a word such as "I" or "my"."""
        return self.keys[ord(sign) - _FIRST_SIGN] if re.fullmatch(_NAMED, sign) else SPEAKER

    @property
    def told(self) -> Kind:
        """The kind of the sentence as a whole."""
        return self.kind(*self.extent, least=ANY)

    @lru_cache(1_000)  # noqa: B019 - sentences are values, and several readers ask about one
    def kind(self, start: int, end: int, *, least: float = LEAST) -> Kind:
        """Return the kind of a claim, a part of `marked`: `UNREAL` in a question. For `least`, see `kind_of`."""
        return Kind.UNREAL if self.is_question else kind_of(features(self.parts(start, end)), least=least)

    def parts(self, start: int, end: int) -> Mapping[str, str]:
        """Return the surroundings of a claim with a word for each name.

        `front` and `back` are the rest of the clause, `left` and `right` the other clauses, `before` and `after` the
        other sentences.
        """
        begins = max((match.start() for match in _CLAUSE_END.finditer(self.marked, 0, start)), default=0)
        found = _CLAUSE_END.search(self.marked, end)
        ends = len(self.marked) if found is None else found.start()
        parts = {
            "claim": self.marked[start:end],
            "front": self.marked[begins:start],
            "back": self.marked[end:ends],
            "left": self.marked[:begins],
            "right": self.marked[ends:],
            "before": self.text_before,
            "after": self.text_after,
        }
        return {part: _ANY_NAME.sub(f" {A_NAME} ", text) for part, text in parts.items()}

    def clauses(self) -> Iterator[tuple[str, Kind]]:
        """Yield the clauses with the kind of each."""
        ends = [0, *(at for match in _CLAUSE_END.finditer(self.marked) for at in match.span()), len(self.marked)]
        for start, end in zip(ends[::2], ends[1::2], strict=True):
            yield self.marked[start:end], self.kind(start, end, least=ANY)

    @property
    def extent(self) -> tuple[int, int]:
        """The part of `marked` from the first name to the last one, or to the end after a single name."""
        names = [match.span() for match in _ANY_NAME.finditer(self.marked)]
        start = names[0][0] if names else 0
        return start, names[-1][1] if len(names) > 1 else len(self.marked)

    def after(self, person: str) -> MarkedSentence:
        """Return the sentence with its first pronoun replaced by the person just mentioned."""
        marked = named_first(self.marked, chr(_FIRST_SIGN + len(self.keys)))
        return self if marked == self.marked else replace(self, marked=marked, keys=(*self.keys, person))


def stands_in(part: Sequence[str], of: Sequence[str]) -> bool:
    """Return whether words are adjacent in others, in their order."""
    n = len(part)
    return n > 0 and any(tuple(of[at : at + n]) == tuple(part) for at in range(len(of) - n + 1))


def named_first(sentence: str, person: str) -> str:
    """Return a sentence with the pronoun that it begins with replaced by the name of a person."""
    pronoun = _PRONOUN.match(sentence)
    return sentence if pronoun is None else person + sentence[pronoun.end() :]


def sentences_of(text: str, names: Sequence[NamedPlace]) -> Iterator[MarkedSentence]:
    """Yield the sentences of a text with their names marked.

    Args:
        names: In order, without overlaps; the name of each is its key.
    """
    # Text in brackets is a sound or an aside, and a private character, such as that of an icon, is no placeholder.
    text = re.sub(_NAMED, " ", _SPOKEN_ASIDE.sub(lambda match: " " * len(match.group()), text))
    for start, end in sentence_spans(text):
        said = text[start:end]
        here = [name for name in names if start <= name.start and name.end <= end]
        marked = _marked(text, start, end, here)
        yield MarkedSentence(
            said,
            marked,
            tuple(name.name for name in here),
            is_question="?" in said[-3:],
            line=" ".join(text.split()),
            text_before=_marked(text, 0, start, [name for name in names if name.end <= start]),
            text_after=_marked(text, end, len(text), [name for name in names if end <= name.start]),
        )


def _marked(text: str, start: int, end: int, names: Sequence[NamedPlace]) -> str:
    signs: list[Put] = []
    for n, name in enumerate(names):
        owned = "'s" if text[name.start : name.end].endswith(("'s", "’s")) else ""
        signs.append(Put(name.start, name.end, chr(_FIRST_SIGN + n) + owned))
    return Text(applied(text, signs, start, end)).plain


# The patterns of the rules.

_SLOTS: Final = {
    "named": _NAMED,
    "subject": rf"(?P<s>{_NAMED}|\bI\b|\bich\b)",
    "object": rf"(?P<o>{_NAMED})",
    "few": r"(?:[\w'-]+ ){0,3}?",
    "word": r"[\w'-]+",
}


def _pattern(of: Lexicon, template: str, **more: str) -> re.Pattern[str]:
    return of.compile(template, flags=re.IGNORECASE, **_SLOTS, **more)


def _patterns(name: str, **more: str) -> tuple[re.Pattern[str], ...]:
    return tuple(_pattern(of, template, **more) for of in _BY_LANGUAGE for template in of.value(name) or ())


def _listed(name: str) -> Iterator[tuple[Lexicon, Mapping[str, Any]]]:
    """Yield the tables of a list, English ones first."""
    return ((of, each) for of in _BY_LANGUAGE for each in of.value(name) or ())


_HOLDS_NOW: Final = ("occupation", "status")
_PLEDGES: Final = frozenset({"promise", "decision", "plan"})
_MIN_WORDS: Final = 4
"""Minimum words of a sentence worth keeping."""
_MAX_VALUE_CHARS: Final = 300
_DESCRIPTIONS: Final = (("occupation", _patterns("trade_patterns")), ("status", _patterns("state_patterns")))
_OF_A_FIGHT: Final = _WORDS.compile(r"\b{of_a_fight}\b", flags=re.IGNORECASE)
"""Statements about a blow are outdated after the fight."""
_AMOUNT: Final = _WORDS.compile(r"(?:\b\d[\d,.]*|\b{number}) {coins}\b", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of a sentence that tells an attribute or a type of relation; "" if its word for a relative tells it."""

    tells: str
    pattern: re.Pattern[str]


_SAYINGS: Final = [_Form(each["about"], _pattern(of, each["pattern"])) for of, each in _listed("sayings")]
"""The most informative first: a sentence is kept once."""
FACT_KINDS: Final = tuple(dict.fromkeys(("occupation", "status", *(each.tells for each in _SAYINGS))))


def facts_in(sentence: MarkedSentence) -> list[ExtractedFact]:
    """Return facts that hold now about a named entity or the speaker."""
    found: dict[tuple[str, str], ExtractedFact] = {}
    described = (claim for claim in _described(sentence) if claim.kind is Kind.NOW)
    for claim in (*described, *_said(sentence)):
        found.setdefault((claim.subject, claim.about), claim)
    return list(found.values())


def other_kinds_in(sentence: MarkedSentence) -> list[ExtractedFact]:
    """Return what is stated, but not as holding now: a fact of each kind with the sentence."""
    now, found = set[tuple[str, str]](), dict[tuple[str, str], ExtractedFact]()
    claims: list[ExtractedFact | ExtractedRelation] = [*_related(sentence), *_described(sentence)]
    for claim in sorted(claims, key=lambda each: each.kind is not Kind.NOW):
        ends = (claim.subject, claim.about) if isinstance(claim, ExtractedFact) else (claim.source, claim.target)
        if claim.kind is Kind.NOW:
            now.add(ends)
        elif claim.kind in STORED and ends not in now:
            # The words that make it a rumour may be in another sentence.
            value = verbatim(sentence.line)
            stated = ExtractedFact(ends[0], str(claim.kind), value, (), claim.confidence, claim.kind)
            found[ends[0], claim.kind] = stated
    return list(found.values())


def least_of(about: str) -> float:
    """Return the score from which a fact of this attribute holds now."""
    return LEAST if about in _HOLDS_NOW else ANY


def fits(about: str, kind: Kind) -> bool:
    """Return whether a fact of this attribute may be of this kind. A promise may deny, and a plan is kept as one."""
    if kind is Kind.DENIED:
        return about in _PLEDGES
    return kind is Kind.NOW if about in _HOLDS_NOW else kind not in NOT_TOLD


def verbatim(sentence: str) -> str:
    """Return a sentence as a value of a fact."""
    return sentence.strip().rstrip(".;,!… ")[:_MAX_VALUE_CHARS]


FIRST_PERSON: Final = _WORDS.compile(r"\b{first_person}\b", flags=re.IGNORECASE)
PEOPLE: Final = _WORDS.compile(r"{people}\b", flags=re.IGNORECASE)


def commits_speaker(sentence: MarkedSentence, people: Collection[str], is_salient: Callable[[str], bool]) -> bool:
    """Return whether the speaker commits to something: a pledge, a price, a refusal, or a claim about itself.

    Only a pledge may name somebody else. Any other sentence about somebody else, or about the world, is none.

    Args:
        people: Keys of names of people.
        is_salient: Decides about a claim in which the rules find no fact, unless it denies something.
    """
    if sentence.is_question:
        return False
    facts = facts_in(sentence)
    about = {fact.about for fact in facts}
    if about & _PLEDGES:
        return True
    somebody = "somebody"
    if not {*people, somebody}.isdisjoint(sentence.after(somebody).keys):
        return False
    if "price" in about or _AMOUNT.search(sentence.marked):
        return True
    if sentence.told in NOT_TOLD or "discovery" in about:
        return False
    if any(fact.subject == SPEAKER for fact in facts):
        return True
    is_of_speaker = FIRST_PERSON.search(sentence.marked) is not None and PEOPLE.search(sentence.marked) is None
    return is_of_speaker and (sentence.told is Kind.DENIED or is_salient(sentence.text))


def _described(sentence: MarkedSentence) -> Iterator[ExtractedFact]:
    for about, patterns in _DESCRIPTIONS:
        for match in (match for each in patterns for match in each.finditer(sentence.marked)):
            value = occupation_in(match["v"]) if about == "occupation" else match["v"].lower()
            if value is not None:
                kind = sentence.kind(*match.span())
                yield ExtractedFact(sentence.key_of(match["s"]), about, value, (), 0.8, kind)


def _said(sentence: MarkedSentence) -> Iterator[ExtractedFact]:
    if len(sentence.text.split()) < _MIN_WORDS or _OF_A_FIGHT.search(sentence.marked):
        return
    value = verbatim(sentence.text)
    for saying in _SAYINGS:
        match = saying.pattern.search(sentence.marked)
        if match is not None and fits(saying.tells, sentence.kind(*match.span(), least=ANY)):
            subject = match.groupdict().get("s") or SPEAKER
            odds = log_odds(saying_signs(saying.tells, sentence), shipped(__package__, "sayings"))
            sure = round(1 / (1 + math.exp(-odds)), 2)
            yield ExtractedFact(sentence.key_of(subject), saying.tells, value, (), sure)
            return


def saying_signs(about: str, sentence: MarkedSentence) -> frozenset[str]:
    """Return what the model reads of a saying, see `benchmarks.sayings`."""
    spoken = _ANY_NAME.sub(f" {A_NAME} ", sentence.marked)
    return phrases(spoken, str) | {f"about {about}", f"words {len(spoken.split()) // 5}"}


KIN_BY_TYPE: Final[Mapping[str, frozenset[str]]] = _WORDS.table("kin")
_KIN: Final = {word: type_ for type_, listed in KIN_BY_TYPE.items() for word in listed}
_KIN_FORMS: Final = [
    _Form("", pattern)
    for pattern in _patterns("kin_patterns", relative=f"(?:{'|'.join(sorted(_KIN, key=len, reverse=True))})")
]
_FORMS: Final = [
    _Form(each["type"], _pattern(of, f"{{subject}}{each['between']}{{object}}{each.get('behind', '')}"))
    for of, each in _listed("relations")
]
"""The most informative first: of two matches for the same names, the first wins."""
RELATION_TYPES: Final = tuple(dict.fromkeys((*KIN_BY_TYPE, *(each.tells for each in _FORMS))))


def relations_in(sentence: MarkedSentence) -> list[ExtractedRelation]:
    """Return relations that hold now between named entities or the speaker."""
    seen: dict[frozenset[str], ExtractedRelation] = {}
    for claim in _related(sentence):
        if claim.source != claim.target and claim.kind is Kind.NOW:
            seen.setdefault(frozenset((claim.source, claim.target)), claim)
    return list(seen.values())


def _related(sentence: MarkedSentence) -> Iterator[ExtractedRelation]:
    if not sentence.keys:
        return
    for form in (*_KIN_FORMS, *_FORMS):
        for match in form.pattern.finditer(sentence.marked):
            type_ = form.tells or _KIN[match["kin"].lower()]
            source, target = sentence.key_of(match["s"]), sentence.key_of(match["o"])
            yield ExtractedRelation(source, type_, target, (), 0.8, sentence.kind(*match.span()))
