"""What small models say wrongly as an NPC, and what becomes of it. Large models need none of this.

A small model tells of the character instead of speaking as it ("Oskar nods."), speaks of it as of somebody else ("A
draught from Brunhild"), takes itself for another, gives the question back, repeats its lines, takes the question's "my"
for its own, makes up memories, overlooks what it was told, and offers its help. Where only the person is wrong, a
sentence is put right. Else it is left out.

The patterns are those that ordinary talk does not meet: what is left out wrongly is a hole in what an NPC says, what
slips through is one odd sentence. English and German; the words are data: see `glyphoxa/language/data/en/reply.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.judgement.guard import Rule
from glyphoxa.language.content import (
    FUNCTION_WORDS,
    GREETINGS,
    NEGATIONS,
    content_words,
    denies,
    spoken_words,
    straight,
)
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.sentences import sentences

_WORDS: Final = lexicon("reply")
_ANY_CASE: Final = re.IGNORECASE

# Narration and echo.

_GESTURE_ALONE: Final = _WORDS.compile(
    r"(?:{pronoun} )?(?:\w+ly )?{gestures}(?=\s*(?:[.,;!…]|$|{after_gesture}\b))", flags=_ANY_CASE
)
_ENDS: Final = re.compile(r"[.!?…][\"”“«'’)]*$")
_LEAST_ECHOED: Final = 4
"""Words. A shorter question is asked back: "And you?"."""
_QUOTED: Final = re.compile(r"[\"“„»]([^\"“”„«»]+)[\"”“«]")


class Repairs:
    """Repairs one reply of one NPC, piece by piece. Build a new one for every reply."""

    def __init__(self, character: Character, asked: Asked) -> None:
        self._names = own_names(character.name, character.others)
        called = _one_of(_longest_first({*self._names, *character.aliases}))
        self._acts = _WORDS.compile(r"{called} (?:\w+ly )?{acts}\b", flags=_ANY_CASE, called=called)
        self._asked = asked
        self._question = " ".join(spoken_words(asked.question))
        self._is_narrating = False

    def judge(self, said: str) -> Verdict:
        """Return what may be said of the next piece of the reply."""
        if self._is_narrating or self._acts.match(said) or _GESTURE_ALONE.match(said):
            self._is_narrating = not _ENDS.search(said)
            return _quoted(said)
        if self._echoes(said):
            return Verdict(fault=Fault.ECHO)
        return Verdict(with_its_owner(in_first_person(said, self._names), self._asked))

    def _echoes(self, said: str) -> bool:
        if not said.endswith("?"):
            return False  # an answer may well begin with words of its question
        given_back = spoken_words(said)
        return len(given_back) >= _LEAST_ECHOED and f" {self._question} ".endswith(f" {' '.join(given_back)} ")


def _quoted(narrated: str) -> Verdict:
    """Return what is spoken within a sentence that tells who speaks it."""
    spoken = " ".join(found.group(1).strip() for found in _QUOTED.finditer(narrated))
    return Verdict(spoken) if spoken else Verdict(fault=Fault.NARRATED)


_TITLES: Final = _WORDS.words("titles")


def own_names(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return what of an NPC's name is nobody else's, the longest first."""
    taken = {word for other in others for word in other.casefold().split()} | _TITLES
    parts = [part for part in name.split() if part[:1].isupper() and len(part) > 2 and part.casefold() not in taken]
    return _longest_first({name, *parts})


def _longest_first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=len, reverse=True))


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"


# An NPC that speaks of itself by name, put into the first person: only what can be put there word by word. A sentence
# that says I already is left alone ("They call me Brunhild").


_BY_LANGUAGE: Final = [lexicon("reply", language) for language in ("en", "de")]
_ENGLISH, _GERMAN = (
    {f"{verb}s": verb for verb in of.words("regular_verbs")}
    | {verb: verb for verb in of.words("unchanged_verbs")}
    | of.value("first_person")
    for of in _BY_LANGUAGE
)
"""Verbs of the third person, with the first."""
_OF_BOTH: Final = _ENGLISH.keys() & _GERMAN.keys()
"""Verbs that are English unless something else is German."""
_INVERTED: Final = [(pattern, instead) for of in _BY_LANGUAGE for pattern, instead in of.value("inverted")]
_SHOWS_ENGLISH, _SHOWS_GERMAN = (of.pattern("function_signs", flags=_ANY_CASE) for of in _BY_LANGUAGE)
_SAYS_I: Final = _WORDS.compile(r"\b{says_i}\b", flags=_ANY_CASE)


def in_first_person(sentence: str, names: Sequence[str]) -> str:
    """Return the sentence as the NPC would say it.

    Args:
        names: What it is called by, the longest first.

    >>> in_first_person("A healing draught from Brunhild costs nine silver pieces.", ["Brunhild"])
    'A healing draught from me costs nine silver pieces.'
    """
    if not names or _SAYS_I.search(straight(sentence)):
        return sentence
    own = _one_of(names)
    sentence = re.sub(rf"^{own}['’]s\b", "My", sentence)
    sentence = re.sub(rf"\b{own}['’]s\b", "my", sentence)
    sentence = _of(own, r"\b({before_me}) {own}\b(?!['’])(?! [A-ZÄÖÜ])").sub(r"\1 me", sentence)
    sentence = _of(own, r"\b{own} {herself}\b").sub("I myself", sentence)
    for pattern, instead in _INVERTED:
        sentence = re.sub(pattern.replace("{own}", own), instead, sentence)
    found = re.match(rf"{own} (\w+)\b", sentence)
    if found is None:
        return sentence
    verb, rest = found.group(1), sentence[found.end() :]
    is_german = _SHOWS_GERMAN.search(sentence) if verb in _OF_BOTH else not _SHOWS_ENGLISH.search(sentence)
    if verb in _GERMAN and is_german:
        return f"Ich {_GERMAN[verb]}{rest}"
    return f"I {_ENGLISH[verb]}{rest}" if verb in _ENGLISH else sentence


@lru_cache(maxsize=256)
def _of(own: str, template: str) -> re.Pattern[str]:
    return _WORDS.compile(template, own=own)


_SAYS_I_OR_WE: Final = _WORDS.compile(r"\b(?:{says_i}|{says_we})\b", flags=_ANY_CASE)
_NO_VERB: Final = _WORDS.words("no_verb")
"""Words after a name that is said by itself: "Brunhild is what they call me", "Brunhild, at your service"."""


def tells_of_itself(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in which the NPC speaks of itself as of somebody else. A name alone, or an "I", is no fault."""
    own = _one_of(own_names(character.name, character.others))
    if _of(own, r"\b[Ii] {knows_itself} {own}\b(?!['’]s)").search(sentence):
        return Fault.THIRD_PERSON
    if _SAYS_I_OR_WE.search(straight(sentence)):
        return None
    found = _of(own, r"{own} ({verb_forms})\b").match(sentence)
    return Fault.THIRD_PERSON if found is not None and found.group(1) not in _NO_VERB else None


# Whose a thing is, and who said it. Asked "What is my horse called?", a small model says "My horse is called Bramble."
# The words are right and the person is not. Only where the question itself says whose it is, and nothing that the NPC
# knows of itself speaks of such a thing, the sentence is put right.

_YOURS: Final = _WORDS.compile(r"\b{yours}\b", flags=_ANY_CASE)
_OWN_TOO: Final = _WORDS.words("own_too")
_NO_THING: Final = _WORDS.words("no_thing")
"""An NPC that answers with its own name has misread the question; with the other person it would say what is false."""
_MY: Final = _WORDS.compile(r"\b({my})(?= \w)", flags=_ANY_CASE)
_DID_I: Final = _WORDS.compile(r"\b{did_i}\b", flags=_ANY_CASE)
_SAID_BY_ASKER: Final = [(re.compile(p), instead) for of in _BY_LANGUAGE for p, instead in of.value("said_by_asker")]


def with_its_owner(sentence: str, asked: Asked) -> str:
    """Return the sentence with the person that the question means.

    >>> with_its_owner("My horse is called Bramble.", Asked(question="What is my horse called?"))
    'Your horse is called Bramble.'
    >>> with_its_owner("I said that she limps.", Asked(question="What did I tell you of her?"))
    'You said that she limps.'
    """
    if _DID_I.search(asked.question):
        for pattern, instead in _SAID_BY_ASKER:
            sentence = pattern.sub(instead, sentence)
    if _YOURS.search(asked.question) or not _OWN_TOO.isdisjoint(spoken_words(sentence)):
        return sentence
    # It may have a horse of its own, if it knows of one.
    own = set(spoken_words(" ".join((*asked.identity, *asked.facts))))
    theirs = {thing for found in _MY.finditer(asked.question) for thing in _behind(found)} - own - _NO_THING

    def turned(found: re.Match[str]) -> str:
        return _turned(found[1]) if not theirs.isdisjoint(_behind(found)) else found[0]

    return _MY.sub(turned, sentence)


def _behind(found: re.Match[str]) -> list[str]:
    """Return the words behind a "my": what it is about, with an adjective or without."""
    return [word for word in spoken_words(found.string[found.end() :])[:2] if word not in FUNCTION_WORDS]


def _turned(mine: str) -> str:
    yours = "your" if mine.casefold() == "my" else "dein" + mine[4:]
    return yours.capitalize() if mine[0].isupper() else yours


# An NPC that takes itself for somebody else: "My name is Tamsin." to a question of Tamsin's, or a greeting that calls
# its own name. A small model takes a name that stands in the talk for the one that is asked for. Only names of the
# campaign count: what else an NPC is called its author knows.


def takes_itself_for_another(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in which the NPC has another name, or greets itself. A piece goes on with those before it."""
    said = f"{asked.so_far} {sentence}".strip()
    at = len(said) - len(sentence)
    called = {*own_names(character.name, character.others), character.name, *character.aliases}
    others = _names((*character.others, asked.speaker_name), not_of=" ".join(called))
    patterns = [_greets(_longest_first(called))]
    if others and not sentence.rstrip().endswith("?"):
        patterns.append(_says_to_be(others))
    is_new = any(found.end() > at for pattern in patterns for found in pattern.finditer(said))
    return Fault.IDENTITY if is_new else None


@lru_cache(maxsize=64)
def _names(others: tuple[str, ...], *, not_of: str) -> tuple[str, ...]:
    """Return what others are called, whole and by each of their names, the longest first."""
    own = set(not_of.casefold().split())
    found = {name for one in others for name in (one, *one.split()) if name[:1].isupper() and len(name) > 2}
    return _longest_first(name for name in found if own.isdisjoint(name.casefold().split()))


@lru_cache(maxsize=64)
def _says_to_be(names: tuple[str, ...]) -> re.Pattern[str]:
    # Behind "I am" the name must be all that is said: "I am Tamsin's friend" says something else.
    return _WORDS.compile(
        r"\b(?i:{my_name_is}) {name}\b(?!['’])"
        r"|(?<!\w)(?i:{i_am}) {name}\b(?=\s*(?:[.,;:!…–—-]|$|{name_ends}\b))",
        name=_one_of(names),
    )


@lru_cache(maxsize=64)
def _greets(names: tuple[str, ...]) -> re.Pattern[str]:
    return _WORDS.compile(r"(?:^|[.!?…] )(?i:{greeting}),? (?i:(?:{dear},? )*){name}(?=[.,!?…]|$)", name=_one_of(names))


# Offers and repetitions.

_OFFERS: Final = _WORDS.pattern("offers", flags=_ANY_CASE)
_LEAST_REPEATED: Final = 3
"""Words. What is shorter is said by everybody all the time ("Aye.", "Not I."): twice running is no echo."""


def offers_help(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject an offer of help in the middle of a talk. At its beginning, or after a greeting, it is ordinary."""
    if not asked.before or not _OFFERS.search(straight(sentence)):
        return None
    greets = any(not known.isdisjoint(spoken_words(asked.question)) for known in GREETINGS.values())
    return None if greets else Fault.ASSISTANT


def repeats(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject what the NPC said just before: a small model copies its own lines from the talk.

    An answer may well be given twice: to the same question, or by the way. So a sentence is a repetition where this
    reply has it already, where the last answer had it and was given to other words, or where the last two had it.
    """
    said = _bare(sentence)
    if not said:
        return None
    if said in _bare_sentences(asked.so_far):
        return Fault.REPEATED
    questions = [question for question, reply in reversed(asked.before[-2:]) if said in _bare_sentences(reply)]
    is_last = bool(questions) and said in _bare_sentences(asked.before[-1][1])
    if len(questions) == 2 or (is_last and said.count(" ") + 1 >= _LEAST_REPEATED):
        return None if all(_is_alike(question, asked.question) for question in questions) else Fault.REPEATED
    return None


def _is_alike(question: str, other: str) -> bool:
    """Return whether two questions may have one answer: a word of meaning in common, or none in one of them."""
    words, others = content_words(question), content_words(other)
    return bool(words & others) or not (words and others)


def _bare(text: str) -> str:
    return " ".join(spoken_words(text))


def _bare_sentences(text: str) -> set[str]:
    return {_bare(sentence) for sentence in sentences(text)}


# Memory: an NPC that overlooks what it was told of just what it is asked, or tells what it does not know.

_TELLS: Final = content_words(" ".join(_WORDS.words("tells")))
"""That something was told says nothing of what."""
_DENIES_TELLING: Final = _WORDS.pattern("denies_telling", flags=_ANY_CASE)
_CLAIMS: Final = _WORDS.pattern("claims", flags=_ANY_CASE)
_OF_CLAIMS: Final = content_words(" ".join(_WORDS.words("of_claims")))
_CLAIMS_NOTHING: Final = NEGATIONS | _WORDS.words("does_not_know") | _WORDS.words("conditions")
_KEEPS: Final = _WORDS.pattern("keeps_to_itself", flags=_ANY_CASE)
_YES: Final = _WORDS.compile(r"\s*{yes}\b", flags=_ANY_CASE)
_LEAST_STATED: Final = 3
"""Words. What is shorter states nothing, unless it is a yes."""


def forgets(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject an answer without a word of what the asker told the NPC of it. A question back answers nothing."""
    if not asked.told or sentence.rstrip().endswith("?"):
        return None
    if _DENIES_TELLING.search(straight(sentence)):
        return Fault.FORGOTTEN
    if not content_words(sentence) and not denies(sentence):
        return None  # "Ah, that." leads in an answer
    return Fault.FORGOTTEN if leaves_out(f"{asked.so_far} {sentence}", asked) else None


def leaves_out(reply: str, asked: Asked) -> bool:
    """Return whether nothing of what the asker told is in a reply. What it asks back is no part of an answer."""
    new = content_words(" ".join(asked.told)) - content_words(asked.question) - _TELLS
    return bool(new) and content_words(" ".join(_without_questions(reply))).isdisjoint(new)


def unfounded(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject what the NPC does not know. A sentence that denies, or asks back, claims nothing.

    Two sentences are unfounded: one that claims to have seen, heard or been told something of which nothing in the
    prompt speaks; and, where the prompt says that the NPC knows nothing of what it is asked, one that states something
    before the NPC has said so.
    """
    if sentence.rstrip().endswith("?") or _claims_nothing(sentence):
        return None
    if _CLAIMS.search(straight(sentence)) and not _is_backed(sentence, asked):
        return Fault.UNFOUNDED
    if asked.not_known and (_says_yes_to_more(sentence, asked) or _states(sentence, asked)):
        return Fault.UNFOUNDED
    return None


def _without_questions(text: str) -> list[str]:
    return [each for each in sentences(text) if not each.endswith("?")]


def _claims_nothing(text: str) -> bool:
    return not _CLAIMS_NOTHING.isdisjoint(spoken_words(text))


def _known(asked: Asked) -> tuple[str, ...]:
    return (*set(asked.facts).difference(asked.not_known), *asked.identity)


def _is_backed(sentence: str, asked: Asked) -> bool:
    """Return whether what was said has a word of it; or what is known has two, or one that is no name."""
    said = content_words(sentence) - _OF_CLAIMS
    talk = (word for pair in asked.before for word in pair)
    heard = content_words(" ".join((*asked.remembered, *_without_questions(asked.question), *talk)))
    if not said:
        return bool(heard)
    common = said & content_words(" ".join(_known(asked)))
    names = content_words(" ".join(re.findall(r"\b[A-ZÄÖÜ]\w+", sentence)))
    return bool(said & heard) or len(common) > 1 or bool(common - names)


def _says_yes_to_more(sentence: str, asked: Asked) -> bool:
    """Return whether it says yes, and more than is known of whom the question names."""
    known = content_words(" ".join((*_known(asked), *asked.remembered)))
    return _YES.match(sentence) is not None and bool(content_words(sentence) - known - _OF_CLAIMS)


def _states(sentence: str, asked: Asked) -> bool:
    """Return whether it states something before the NPC said that it knows nothing, with nothing else in its mind."""
    has_more = asked.remembered or len(asked.facts) > len(asked.not_known)
    if has_more or asked.kept or _claims_nothing(asked.so_far) or _KEEPS.search(straight(sentence)):
        return False
    return len(spoken_words(sentence)) >= _LEAST_STATED or _YES.match(sentence) is not None


REPAIR_RULES: Final[Sequence[Rule]] = (
    tells_of_itself,
    takes_itself_for_another,
    offers_help,
    repeats,
    unfounded,
    forgets,
)
"""In this order; the first fault is the reason."""
