"""Decides on each sentence of a reply before it is spoken.

A sentence passes, is repaired, or is rejected with a reason:

    1. the safety filter cleans it                                 (`SafetyFilter`)
    2. the wording of an assistant's refusal, or of the prompt, rejects it
    3. mistakes of small models are repaired                       (`glyphoxa.judgement.small_model`)
    4. rules judge it with the question, the conversation and the NPC's prompt

Models of every size prefix their own name as in a script, describe actions, write markdown, spell out tool calls, break
character, recite the DM's directions, invent dice results and reveal secrets. None of it may reach the players.

A rule is a pure function from sentence, character and question to a `Fault` or None. It calls no model and never
waits. Repairs and their rules apply to small models only, because a wrong repair leaves a hole in a reply. The word
lists are data: see `glyphoxa/language/data/en/reply.toml`.

Nobody hears a rejected sentence. It is stored in the turn's record only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.chat.marks import TABLE
from glyphoxa.domain.turn_record import Asked, Character, Fault, Verdict
from glyphoxa.judgement.small_model import ReplyRepair
from glyphoxa.language.language_data import lexicon, primary_language
from glyphoxa.language.text import (
    GREETINGS,
    Text,
    content_of,
    is_grammatical,
    language_of,
    log_odds,
    phrases,
    shipped,
    stem_of,
    stem_of_content,
)

_WORDS: Final = lexicon("reply")

Rule = Callable[[str, Character, Asked], Fault | None]
"""Judges one piece of a reply: a sentence, or the first clause. `Asked.so_far` holds the pieces said before."""


# What a model may write beside speech. `SafetyFilter` cleans a reply piece by piece and tracks constructs that span
# pieces (see `glyphoxa.language.sentences`), such as a tool call or a stage direction.

_OUT_OF_CHARACTER: Final = _WORDS.pattern("out_of_character", flags=re.IGNORECASE)
_OWN_LABELS: Final = _WORDS.words("own_labels")
_OTHER_LABELS: Final = _WORDS.words("other_labels")
_PROMPT_LABEL: Final = _WORDS.pattern("prompt_labels", flags=re.IGNORECASE)
_SAYS: Final = _WORDS.compile(" {says}(?: {to} .*)?$")

_LABEL: Final = re.compile(r"^[\s\"“*_#>]*([^\W_][^:.,!?\n\"]{0,40}?)[*_\"”]*\s*:[*_]*(?!\d)\s*")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]*>|<\|[^<>\n]*\|>")
_LINK: Final = re.compile(r"!?\[([^\]\n]+)\]\([^()\s]+\)")
_EMPHASIS: Final = re.compile(r"\*\*([^*\n]+)\*\*|(?<!\w)__([^_\n]+)__(?!\w)|~~([^~\n]+)~~|(?<!`)`([^`\n]+)`(?!`)")
_UNDERLINED: Final = re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)")
# One or two words within a sentence are emphasis, unless they are a verb ("*sighs*", "*grinning*").
_STRESSED: Final = re.compile(r"(?<=\w )\*(?!\w+(?:s|ing)\b)(\w+(?: \w+)?)\*")
_HEAD: Final = re.compile(r"^\s*(?:#{1,6}\s+|[-*•]\s+|>\s+|\d{1,2}[.)]\s+(?=\S))")
_EMOTICON: Final = re.compile(r"(?<!\w)[:;=]['-]?[()DPp/|](?!\w)|<3\b|(?<!\w):[a-z][a-z0-9_]+:(?!\w)")
_EMOJI: Final = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2190-\u21ff\u2b00-\u2bff\ufe0f\u200d\u20e3\U000e0020-\U000e007f]"
)
_SPEAKABLE: Final = re.compile(r"[^\W_]")
_BEFORE_PUNCTUATION: Final = re.compile(r"\s+([,.!?;:…])")
_OPENING: Final = TABLE.compile(
    r"```|\*(?=\S)|{call_names}|[({\[]|<(?P<element>{call_elements})\b[^<>]*(?<!/)>", flags=re.IGNORECASE
)
_CLOSED_BY: Final = {"*": "*", "(": ")", "[": "]", "{": "}", "```": "```"}


@dataclass(slots=True)
class _Aside:
    """An unfinished passage that is not speech.

    Attributes:
        nests: Opens a nested one; empty if it cannot nest.
        patience: Pieces after which it is assumed to be a missing closer and ends.
    """

    closer: str
    nests: str
    depth: int
    patience: int


class SafetyFilter:
    """Cleans one reply of one NPC. Create a new one for every reply.

    Args:
        npc_name: The NPC that speaks. Its label ("Grimjaw:") is removed.
        others: Names of other speakers. At a label of theirs the model has begun to write another character's lines,
            and the rest of the reply is dropped.
    """

    def __init__(self, npc_name: str, *, others: Iterable[str] = ()) -> None:
        name = npc_name.casefold()
        self._own = {name, *name.split(), *_OWN_LABELS}
        self._others = {other.casefold() for other in others} - self._own
        self._others.update(_OTHER_LABELS)
        self._aside: _Aside | None = None
        self._is_over = False

    def judge(self, piece: str) -> Verdict:
        """Return the part of the next piece that may be said.

        Clean text is returned unchanged, except for surrounding and repeated white space.
        """
        if _OUT_OF_CHARACTER.search(Text.of(piece).plain):
            return Verdict(fault=Fault.ASSISTANT)
        text = "" if self._is_over else self._without_asides(_plain(piece))
        lines = [said for line in text.splitlines() if (said := self._without_label(line))]
        said = _BEFORE_PUNCTUATION.sub(r"\1", " ".join(" ".join(lines).split()))
        if _SPEAKABLE.search(said):
            return Verdict(said)
        if self._is_over:
            return Verdict(fault=Fault.LABEL)
        return Verdict(fault=Fault.NOT_SPEECH) if _SPEAKABLE.search(piece) else Verdict()

    def _without_asides(self, text: str) -> str:
        spoken: list[str] = []
        if self._aside is not None:
            self._aside.patience -= 1
            if self._aside.patience < 0:
                self._aside = None
        while text:
            if self._aside is None:
                opening = _OPENING.search(text)
                if opening is None:
                    spoken.append(text)
                    break
                spoken.append(text[: opening.start()])
                self._aside = _aside(opening)
                text = text[opening.end() :]
            else:
                text = self._skipped(self._aside, text)
        return _TAG.sub("", "".join(spoken)).replace("*", "")

    def _skipped(self, aside: _Aside, text: str) -> str:
        """Return the text after the aside, if the aside ends in this text."""
        lowered = text.lower()
        at = 0
        while at < len(text):
            if lowered.startswith(aside.closer, at):
                aside.depth -= 1
                at += len(aside.closer)
                if aside.depth == 0:
                    self._aside = None
                    return text[at:]
            else:
                aside.depth += bool(aside.nests) and lowered.startswith(aside.nests, at)
                at += 1
        return ""

    def _without_label(self, line: str) -> str:
        if self._is_over:
            return ""
        found = _LABEL.match(line)
        if found is None:
            return line
        label = _SAYS.sub("", found.group(1).strip().casefold())
        if label in self._own:
            return line[found.end() :]
        if label in self._others:
            self._is_over = True
            return ""
        return "" if _PROMPT_LABEL.fullmatch(label) else line


def _plain(piece: str) -> str:
    """Remove markup around spoken words, and characters without sound."""
    if set("*_~`[<#>:;=(-•").isdisjoint(piece) and piece.isascii() and not piece.lstrip()[:1].isdigit():
        return piece
    piece = "\n".join(_HEAD.sub("", line) for line in piece.splitlines())
    piece = _EMOTICON.sub("", _EMOJI.sub("", _LINK.sub(r"\1", piece)))
    piece = _EMPHASIS.sub(lambda found: next(group for group in found.groups() if group), piece)
    return _STRESSED.sub(r"\1", _UNDERLINED.sub(r"*\1*", piece))


def _aside(opening: re.Match[str]) -> _Aside:
    if opening["element"]:
        return _Aside(f"</{opening['element'].lower()}>", "", depth=1, patience=200)
    bracket = opening[0] if opening[0] in _CLOSED_BY else opening[0][-1]
    is_machine = bracket in ("{", "```") or len(opening[0]) > 1
    return _Aside(_CLOSED_BY[bracket], bracket if bracket in "({[" else "", depth=1, patience=50 if is_machine else 3)


# Secrets. A sentence reveals a secret if it contains most of its words, adds words of it that the question did not
# contain, or admits what a question guesses, which a fitted model decides. The answers just before count too, because a
# secret can be revealed in pieces. Public facts about the NPC and its place reveal nothing, and neither does a denial:
# but one of a small model must not add words of the secret.

_MOST: Final = 0.6
"""Share of the secret's words that reveals it."""
_ABOUT_IT: Final = 0.4
"""Share of the sentence's words that must belong to the secret, if the sentence contains two of them."""
_ONLY_IT: Final = 0.75
"""The same, if it contains one."""
_ASKS_FOR_IT: Final = 2
"""Words of the secret in a question that count as a guess."""
_ADMITS: Final = 0.5
"""Log odds of an admission. `python -m benchmarks.admissions` measures them."""
_MOST_NEW: Final = 2
_PART: Final = re.compile(r"[^.!?…]+[.!?…]*")
"""Ends at every mark, including abbreviations, so that a denial covers as few words as possible."""
_JUST_BEFORE: Final = 2
"""Previous answers that may contain a piece of the secret."""


def reveals_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that reveals or confirms one of the NPC's secrets."""
    if not (character.guards_secrets and asked.kept):
        return None
    public = content_of((character.name, *character.aliases, asked.speaker_name))
    said = _Said(
        Text.of(_stated(sentence)).content - public,
        before=content_of(map(_stated, (*(reply for _, reply in asked.before[-_JUST_BEFORE:]), asked.so_far))),
        question=Text.of(asked.question).content - public,
        loose=content_of(asked.identity),
    )
    admits = log_odds(admission_signs(asked.question, sentence), shipped(__package__, "admissions")) > _ADMITS
    for secret in asked.kept:
        kept = Text.of(secret).content - public
        if _is_revealed(said, kept) or (admits and len(said.question & kept) >= _ASKS_FOR_IT):
            return Fault.SECRET
    return None


def admission_signs(question: str, reply: str) -> frozenset[str]:
    """Return the signs of whether a reply admits what a question guesses, in which "*" is a word of the question."""
    asked, said = Text.of(question).content, Text.of(reply)

    def form(word: str) -> str:
        return "*" if stem_of(word) in asked and not is_grammatical(word) else stem_of_content(word)

    n_new, has_its_words = len(said.content - asked), not said.content.isdisjoint(asked)
    return phrases(reply, form) | {
        f"new words: {min(_MOST_NEW, n_new)}, of the question: {has_its_words}, denies: {said.denies}",
        f"asks: {reply.rstrip().endswith('?')}",
    }


def adds_to_denial(sentence: str, _character: Character, asked: Asked) -> Fault | None:
    """Reject a denial with a word of a secret that nobody said: "I never signed one for Anneke". For small models."""
    denied = Text.of(sentence).content - Text.of(_stated(sentence)).content
    talk = (text for pair in asked.before for text in pair)
    known = content_of((asked.question, *asked.identity, *asked.facts, *asked.remembered, *talk))
    return Fault.SECRET if denied & content_of(asked.kept) - known else None


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of a sentence, of the answers before it, of the question, and of public facts."""

    words: frozenset[str]
    before: frozenset[str]
    question: frozenset[str]
    loose: frozenset[str]


def _stated(text: str) -> str:
    """Return the parts that are not denials: "No. It lies under the stairs." denies and reveals."""
    return " ".join(each.strip() for each in _PART.findall(text) if not Text.of(each).denies)


def _is_revealed(said: _Said, kept: frozenset[str]) -> bool:
    shared = said.words & kept
    if not shared - said.loose:
        return False
    in_pieces = shared | (said.before & kept if shared - said.before else frozenset())
    if len(in_pieces) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said.words)
    return bool(shared - said.question - said.loose) and is_about_it


# Directions of the DM, and dice.

_DIRECTION_LABEL: Final = _WORDS.pattern("direction_label", flags=re.IGNORECASE)
_MIN_RECITED: Final = 3
"""Minimum words. A shorter match may be the NPC's own sentence."""
_ROLLED: Final = _WORDS.pattern("roll", flags=re.IGNORECASE)
_LONG_AGO: Final = _WORDS.compile(r"\b{long_ago}\b", flags=re.IGNORECASE)


def recites_direction(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that recites the DM's direction. A paraphrase passes."""
    if not asked.direction:
        return None
    direction = Text.of(asked.direction)
    is_recited = len(direction.spoken) >= _MIN_RECITED and Text.of(sentence).contains(direction)
    return Fault.OF_THE_PROMPT if is_recited or _DIRECTION_LABEL.search(sentence) else None


def claims_roll(sentence: str) -> bool:
    """Return whether a sentence claims the result of a current dice roll.

    A roll in a story about the past, or an offer or request to roll, is no claim.

    >>> claims_roll("I roll a 17, so I see it."), claims_roll("Years ago I rolled a six and won a mule.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_ROLLED.search(sentence)) and not _LONG_AGO.search(sentence)


def invented_rolls(has_rolled: Callable[[], bool]) -> Rule:
    """Return a rule for one reply that rejects dice results without a roll.

    Args:
        has_rolled: Whether a tool has answered in this reply. Called when a sentence claims a result.
    """

    def rule(sentence: str, _character: Character, _asked: Asked) -> Fault | None:
        return Fault.DICE if claims_roll(sentence) and not has_rolled() else None

    return rule


# The language of the question, and what an assistant would say.

_OF_THE_PROMPT: Final = _WORDS.pattern("of_the_prompt", flags=re.IGNORECASE)
_OPENS_REFUSAL: Final = _WORDS.compile("{opens_refusal},", flags=re.IGNORECASE)
"""A first clause that ordinary speech has as well. The next piece decides."""
_OTHER_SCRIPT: Final = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def in_another_language(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in another language than the question, for English and German.

    A sentence with too few indicative words passes. A question with too few counts as the campaign's language.
    """
    if _OTHER_SCRIPT.search(sentence) and not _OTHER_SCRIPT.search(asked.question):
        return Fault.LANGUAGE
    own = primary_language(character.language)
    spoken, wanted = language_of(sentence), language_of(asked.question, least=1) or (own if own in GREETINGS else "")
    return Fault.LANGUAGE if spoken and wanted and spoken != wanted else None


# Refusals: an assistant declines, asks for details or offers more help, in any wording.


_REFUSED: Final = 1.0
"""Score of a refusal whatever was asked. `python -m benchmarks.refusals` measures both limits."""
_REFUSED_A_FACT: Final = -0.5
"""Score of a refusal if the prompt holds a fact about the question and the sentence contains nothing of it."""


def refusal_score(sentence: str) -> float:
    """Return the log odds that an assistant words it like this, and no character: see `benchmarks/refusals.py`."""
    return log_odds(phrases(sentence), shipped(__package__, "refusals"))


def refuses(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject what may be a refusal if the NPC knows something about the question and the sentence says none of it."""
    known = Text.of(fact_about(asked)).content
    is_empty = bool(known) and known.isdisjoint(Text.of(sentence).content)
    return Fault.ASSISTANT if is_empty and refusal_score(sentence) > _REFUSED_A_FACT else None


def fact_about(asked: Asked) -> str:
    """Return the fact that shares most words with the question; empty if none does, or a direction may withhold it."""
    about = Text.of("" if asked.direction or asked.flags else asked.question).content
    facts = set(asked.facts).difference(asked.not_known)
    shared = max(sorted(facts), key=lambda fact: len(Text.of(fact).content & about), default="")
    return shared if Text.of(shared).content & about else ""


RULES: Final[Sequence[Rule]] = (reveals_secret, recites_direction, in_another_language, refuses)
"""Applied in this order before the repairs; the first fault is reported."""


class ReplyCheck:
    """Judges one reply of one NPC. Create a new one for every reply.

    Args:
        repairs: Whether mistakes of small models are repaired.
        more_rules: Applied after all others.
    """

    def __init__(
        self, character: Character, asked: Asked, *, repairs: bool = True, more_rules: Sequence[Rule] = ()
    ) -> None:
        self._character = character
        self._asked = asked
        self._safety = SafetyFilter(character.name, others=character.others)
        self._repair = ReplyRepair(character, asked) if repairs else None
        self._rules = (*RULES, *((adds_to_denial, self._repair.rejects) if self._repair else ()), *more_rules)
        self._held = ""

    def decide(self, piece: str) -> Verdict:
        """Return the part of the next piece that may be said."""
        verdict = self.clean(piece)
        if not verdict.text:
            return verdict
        for rule in self._rules:
            if (fault := rule(verdict.text, self._character, self._asked)) is not None:
                return Verdict(fault=fault)
        self._asked = replace(self._asked, so_far=f"{self._asked.so_far} {verdict.text}".strip())
        return verdict

    def clean(self, piece: str) -> Verdict:
        """Return the cleaned piece, without applying the rules.

        The possible beginning of an assistant's refusal is held until the next piece.
        """
        verdict = self._safety.judge(piece)
        if not verdict.text:
            return verdict
        if not self._held and _OPENS_REFUSAL.fullmatch(Text.of(verdict.text).plain):
            self._held = verdict.text
            return Verdict()
        said, self._held = f"{self._held} {verdict.text}".strip(), ""
        plain = Text.of(said).plain
        if refusal_score(said) > _REFUSED:
            return Verdict(fault=Fault.ASSISTANT)
        if _OF_THE_PROMPT.search(plain):
            return Verdict(fault=Fault.OF_THE_PROMPT)
        return Verdict(said) if self._repair is None else self._repair.repaired(said)
