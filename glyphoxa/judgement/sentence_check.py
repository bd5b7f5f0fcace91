"""The one decision on each sentence of a reply, before the voice has it.

A sentence is passed, put right or rejected with its reason. `InCharacter` cleans what is written wrongly and finds what
shows in the sentence alone; the rules find what shows only beside the question, the talk before it and what the NPC
had in mind. A rule is a pure function: a sentence and `Asked` in, a `Fault` or None out. It reads words, so it takes
microseconds; it asks no model and never waits.

What is rejected is heard by nobody: it stands in the turn's record, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.guard import tells_a_secret
from glyphoxa.judgement.in_character import InCharacter, takes_itself_for_another, tells_of_itself, with_its_owner
from glyphoxa.judgement.reply import (
    GREETINGS,
    NEGATIONS,
    Asked,
    Character,
    Verdict,
    content_words,
    in_another_language,
    words,
)

# An NPC that recites what the DM directed it to do: a small model reads an instruction out as if it were a line.


_LABEL: Final = re.compile(r"\bfor this answer\b", re.IGNORECASE)
_LEAST_RECITED: Final = 3
"""Words. What is shorter may well be a sentence of its own."""


def recites_direction(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. What the DM wants said in the NPC's own words passes."""
    if not asked.direction:
        return None
    direction = _plain(asked.direction)
    is_recited = direction.count(" ") + 1 >= _LEAST_RECITED and f" {direction} " in f" {_plain(sentence)} "
    return Fault.OF_THE_PROMPT if is_recited or _LABEL.search(sentence) else None


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


# An NPC that says again what it said: a small model copies its own lines from the talk.
#
# An answer may well be given twice: to the same question, or by the way. So a sentence is a repetition where the last
# answer had it and was given to other words, or where the last two answers had it, or where this reply has it already.


_LEAST_REPEATED: Final = 3
"""Words. What is shorter is said by everybody all the time ("Aye.", "Not I."): twice running is no echo."""
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")


def repeats(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    said = _echo_plain(sentence)
    if not said:
        return None
    if said in _sentences(asked.so_far):
        return Fault.REPEATED
    answers = [(question, _sentences(reply)) for question, reply in asked.before[-2:]]
    if len(answers) == 2 and all(said in sentences for _, sentences in answers):
        return None if all(_is_alike(question, asked.question) for question, _ in answers) else Fault.REPEATED
    if answers and said in answers[-1][1] and said.count(" ") + 1 >= _LEAST_REPEATED:
        return None if _is_alike(answers[-1][0], asked.question) else Fault.REPEATED
    return None


def _is_alike(question: str, other: str) -> bool:
    """Whether two questions may have one answer: they share a word that says something, or one of them has none."""
    words, others = content_words(question), content_words(other)
    return bool(words & others) or not (words and others)


def _sentences(text: str) -> set[str]:
    return {plain for found in _SENTENCE.findall(text) if (plain := _echo_plain(found))}


def _echo_plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


# An NPC that does not say what it was told of just what it is asked: a small model overlooks the line in its prompt.
#
# Where the asker has told it, an answer has a word of that beyond the question's. Who asks back answers nothing.


_TELLS: Final = content_words("told tell said say mentioned gesagt erzählt sagtest")
"""Who says that it was told says nothing of what."""
_DENIES: Final = re.compile(
    r"\byou (?:never|have never|have not|haven't|did not|didn't) (?:tell|told|say|said|mention|mentioned)\b"
    r"|\b(?:nobody|no one) (?:has )?(?:ever )?told me\b|\bi (?:have )?never heard\b"
    r"|\bdu hast (?:mir )?(?:\w+ ){0,3}(?:nie|nicht|nichts)\b.*\b(?:gesagt|erzählt)\b|\bniemand hat mir\b"
)
_ASKED: Final = re.compile(r"[^.!?…]*\?")


def forgets(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not asked.told or sentence.rstrip().endswith("?"):
        return None
    if _DENIES.search(sentence.casefold().replace("’", "'")):
        return Fault.FORGOTTEN
    if not content_words(sentence) and NEGATIONS.isdisjoint(words(sentence)):
        return None  # "Ah, that." leads in an answer
    return Fault.FORGOTTEN if leaves_out(f"{asked.so_far} {sentence}", asked) else None


def leaves_out(reply: str, asked: Asked) -> bool:
    """Whether nothing of what the asker told is in a reply. What it asks back is no part of an answer."""
    new = content_words(" ".join(asked.told)) - content_words(asked.question) - _TELLS
    return bool(new) and content_words(_ASKED.sub(" ", reply)).isdisjoint(new)


# An NPC that offers its help in the middle of a talk, as assistants do at the end of an answer.
#
# Who has just been greeted, or is spoken to for the first time, may well ask what it can do.


_OFFERS: Final = re.compile(
    r"\bhow (?:can|may|could) i (?:help|assist|serve)\b|\bwie (?:kann|darf|könnte) ich (?:\w+ )?(?:helfen|dienen)\b"
    r"|\bi (?:can|could|will|'d be \w+ to) (?:help|assist)(?: you)? with (?:that|this)\b"
    r"|\b(?:dabei|damit) (?:kann|könnte) ich (?:dir |ihnen |euch )?(?:gern\w* )?(?:helfen|behilflich sein)\b",
    re.IGNORECASE,
)


def offers_help(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not asked.before or not _OFFERS.search(sentence):
        return None
    greets = any(not known.isdisjoint(words(asked.question)) for known in GREETINGS.values())
    return None if greets else Fault.ASSISTANT


# An NPC that tells what it does not know: a small model that is asked answers as if it did.
#
# Two sentences are unfounded. One that claims to have seen, heard or been told something of which nothing in the prompt
# speaks. And, where the prompt says that the NPC knows nothing of what it is asked, one that states something before
# the NPC has said so. A sentence that denies, or asks back, claims nothing.


_WHOM: Final = r"(?:him|her|them|you|your|that|it|about|of|from|the (?:man|woman|boy|girl))\b"
_CLAIMS: Final = re.compile(
    r"\b(?:told|tells|informed|warned|asked|promised|showed|gave) me\b|\b(?:was|were|been) told\b"
    rf"|\bi (?:have |had |did |once |just |only |also )*(?:saw|seen|see|heard|met|meet) {_WHOM}"
    r"|\bi(?:'ve| have| had)? (?:once |just |only |also )*(?:spoke|spoken|talked) (?:to|with)\b"
    r"|\bi know (?:him|her|them)\b|\bi (?:do |still |well )*(?:remember|recall)\b"
    r"|\bi(?:'ve| have| had)? (?:once |just |only |also |already )*(?:promised|swore|sworn|agreed)\b"
    r"|\byou(?:'ve| have| had)? (?:once |also )?(?:told|said|mentioned|promised|gave|asked)\b"
    r"|\b(?:hat|haben) (?:\w+ ){0,2}mir\b|\b(?:hat|haben) es mir\b|\bmir (?:\w+ ){0,3}(?:erzählt|gesagt|berichtet)\b"
    r"|\b(?:erzählte|sagte|berichtete|zeigte|versprach)\w* (?:es )?mir\b"
    r"|\bich (?:habe|hab|hatte) (?:\w+ ){0,5}(?:gesehen|gehört|getroffen|gesprochen|erfahren)\b"
    r"|\bich (?:sah|hörte|traf|kenne) (?:ihn|sie|dein\w*)\b|\bich erinnere mich\b"
    r"|\bich (?:habe|hab|hatte) (?:\w+ ){0,5}(?:versprochen|geschworen|zugesagt)\b|\bich (?:versprach|schwor)\b"
    r"|\bdu (?:hast|hattest) (?:\w+ ){0,4}(?:gesagt|erzählt|versprochen|erwähnt)\b",
)
_SAYS_WORDS: Final = "told tell tells said say saw seen see heard hear met meet remember recall spoke talked"
_SAGT_WORDS: Final = (
    "promised swore sworn agreed gave geschworen zugesagt erzählt gesagt gesehen gehört getroffen erinnere gesprochen "
    "versprochen ja yes aye dear friend"
)
_OF_CLAIMS: Final = content_words(f"{_SAYS_WORDS} {_SAGT_WORDS}")
_IN_CASE: Final = frozenset(("if", "unless", "whether", "wenn", "falls", "ob"))
_UNKNOWN: Final = "unknown forgot forgotten forget doubt stranger mistaken wrong"
_UNBEKANNT: Final = "unbekannt vergessen fremd irrst neu unmöglich"
_NOT_KNOWN: Final = frozenset(f"{_UNKNOWN} {_UNBEKANNT}".split())
_KEEPS: Final = re.compile(
    r"\bmy (?:own )?secrets?\b|\b(?:nobody's|none of your|my own) business\b"
    r"|\bmeine? geheimnis\w*|\bgeht (?:nur |dich |niemanden )",
)
"""Who keeps to itself states nothing."""
_LEAST_STATED: Final = 3
"""Words. What is shorter states nothing, unless it is a yes."""
_YES: Final = re.compile(r"(?:yes|aye|yea|yeah|indeed|of course|ja|jawohl|gewiss|natürlich)\b")
_UNFOUNDED_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")


def unfounded(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if sentence.rstrip().endswith("?") or _denies(sentence):
        return None
    if _claims(sentence) and not _is_backed(sentence, asked):
        return Fault.UNFOUNDED
    if asked.not_known and _says_yes_to_more(sentence, asked):
        return Fault.UNFOUNDED
    return Fault.UNFOUNDED if asked.not_known and _states(sentence, asked) else None


def _denies(sentence: str) -> bool:
    return not (NEGATIONS | _NOT_KNOWN | _IN_CASE).isdisjoint(words(sentence))


def _claims(sentence: str) -> bool:
    return _CLAIMS.search(" ".join(sentence.casefold().replace("’", "'").split())) is not None


def _is_backed(sentence: str, asked: Asked) -> bool:
    """Whether what was said, here or earlier, has a word of it; or what is known has two, or one that is no name."""
    said = content_words(sentence) - _OF_CLAIMS
    stated = [each for each in _UNFOUNDED_SENTENCE.findall(asked.question) if not each.endswith("?")]
    heard = content_words(" ".join((*asked.remembered, *stated, *(word for pair in asked.before for word in pair))))
    if not said:
        return bool(heard)
    known = content_words(" ".join((*set(asked.facts) - set(asked.not_known), *asked.identity)))
    common = said & known
    names = content_words(" ".join(re.findall(r"\b[A-ZÄÖÜ]\w+", sentence)))
    return bool(said & heard) or len(common) > 1 or bool(common - names)


def _says_yes_to_more(sentence: str, asked: Asked) -> bool:
    """Whether it says yes, and more than is known of whom the question names."""
    if not _YES.match(sentence.casefold().strip()):
        return False
    known = content_words(" ".join((*set(asked.facts) - set(asked.not_known), *asked.remembered, *asked.identity)))
    return bool(content_words(sentence) - known - _OF_CLAIMS)


def _states(sentence: str, asked: Asked) -> bool:
    """Whether it states something before the NPC has said that it knows nothing, and nothing else is in its mind."""
    has_more = asked.remembered or len(asked.facts) > len(asked.not_known)
    if has_more or asked.kept or _denies(asked.so_far):
        return False
    if _KEEPS.search(sentence.casefold().replace("’", "'")):
        return False
    spoken = words(sentence)
    return len(spoken) >= _LEAST_STATED or _YES.match(sentence.casefold().strip()) is not None


Rule = Callable[[str, Character, Asked], Fault | None]
"""On one piece of a reply: a sentence, or the first clause of the first one. `Asked.so_far` holds the pieces said."""

RULES: Final[Sequence[Rule]] = (
    tells_a_secret,
    recites_direction,
    in_another_language,
    tells_of_itself,
    takes_itself_for_another,
    offers_help,
    repeats,
    unfounded,
    forgets,
)
"""In this order; the first fault is the reason."""


class SentenceCheck:
    """Of one reply of one NPC. Build a new one for every reply."""

    def __init__(self, character: Character, asked: Asked, *, rules: Sequence[Rule] = RULES) -> None:
        self._character = character
        self._asked = asked
        self._rules = rules
        self._in_character = InCharacter(
            character.name, others=character.others, aliases=character.aliases, asked=asked.question
        )

    def decide(self, piece: str) -> Verdict:
        """What may be said of the next piece."""
        verdict = self._in_character.judge(piece)
        if not verdict.text:
            return verdict
        verdict = Verdict(with_its_owner(verdict.text, self._asked))
        for rule in self._rules:
            if (fault := rule(verdict.text, self._character, self._asked)) is not None:
                return Verdict(fault=fault)
        self._asked = replace(self._asked, so_far=f"{self._asked.so_far} {verdict.text}".strip())
        return verdict


# A result of dice in an NPC's mouth: the table plays by it, so nobody may make one up.
#
# A sentence claims a result when it tells of a roll that is being made, with a number or as a success. What was rolled
# long ago is a story, and who offers or asks for a roll claims nothing.


_EN_NUMBER: Final = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|(?:double )?(?:ones|sixes))"
)
_DE_NUMBER: Final = (
    r"(?:\d+|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|dreizehn|vierzehn|fünfzehn|sechzehn"
    r"|siebzehn|achtzehn|neunzehn|zwanzig)"
)
_ENDS: Final = r"(?=\s*(?:[.,;:!)…]|$|(?:for|to|on|with|so|and|which|that|plus|in|against)\b))"
"""What is counted is no barrels."""
_ROLLED: Final = re.compile(
    rf"\b(?:roll(?:s|ed)?|rolling)\b(?! of\b)(?: \w+){{0,4}}[ :]+(?:an? |the )?(?:natural |nat )?{_EN_NUMBER}{_ENDS}"
    rf"|\b(?:dice|die|d\d+)\b(?: \w+){{0,3}} (?:shows?|says?|reads?|lands? on|comes? up|gives?|landed on|came up)"
    rf"(?: \w+)? {_EN_NUMBER}\b"
    r"|\b(?:natural|nat) (?:1|20|one|twenty)\b"
    rf"|\broll (?:is|was|gives|makes)(?: \w+)? {_EN_NUMBER}\b"
    rf"|\b{_DE_NUMBER} gewürfelt\b"
    rf"|\b(?:würfle|würfele|würfelt)\b(?: \w+){{0,3}} {_DE_NUMBER}\b(?!\s*(?:würfel|mal|w\d+)\b)"
    rf"|\bwürfel\b(?: \w+)? (?:zeigt|zeigen|sagt|fällt auf|ergibt|ergeben)(?: \w+)? {_DE_NUMBER}\b"
    r"|\bnatürliche (?:1|20|eins|zwanzig)\b|\bwurf (?:ist|war|ergibt)(?: \w+)? "
    rf"{_DE_NUMBER}\b",
    re.IGNORECASE,
)
_LONG_AGO: Final = re.compile(
    r"\b(?:ago|once|yesterday|last (?:night|week|month|year|winter|summer)|years|used to|in those days"
    r"|as a (?:boy|girl)|gestern|früher|damals|einst|einmal|letzte[nsr]?"
    r"|vor \w+ (?:jahren|tagen|wochen|monaten)|als (?:kind|junge))\b",
    re.IGNORECASE,
)


def claims_a_roll(sentence: str) -> bool:
    """Whether it claims a result.

    >>> claims_a_roll("I roll a 17, so I see it."), claims_a_roll("Years ago I rolled a six and won a mule.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_ROLLED.search(sentence)) and not _LONG_AGO.search(sentence)


def made_up_rolls(has_rolled: Callable[[], bool]) -> Callable[[str, Character, Asked], Fault | None]:
    """The rule of one reply.

    Args:
        has_rolled: Whether a tool has answered in this reply; asked when a sentence claims a result.
    """

    def rule(sentence: str, _character: Character, _asked: Asked) -> Fault | None:
        return Fault.DICE if claims_a_roll(sentence) and not has_rolled() else None

    return rule
