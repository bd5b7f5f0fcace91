"""Whether a question asks for what somebody knows, remembers, was told or saw, and which names are in it (English and
German).

It is asked with every question, and of words alone: what is found wrongly costs an NPC a shrug, what is missed lets a
small model invent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from glyphoxa.language.vocabulary import UNLISTED, Vocabulary, primary_language, vocabulary_of
from glyphoxa.language.words import fold, words


def asks_for_memory(question: str, *, language: str) -> bool:
    """Whether it asks what is remembered, or what nobody can know who was not told: also as a claim that waits for a
    yes, "You owe me three crowns, don't you?". False in other languages.
    """
    plain, of = _plain(question), primary_language(language)
    return any(found is not None and found.search(plain) for found in (_MEMORY.get(of), _CLAIMED.get(of)))


def asks_for_more(question: str, *, language: str) -> bool:
    """Whether it takes something for granted or asks for a yes or no: "Why did she ...?", "Is it true that ...?"."""
    found = _MORE.get(primary_language(language))
    return found is not None and question.rstrip().endswith("?") and found.match(_plain(question)) is not None


def asks_why(question: str, *, language: str) -> bool:
    """Whether it takes what it asks the reason or the beginning of for granted. False in other languages."""
    found = _WHY.get(primary_language(language))
    return found is not None and found.match(_plain(question)) is not None


def asks_of_acts(question: str, *, language: str) -> bool:
    """Whether it asks what somebody did, said or saw, which nobody knows of himself: "What did I tell you?", "Have you
    seen ...?". False in other languages.
    """
    found = _ACTS.get(primary_language(language))
    is_act = found is not None and found.search(_plain(question)) is not None
    return is_act or asks_of_perception(question, language=language)


def asks_of_perception(question: str, *, language: str) -> bool:
    """Whether it asks what the NPC saw, heard or found, or whom it met. False in other languages."""
    found = _PERCEPTION.get(primary_language(language))
    return found is not None and found.search(_plain(question)) is not None


def asks_of_the_past(question: str, *, language: str) -> bool:
    """Whether it takes something that was for granted, or asks for a yes or no of it. False in other languages."""
    found = _WAS.get(primary_language(language))
    return found is not None and found.match(_plain(question)) is not None


def wants_to_be_told(question: str, *, language: str) -> bool:
    """Whether it asks without a question mark: "Tell me of ..."."""
    found = _TELL.get(primary_language(language))
    return found is not None and found.search(_plain(question)) is not None


def speaks_of_the_asker(question: str, *, language: str) -> bool:
    """Whether it is about who asks it, which "Tell me ..." is not. False in other languages."""
    found = _ASKER.get(primary_language(language))
    return found is not None and found.search(_TELL_ME.sub(" ", _plain(question))) is not None


def names_in(question: str, *, language: str) -> list[str]:
    """What is written as a name within a sentence, in order. None in other languages.

    >>> names_in("What did Lady Ambrose say of the Tower of Ashur on Monday?", language="en")
    ['Lady Ambrose', 'Tower of Ashur']
    >>> names_in("Was hat Ritter Gottwin am Montag zu meinem Bruder gesagt?", language="de")
    ['Ritter Gottwin']
    """
    find = _NAMES.get(primary_language(language))
    return [] if find is None else list(dict.fromkeys(find(question)))


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


_MEMORY: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"\b(?:do|did|have|has|don't|didn't|haven't|had) (?:you|he|she|they)(?: \w+)? "
        r"(?:know|remember|recall|hear|heard|see|seen|meet|met|spoken|notice|noticed|last see)\b"
        r"|\b(?:did|have|had) (?:i|we)(?: \w+)? (?:tell|told|say|said|mention\w*|promised?|agreed?|talk\w*"
        r"|spoken?|show\w*"
        r"|giv\w+|ask\w*|order\w*|find|found)\b"
        r"|\b(?:tell|told|tells|say|says|said|showed|shown|sold|gave|give)(?: to)? (?:you|me) (?:about|of|that)\b"
        r"|^(?:\w+, )?(?:did|has|have|had|was|were) (?!(?:you|your|it|that|this|there|everything|all)\b)"
        r".*\b(?:you|your|me|my|us|our|here)\b"
        r"|\b(?:say|said|hear|heard|told you|tell you|know) (?:to you )?(?:of|about)\b|\bremember\b|\bsecrets?\b"
        r"|^(?:\w+, )?(?:what|where|when|who|whom|which|whose|why|how)\b(?!.*\b(?:can|could|may|should|must"
        r"|shall) (?:i|we)\b)"
        r"(?!.*\bdo (?:i|we) (?:find|get|go|reach|need|pay|have|owe you for)\b).*\b(?:i|my|our|me|we|mine)\b"
    ),
    "de": re.compile(
        r"\b(?:weisst|kennst|erinnerst|wisst|kennt|erinnert) (?:du|ihr|sie)\b"
        r"|\b(?:hast|habt|hat|haben) (?:du|ihr|er|sie|man)\b.*\b(?:gehört|gesehen|getroffen|bemerkt|erfahren"
        r"|gesprochen)\b"
        r"|\b(?:habe|hab|haben|hatte) (?:ich|wir)\b.*\b(?:gesagt|erzählt|versprochen|gesprochen|besprochen"
        r"|gezeigt|gegeben"
        r"|bestellt|gefunden|gebeten|erwähnt|geschenkt)\b"
        r"|\b(?:dir|euch|mir)\b.*\b(?:erzählt|gesagt|berichtet|verraten|gezeigt|gestanden)\b"
        r"|\berzähl\w* mir (?:von|über)\b"
        r"|^(?:\w+, )?(?:hat|haben|hatte|ist|war|waren) (?!(?:du|dein|deine|es|das|dies|alles)\b)"
        r".*\b(?:dir|dich|dein\w*|euch|mir|mich|mein\w*|uns|unser\w*|hier)\b"
        r"|\büber (?:mich|uns|ihn|sie)\b.*\b(?:gesagt|erzählt)\b|\bgeheimnis\w*|\berinner\w*"
        r"|^(?:\w+, )?(?:was|wo|wohin|woher|wann|wer|wen|wem|wessen|welche\w*|warum|wie|woran|wovon|wovor"
        r"|worüber|womit)\b"
        r"(?!.*\b(?:kann|könnte|darf|soll|sollte|muss|finde|komme|bekomme|kriege) (?:ich|wir)\b)"
        r".*\b(?:ich|mein\w*|unser\w*|mir|mich|wir|uns)\b"
    ),
}
_CLAIMED: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"^(?!.*\b(?:should|shall|can|could|will|would|must|may|let's|need)\b).*\b(?:i|me|my|mine|we|us|our)\b.*"
        r", (?:right|remember|correct|(?:do|did|have|has|is|was|are|were|does)(?:n't)? (?:you|he|she|they|it|i|we))\?$"
    ),
    "de": re.compile(
        r"^(?!.*\b(?:soll\w*|kann|könn\w*|werd\w*|wird|will|woll\w*|muss|müss\w*|darf|dürf\w*|brauch\w*)\b)"
        r".*\b(?:ich|mir|mich|mein\w*|wir|uns|unser\w*)\b.*"
        r", (?:nicht wahr|oder(?: nicht| etwa nicht)?|richtig|stimmt's|stimmt das|gell|nicht)\?$"
    ),
}
_MORE: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(r"(?:[\w ]+, )?(?:why|since when|is it true|is|are|was|were|did|does|has|have|had)\b"),
    "de": re.compile(
        r"(?:[\w ]+, )?(?:warum|wieso|weshalb|seit wann|stimmt|ist|sind|war|waren|hat|haben|hatte|hatten)\b"
    ),
}

_ACTS: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"\b(?:did|have|had) (?:i|we)\b"
        r"|\b(?:i|we) (?:have |had |'ve )?(?:told|said|gave|given|showed|shown|paid|promised|ordered|asked|mentioned)\b"
    ),
    "de": re.compile(
        r"\b(?:habe|hab|hatte) ich\b|\b(?:haben|hatten) wir\b|\bich\b.*\b(?:habe|hab|hatte)\b"
        r"|\b(?:ich|wir)\b.*\b(?:sagten?|erzählten?|gaben?|zahlten?|versprach|bestellten?|wollten?)\b"
    ),
}
_PERCEPTION: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"\b(?:did|have) you(?: (?:ever|also|just|really|once))? (?:see|seen|hear|heard(?! (?:of|about))|meet|met"
        r"|find|found|notice|noticed)\b(?! (?:of|about))"
    ),
    "de": re.compile(r"\b(?:hast|habt) (?:du|ihr)\b(?!.*\bvon\b).*\b(?:gesehen|gehört|getroffen|gefunden|bemerkt)\b"),
}
_WAS: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(
        r"(?:[\w ]+, )?(?:why (?:did|has|have|had|was|were)|since when|is it true|did|has|have|had|was|were)\b"
    ),
    "de": re.compile(
        r"(?:[\w ]+, )?(?:(?:warum|wieso|weshalb) (?:hat|haben|hast|ist|sind|war|waren)|seit wann|stimmt|hat|haben"
        r"|hatte|hatten|war|waren)\b"
    ),
}

_WHY: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(r"(?:[\w ]+, )?(?:why did|why has|why have|why was|why were|since when)\b"),
    "de": re.compile(r"(?:[\w ]+, )?(?:(?:warum|wieso|weshalb) (?:hat|haben|hast|ist|sind|war|waren)|seit wann)\b"),
}

_ASKER: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(r"\b(?:i|my|our|me|we|us|mine)\b"),
    "de": re.compile(r"\b(?:ich|mein\w*|unser\w*|mir|mich|wir|uns)\b"),
}

_TELL: Final[Mapping[str, re.Pattern[str]]] = {
    "en": re.compile(r"\b(?:tell|show) (?:me|us) (?:about|of|what|where|when|who|why|how)\b"),
    "de": re.compile(r"\b(?:erzähl|sag|verrat)\w* (?:mir|uns),? (?:von|über|was|wo|wann|wer|warum|wie)\b"),
}
_TELL_ME: Final = re.compile(r"\b(?:tell|show) (?:me|us)\b|\b(?:erzähl|sag|verrat|zeig)\w* (?:mir|uns)\b")

_ENGLISH_NAME: Final = re.compile(
    r"(?<=[a-z,;:'’] )[A-Z][\w'’]+(?: (?:of (?:the |Saint )?|the )?[A-Z][\w'’]+)*(?<!['’]s)"
)
_WEEK: Final = "monday tuesday wednesday thursday friday saturday sunday"
_YEAR: Final = "january february march april may june july august september october november december"
_CALLED: Final = "god gods sir madam lord lady english german"
_NO_NAMES: Final = frozenset(f"{_WEEK} {_YEAR} {_CALLED}".split())
_GERMAN_WORD: Final = re.compile(r"[^\W\d_]+|[.!?:]")
_WITH_ARTICLE: Final = re.compile(
    r"(?:der|die|das|den|dem|des|am|im|zum|zur|vom|beim|ins|ans|(?:k|m|d|s)?ein\w{0,2}|unser\w{0,2}|euer|eure\w?"
    r"|ihr\w{0,2}|welche\w?|diese\w?|jede\w?|alle\w?|viele?|zwei|drei)"
)
_ADJECTIVE: Final = re.compile(r"\w{2,}e[nrsm]?")
_STYLED: Final = "frau herr herrn ritter graf gräfin bruder schwester doktor bischof kapitän meister vetter"
_TITLES: Final = frozenset(_STYLED.split())


def _english(question: str) -> Iterator[str]:
    for found in _ENGLISH_NAME.finditer(question):
        name = re.sub(r"['’]s?$", "", found.group())
        if name.casefold() not in _NO_NAMES:
            yield name


def _german(question: str) -> Iterator[str]:
    """Nouns have capitals too: a name is one that no dictionary lists, and that has no article. Adjectives have none:
    one that has a capital is part of a name ("die Rote Hand").
    """
    vocabulary = vocabulary_of("de")
    before, title, adjective = ".", "", ""
    for word in _GERMAN_WORD.findall(question):
        is_begin = before in ".!?:" or not word[0].isupper()
        folded = fold(word)
        if title and word[0].isupper():
            yield f"{title} {word}"
        elif adjective and word[0].isupper():
            yield f"{adjective} {word}"
        elif not is_begin and word.casefold() not in _TITLES and not _WITH_ARTICLE.fullmatch(before.casefold()):
            listed = min(vocabulary.rarity(folded), vocabulary.proper.get(folded, UNLISTED))
            if listed == UNLISTED:
                yield word
        title = word if word.casefold() in _TITLES and word[0].isupper() else ""
        adjective = word if not is_begin and _is_adjective(folded, vocabulary) else ""
        before = word


def _is_adjective(folded: str, vocabulary: Vocabulary) -> bool:
    """By its ending, and listed with a small letter but as no noun."""
    return (
        _ADJECTIVE.fullmatch(folded) is not None
        and folded not in vocabulary.stop
        and vocabulary.rarity(folded) < UNLISTED
        and vocabulary.proper.get(folded, UNLISTED) == UNLISTED
    )


_NAMES: Final[Mapping[str, Callable[[str], Iterator[str]]]] = {"en": _english, "de": _german}


# Whether a sentence refers to the past (English and German).
#
# Every partial transcript is asked, so that recall can start before the speaker has finished.


_PAST: Mapping[str, tuple[str, ...]] = {
    "en": (
        "ago", "anymore", "back then", "before today", "called back", "did i tell", "did we", "did you ever",
        "earlier", "forget", "forgot", "forgotten", "i told you", "in the past", "last evening", "last month",
        "last night", "last session", "last time", "last week", "last year", "long ago", "once told",
        "previous", "previously", "promised", "recall", "recently", "remember", "remembered", "remembers", "remind",
        "reminds", "since then", "that time", "the other day", "the other night", "these days", "used to",
        "we met", "we spoke", "we talked", "what happened", "when i was", "when we were", "yesterday", "you mentioned",
        "you promised", "you said", "you told",
    ),
    "de": (
        "damals", "darüber gesprochen", "erinnere", "erinnern", "erinnerst", "erinnert", "früher", "gestern",
        "hast du gesagt", "hattest du gesagt", "kürzlich", "letzte nacht", "letzte woche", "letztens", "letztes jahr",
        "letztes mal", "letzten monat", "letzten abend", "neulich", "seinerzeit", "seit damals", "vergessen",
        "versprochen", "vor einem jahr", "vor einer woche", "vor jahren", "vor kurzem", "vor langer zeit", "vor tagen",
        "vor wochen", "voriges mal", "vorher", "vorhin", "vorige woche", "weißt du noch", "wisst ihr noch",
        "was ist passiert", "wir uns getroffen",
    ),
}  # fmt: skip


def speaks_of_the_past(text: str, *, language: str) -> bool:
    """Whether a text refers to something that was before."""
    phrases = _phrases_of(primary_language(language))
    spoken = [word.full for word in words(text)]
    return any(
        tuple(spoken[at : at + len(parts)]) == parts
        for at, word in enumerate(spoken)
        for parts in phrases.get(word, ())
    )


@cache
def _phrases_of(language: str) -> Mapping[str, list[tuple[str, ...]]]:
    """By their first word."""
    phrases: dict[str, list[tuple[str, ...]]] = {}
    for phrase in _PAST.get(language, _PAST["en"]):
        parts = tuple(word.full for word in words(phrase))
        phrases.setdefault(parts[0], []).append(parts)
    return phrases


# Verbs whose past is another word: who asks "What did I steal?" looks for "I stole an apple".


_ENGLISH: Final = """
bear bore borne|beat beaten|become became|begin began begun|bend bent|bind bound|bite bit bitten|bleed bled
blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught
choose chose chosen|cling clung|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|fight fought|flee fled
fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
give gave given|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt
know knew known|lead led|leave left|lend lent|lose lost|make made|mean meant|meet met
mistake mistook mistaken|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said
see saw seen|seek sought|sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sleep slept|slide slid|speak spoke spoken|spend spent
spin spun|stand stood|steal stole stolen|stick stuck|sting stung|strike struck|swear swore sworn|sweep swept
swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told|think thought
throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
wind wound|withdraw withdrew withdrawn|write wrote written
"""


def _forms(table: str) -> Mapping[str, str]:
    verbs = (verb.split() for line in table.split("\n") for verb in line.split("|"))
    return {form: verb[0] for verb in verbs if verb for form in verb[1:]}


IRREGULAR: Final[Mapping[str, Mapping[str, str]]] = {"en": _forms(_ENGLISH)}
"""By language: forms that a stemmer does not know, each with its verb. Forms that are words of their own ("left",
"wound", "bore", "found") stand for the verb as well: both the question and the talk have them so.
"""
