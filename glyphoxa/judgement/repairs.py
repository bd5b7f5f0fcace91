"""Repairs or rejects typical mistakes of small models. Large models do not need this.

A small model narrates the character instead of speaking as it ("Oskar nods."), refers to it in the third person ("A
draught from Brunhild"), takes another identity, echoes the question, repeats itself, confuses "my" and "your", invents
memories, ignores what it was told, and offers assistance. A sentence with only the wrong person is corrected. Other
mistakes are dropped.

The patterns avoid ordinary speech: a false match leaves a hole in a reply, a missed one is a single odd sentence.
English and German; the word lists are data: see `glyphoxa/language/data/en/reply.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.judgement.guard import Rule
from glyphoxa.language.asking import question_of
from glyphoxa.language.lexicon import any_of, lexicon
from glyphoxa.language.new_names import names_in
from glyphoxa.language.sentence_form import only_states
from glyphoxa.language.text import FUNCTION_WORDS, GREETINGS, NEGATIONS, Text, content_of, language_of
from glyphoxa.language.titles import TITLES
from glyphoxa.language.words import fold

_WORDS: Final = lexicon("reply")
_ANY_CASE: Final = re.IGNORECASE

# Narration and echo.

_GESTURE_ALONE: Final = _WORDS.compile(
    r"(?:{pronoun} )?(?:\w+ly )?{gestures}(?=\s*(?:[.,;!…]|$|{after_gesture}\b))", flags=_ANY_CASE
)
_ENDS: Final = re.compile(r"[.!?…][\"”“«'’)]*$")
_MIN_ECHOED: Final = 4
"""Minimum words. A shorter question may be returned: "And you?"."""
_SAYS_I_DO: Final = _WORDS.compile(r"\b{says_i_do}\b", flags=_ANY_CASE)
_MIN_TAKEN: Final = 2
"""Minimum content words. One may be chance."""
_QUOTED: Final = re.compile(r"[\"“„»]([^\"“”„«»]+)[\"”“«]")


class Repairs:
    """Repairs one reply of one NPC, piece by piece. Create a new one for every reply."""

    def __init__(self, character: Character, asked: Asked) -> None:
        self._names = _own_names(character)
        self._acts = _pattern(_called(character), r"(?i:{own} (?:\w+ly )?{acts}\b)")
        self._asked = asked
        self._is_narrating = False

    def judge(self, said: str) -> Verdict:
        """Return the part of the next piece that may be said."""
        if self._is_narrating or self._acts.match(said) or _GESTURE_ALONE.match(said):
            self._is_narrating = not _ENDS.search(said)
            return _quoted(said)
        if _echoes(said, self._asked):
            return Verdict(fault=Fault.ECHO)
        return Verdict(with_correct_owner(in_first_person(said, self._names), self._asked))


def _echoes(said: str, asked: Asked) -> bool:
    """Return whether words of the asker are given back: a question, a part of a remark, or a remark said of the NPC.

    "I will bring you lemons." in reply to the same says of the NPC what the asker said of itself. A sentence that adds
    something is a reply, and so is "I sealed it." to "You sealed it.". An answer may begin with words of the question.
    """
    of_reply, of_asker, is_question = Text.of(said), Text.of(asked.question), said.rstrip().endswith("?")
    if len(of_reply.spoken) >= _MIN_ECHOED and of_asker.contains(of_reply):
        return is_question or only_states(asked.question)
    is_taken = len(of_reply.content) >= _MIN_TAKEN and of_reply.content <= of_asker.content
    return is_taken and not is_question and bool(_SAYS_I_DO.search(of_reply.plain)) and _is_remark(asked)


def _is_remark(asked: Asked) -> bool:
    return question_of(asked.question, language_of(asked.question) or "en").is_remark


def _quoted(narrated: str) -> Verdict:
    """Return the quoted speech within a narrating sentence."""
    spoken = " ".join(found.group(1).strip() for found in _QUOTED.finditer(narrated))
    return Verdict(spoken) if spoken else Verdict(fault=Fault.NARRATED)


def _own_names(character: Character) -> tuple[str, ...]:
    """Return an NPC's name and the parts of it that nobody else has."""
    return (character.name, *_names((character.name,), not_of=tuple(character.others)))


def _called(character: Character) -> tuple[str, ...]:
    """Return what an NPC is called."""
    return (*_own_names(character), *character.aliases)


@lru_cache(maxsize=64)
def _names(people: tuple[str, ...], *, not_of: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full names and name parts of people without a word of these other names."""
    taken = {word for other in not_of for word in other.casefold().split()}
    found = {name for one in people for name in (one, *one.split()) if name[:1].isupper() and len(name) > 2}
    return tuple(name for name in found if taken.isdisjoint(name.casefold().split()) and fold(name) not in TITLES)


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...], template: str) -> re.Pattern[str]:
    """Return a pattern in which `{own}` stands for one of the names."""
    return _WORDS.compile(template, own=f"(?:{any_of(names)})")


# An NPC that refers to itself by name is rewritten into the first person, if that works word by word. A sentence that
# already says "I" is left unchanged ("They call me Brunhild").


_BY_LANGUAGE: Final = [lexicon("reply", language) for language in ("en", "de")]
_ENGLISH, _GERMAN = (
    {f"{verb}s": verb for verb in of.words("regular_verbs")}
    | {verb: verb for verb in of.words("unchanged_verbs")}
    | of.value("first_person")
    for of in _BY_LANGUAGE
)
"""Maps third-person verbs to the first person."""
_AS_ITSELF: Final = [
    (r"^{own}['’]s\b", "My"),
    (r"\b{own}['’]s\b", "my"),
    (r"\b({before_me}) {own}\b(?!['’])(?! [A-ZÄÖÜ])", r"\1 me"),
    (r"\b{own} {herself}\b", "I myself"),
    *((pattern, instead) for of in _BY_LANGUAGE for pattern, instead in of.value("inverted")),
]
"""Patterns with the NPC's name, and their form in the first person."""
_SAYS_I: Final = _WORDS.compile(r"\b{says_i}\b", flags=_ANY_CASE)


def in_first_person(sentence: str, names: tuple[str, ...]) -> str:
    """Return the sentence in the first person.

    Args:
        names: The NPC's names.

    >>> in_first_person("A healing draught from Brunhild costs nine silver pieces.", ("Brunhild",))
    'A healing draught from me costs nine silver pieces.'
    """
    if not names or _SAYS_I.search(Text.of(sentence).plain):
        return sentence
    for pattern, instead in _AS_ITSELF:
        sentence = _pattern(names, pattern).sub(instead, sentence)
    found = _pattern(names, r"{own} (\w+)\b").match(sentence)
    if found is None:
        return sentence
    verb, rest = found.group(1), sentence[found.end() :]
    language = language_of(sentence, least=1) or ("en" if verb in _ENGLISH else "de")
    if verb in _GERMAN and language == "de":
        return f"Ich {_GERMAN[verb]}{rest}"
    return f"I {_ENGLISH[verb]}{rest}" if verb in _ENGLISH else sentence


_SAYS_I_OR_WE: Final = _WORDS.compile(r"\b(?:{says_i}|{says_we})\b", flags=_ANY_CASE)
_NO_VERB: Final = _WORDS.words("no_verb")
"""Words after a name used as a name: "Brunhild is what they call me", "Brunhild, at your service"."""


def speaks_in_third_person(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in which the NPC refers to itself in the third person. A lone name or an "I" is allowed."""
    own = _own_names(character)
    if _pattern(own, r"\b[Ii] {knows_itself} {own}\b(?!['’]s)").search(sentence):
        return Fault.THIRD_PERSON
    if _SAYS_I_OR_WE.search(Text.of(sentence).plain):
        return None
    found = _pattern(own, r"{own} ({verb_forms})\b").match(sentence)
    return Fault.THIRD_PERSON if found is not None and found.group(1) not in _NO_VERB else None


# Owner and speaker. Asked "What is my horse called?", a small model says "My horse is called Bramble." The sentence is
# corrected only if the question itself names the owner and nothing that the NPC knows mentions such a possession.

_YOURS: Final = _WORDS.compile(r"\b{yours}\b", flags=_ANY_CASE)
_OWN_TOO: Final = _WORDS.words("own_too")
_NO_THING: Final = _WORDS.words("no_thing")
"""A reply with the NPC's own name misread the question. Changing the person would make it false."""
_MY: Final = _WORDS.compile(r"\b({my})(?= \w)", flags=_ANY_CASE)
_DID_I: Final = _WORDS.compile(r"\b{did_i}\b", flags=_ANY_CASE)
_SAID_BY_ASKER: Final = [(re.compile(p), instead) for of in _BY_LANGUAGE for p, instead in of.value("said_by_asker")]


def with_correct_owner(sentence: str, asked: Asked) -> str:
    """Return the sentence with the person that the question implies.

    >>> with_correct_owner("My horse is called Bramble.", Asked(question="What is my horse called?"))
    'Your horse is called Bramble.'
    >>> with_correct_owner("I said that she limps.", Asked(question="What did I tell you of her?"))
    'You said that she limps.'
    """
    if _DID_I.search(asked.question):
        for pattern, instead in _SAID_BY_ASKER:
            sentence = pattern.sub(instead, sentence)
    if _YOURS.search(asked.question) or not _OWN_TOO.isdisjoint(Text.of(sentence).spoken):
        return sentence
    # The NPC may own one too, if its facts mention it.
    own = set(Text.of(" ".join((*asked.identity, *asked.facts))).spoken)
    theirs = {thing for found in _MY.finditer(asked.question) for thing in _words_after(found)} - own - _NO_THING

    def turned(found: re.Match[str]) -> str:
        return _as_yours(found[1]) if not theirs.isdisjoint(_words_after(found)) else found[0]

    return _MY.sub(turned, sentence)


def _words_after(found: re.Match[str]) -> list[str]:
    """Return the words after a "my": the possession, with or without an adjective."""
    return [word for word in Text.of(found.string[found.end() :]).spoken[:2] if word not in FUNCTION_WORDS]


def _as_yours(mine: str) -> str:
    yours = "your" if mine.casefold() == "my" else "dein" + mine[4:]
    return yours.capitalize() if mine[0].isupper() else yours


# An NPC with a wrong identity: "My name is Tamsin." in reply to Tamsin, or a greeting that addresses itself. A small
# model confuses names in the conversation. Only names of the campaign count, because its author may use others.

_SAYS_TO_BE: Final = (
    r"\b(?i:{my_name_is}) {own}\b(?!['’])|(?<!\w)(?i:{i_am}) {own}\b(?=\s*(?:[.,;:!…–—-]|$|{name_ends}\b))"
)
"""After "I am", nothing may follow the name: "I am Tamsin's friend" is allowed."""
_GREETS: Final = r"(?:^|[.!?…] )(?i:{greeting}),? (?i:(?:{dear},? )*){own}(?=[.,!?…]|$)"


def claims_other_identity(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in which the NPC claims another name or greets itself, across pieces of the reply."""
    said = f"{asked.so_far} {sentence}".strip()
    at = len(said) - len(sentence)
    called = _called(character)
    others = _names((*character.others, asked.speaker_name), not_of=called)
    patterns = [_pattern(called, _GREETS)]
    if others and not sentence.rstrip().endswith("?"):
        patterns.append(_pattern(others, _SAYS_TO_BE))
    is_new = any(found.end() > at for pattern in patterns for found in pattern.finditer(said))
    return Fault.IDENTITY if is_new else None


# What is not the NPC's own: a denial of nothing, and the content of an example.

_BARE_DENIAL: Final = _WORDS.compile(r"\W*{bare_denial}\W*", flags=_ANY_CASE)


def denies_unasked(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a bare denial ("I did not.") in reply to a remark that does not speak of the NPC."""
    return Fault.UNFOUNDED if _BARE_DENIAL.fullmatch(Text.of(sentence).plain) and _is_remark(asked) else None


def from_an_example(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence whose new words are all from one example, or that names somebody who is only in an example."""
    if not asked.examples:
        return None
    talk = (word for pair in asked.before for word in pair)
    known = (asked.question, asked.speaker_name, asked.persona, *asked.identity, *asked.facts, *asked.remembered)
    new = Text.of(sentence).content - content_of((*known, *asked.kept, *asked.told, *talk, character.name))
    if not new:
        return None
    named = content_of(names_in(sentence, language=character.language))
    for example in asked.examples:
        shown = Text.of(example).content
        if (len(new) >= _MIN_TAKEN and new <= shown) or named & new & shown:
            return Fault.OF_THE_PROMPT
    return None


# Offers and repetitions.

_OFFERS: Final = _WORDS.pattern("offers", flags=_ANY_CASE)
_MIN_REPEATED: Final = 3
"""Minimum words. Shorter phrases are common ("Aye.", "Not I.") and may repeat."""


def offers_help(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject an offer of help in mid-conversation. At the beginning or after a greeting it is ordinary."""
    if not asked.before or not _OFFERS.search(Text.of(sentence).plain):
        return None
    greets = any(not known.isdisjoint(Text.of(asked.question).spoken) for known in GREETINGS.values())
    return None if greets else Fault.ASSISTANT


def repeats(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence that the NPC just said, because small models copy their own lines.

    A sentence repeats if it is already in this reply, if the last answer to a different question had it, or if the
    last two answers had it. The same question may get the same answer.
    """
    said = Text.of(sentence).spoken
    if not said:
        return None
    if said in _bare_sentences(asked.so_far):
        return Fault.REPEATED
    questions = [question for question, reply in reversed(asked.before[-2:]) if said in _bare_sentences(reply)]
    is_last = bool(questions) and said in _bare_sentences(asked.before[-1][1])
    if len(questions) == 2 or (is_last and len(said) >= _MIN_REPEATED):
        return None if all(_is_alike(question, asked.question) for question in questions) else Fault.REPEATED
    return None


def _is_alike(question: str, other: str) -> bool:
    """Return whether two questions may share an answer: a common content word, or one without any."""
    words, others = Text.of(question).content, Text.of(other).content
    return bool(words & others) or not (words and others)


def _bare_sentences(text: str) -> set[tuple[str, ...]]:
    return {Text.of(sentence).spoken for sentence in Text.of(text).sentences}


# Memory: an NPC that ignores what it was told about the question, or states what it does not know.

_DENIES_TELLING: Final = _WORDS.pattern("denies_telling", flags=_ANY_CASE)
_CLAIMS: Final = _WORDS.pattern("claims", flags=_ANY_CASE)
_OF_CLAIMS: Final = content_of(_WORDS.words("of_claims"))
"""Words that report what was told or seen, without its content."""
_CLAIMS_NOTHING: Final = NEGATIONS | _WORDS.words("does_not_know") | _WORDS.words("conditions")
_KEEPS: Final = _WORDS.pattern("keeps_to_itself", flags=_ANY_CASE)
_YES: Final = _WORDS.compile(r"\s*{yes}\b", flags=_ANY_CASE)
_MIN_STATED: Final = 3
"""Minimum words of a statement, unless it is a yes."""


def forgets(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject an answer without any word that the asker told the NPC about it. A counter-question is no answer."""
    if not asked.told or sentence.rstrip().endswith("?"):
        return None
    if _DENIES_TELLING.search(Text.of(sentence).plain):
        return Fault.FORGOTTEN
    if not Text.of(sentence).content and not Text.of(sentence).denies:
        return None  # "Ah, that." introduces an answer
    return Fault.FORGOTTEN if leaves_out(f"{asked.so_far} {sentence}", asked) else None


def leaves_out(reply: str, asked: Asked) -> bool:
    """Return whether a reply, without its questions, contains nothing that the asker told."""
    new = content_of(asked.told) - Text.of(asked.question).content - _OF_CLAIMS
    return bool(new) and content_of(_without_questions(reply)).isdisjoint(new)


def unfounded(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a claim without source. Denials and questions claim nothing.

    A sentence is unfounded if it claims to have seen, heard or been told something that the prompt does not mention.
    If the prompt says that the NPC knows nothing about the question, any statement before it says so is unfounded.
    """
    if sentence.rstrip().endswith("?") or _claims_nothing(sentence):
        return None
    if _CLAIMS.search(Text.of(sentence).plain) and not _is_backed(sentence, asked):
        return Fault.UNFOUNDED
    if asked.not_known and (_says_yes_to_more(sentence, asked) or _states(sentence, asked)):
        return Fault.UNFOUNDED
    return None


def only_calls(reply: str, asked: Asked) -> bool:
    """Return whether a reply contains nothing but the asker's name."""
    return set(Text.of(reply).spoken) <= set(Text.of(asked.speaker_name).spoken)


def _without_questions(text: str) -> list[str]:
    return [each for each in Text.of(text).sentences if not each.endswith("?")]


def _claims_nothing(text: str) -> bool:
    return not _CLAIMS_NOTHING.isdisjoint(Text.of(text).spoken)


def _known(asked: Asked) -> tuple[str, ...]:
    return (*set(asked.facts).difference(asked.not_known), *asked.identity)


def _is_backed(sentence: str, asked: Asked) -> bool:
    """Return whether the conversation shares a word with it, or the facts two, or one that is not a name."""
    said = Text.of(sentence).content - _OF_CLAIMS
    talk = (word for pair in asked.before for word in pair)
    heard = content_of((*asked.remembered, *_without_questions(asked.question), *talk))
    if not said:
        return bool(heard)
    common = said & content_of(_known(asked))
    names = content_of(word.text for word in Text.of(sentence).words if word.is_capital)
    return bool(said & heard) or len(common) > 1 or bool(common - names)


def _says_yes_to_more(sentence: str, asked: Asked) -> bool:
    """Return whether it says yes and adds more than is known about the people in the question."""
    known = content_of((*_known(asked), *asked.remembered))
    return _YES.match(sentence) is not None and bool(Text.of(sentence).content - known - _OF_CLAIMS)


def _states(sentence: str, asked: Asked) -> bool:
    """Return whether it states something before denying knowledge, with nothing else in the prompt to state."""
    has_more = asked.remembered or len(asked.facts) > len(asked.not_known)
    if has_more or asked.kept or _claims_nothing(asked.so_far) or _KEEPS.search(Text.of(sentence).plain):
        return False
    return len(Text.of(sentence).spoken) >= _MIN_STATED or _YES.match(sentence) is not None


REPAIR_RULES: Final[Sequence[Rule]] = (
    speaks_in_third_person,
    claims_other_identity,
    denies_unasked,
    from_an_example,
    offers_help,
    repeats,
    unfounded,
    forgets,
)
"""Applied in this order; the first fault is reported."""
