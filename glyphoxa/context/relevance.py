"""Which recalled talk is worth its place in a prompt.

Recall always finds something; a small model is better off with nothing than with what does not bear on the
question, and every sentence costs time before the first word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from glyphoxa.context.conversation import asks_what_it_said
from glyphoxa.context.wording import Wording, wording
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import (
    ANSWERING,
    RecalledFact,
    RecalledSummary,
    RecalledTalk,
    RecalledUtterance,
    Signal,
    is_own_utterance,
)
from glyphoxa.language.asking import (
    IRREGULAR,
    asks_for_memory,
    asks_for_more,
    asks_of_acts,
    asks_of_perception,
    asks_of_the_past,
    asks_why,
    names_in,
    speaks_of_the_asker,
    wants_to_be_told,
)
from glyphoxa.language.content import language_of
from glyphoxa.language.vocabulary import primary_language, vocabulary_of
from glyphoxa.language.words import fold
from glyphoxa.recall.ranking import BY_WORDS

VAGUE = frozenset(
    {"about", "anything", "away", "come", "dear", "else", "evening", "everything", "friend", "give", "good", "hello"}
    | {"know", "known", "like", "look", "make", "morning", "much", "need", "night", "nothing", "people", "please"}
    | {"remember", "said", "sorry", "some", "something", "take", "tell", "thank", "thanks", "that", "them", "there"}
    | {"they", "thing", "things", "think", "this", "told", "want", "well", "what", "when", "where", "will", "with"}
    | {"would", "your", "have", "been", "were", "does", "from", "here", "just", "more", "then", "than", "very"}
)
"""Words that are in every talk and are about nothing."""
_LITTLE_WORDS: Final = (
    "the and you are was had has not but for his her him its our out off all any how who why can did may yes too now "
    "get got let see say new one two old way day use ask try put own far few don won isn ain der die das den dem des "
    "ein ist und ich mir mich dir dich ihr ihm ihn sie wir uns war hat man was wer wie wen wem von vom zum zur aus bei "
    "mit auf für nur nie noch mal gut tag ort ich bin hab sag gib ins ans nun tun tut ihn"
)
_LITTLE: Final = frozenset(_LITTLE_WORDS.split())
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
TELLING_WORDS = 2
"""A line with fewer ("Good evening, Korvald.") tells nothing."""
NEAR = 0.45
"""Cosine from which MiniLM's sentences are about the same thing without sharing a word."""
RELATED = 0.25
"""Cosine below which a shared word is chance. True hits are often as low (0.25 to 0.45)."""
TIGHT_TOKENS = 120
"""A budget that is meant for a small model, which takes up whatever it is given."""
_LEAST_TIGHT, _LEAST = 0.75, 0.5
"""Score of what is told besides what is near by itself, against the best of the same question. On five conversations of
LoCoMo 55 % of the questions find evidence in 90 tokens so, and 94 % in 1,500; with nothing but what is near by itself
49 and 72 %: answers seldom repeat the words of their question. Without a least score it is no more, in more lines.
"""
_LEAST_ASKED = 3
"""Telling words of what asks for more than it says itself; or a name. "Pass me the salt, please" has two."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w'’-]+")
_FITS_THE_TIME = BY_WORDS[Signal.TIME] / 2
"""Half of what the ranking gives where the time of the question fits."""


def worth_telling(
    question: str, said: Sequence[RecalledTalk], *, npc: NpcId, tokens: int, asks_of_the_past: bool = False
) -> list[RecalledTalk]:
    """What of past talk may stand in a prompt, in the order of `said`.

    What bears on the question by itself, wherever it ranks, and if that is among the best, the other best too: what
    ranks beside it belongs to it, such as an answer. Nothing, if nothing bears on it: something is always the best, and
    who asks for the salt is not told of old times: what hardly asks brings nothing but what is near.

    Args:
        said: Best first.
        tokens: Of the budget. In a tight one questions, what the NPC said itself, and what tells nothing and answers
            nothing have to bear on the question by themselves.
    """
    is_tight = tokens <= TIGHT_TOKENS
    least = _LEAST_TIGHT if is_tight else _LEAST
    near = [
        one
        for one in said
        if bears_on(question, one, npc=npc, asks_of_the_past=asks_of_the_past)
        or _is_of_the_time(one, asks_of_the_past=asks_of_the_past)
    ]
    if not any(one.score >= least for one in near) or _is_small_talk(question):
        return near
    is_near = {id(one) for one in near}
    return [
        one for one in said if id(one) in is_near or (one.score >= least and (not is_tight or _stands_beside(one, npc)))
    ]


def _is_small_talk(question: str) -> bool:
    return len(telling_words(question)) < _LEAST_ASKED and not _NAME.search(question)


def _is_of_the_time(one: RecalledTalk, *, asks_of_the_past: bool) -> bool:
    """What happened last week is told by what was said then: it has no word of "last week" in it."""
    if isinstance(one, RecalledSummary) or Signal.RECAP in one.signals:
        return True
    fits = Signal.THEN in one.signals or (asks_of_the_past and one.signals.get(Signal.TIME, 0.0) >= _FITS_THE_TIME)
    return fits and len(telling_words(one.text)) >= TELLING_WORDS


def _stands_beside(one: RecalledTalk, npc: NpcId) -> bool:
    """Whether it may be told for what is told with it."""
    if isinstance(one, RecalledSummary) or one.text.rstrip().endswith("?") or is_own_utterance(one, npc):
        return False
    answers = any(one.signals.get(signal, 0.0) > 0 for signal in ANSWERING)
    return answers or len(telling_words(one.text)) >= TELLING_WORDS


def bears_on(question: str, recalled: RecalledTalk, *, npc: NpcId, asks_of_the_past: bool = False) -> bool:
    """Whether past talk is near enough in meaning or words.

    What the NPC said itself must share a word: its own "I do not know" is near to every question. A question somebody
    asked before tells nothing, unless it is the past that is asked about, and not the same question. A summary is not
    compared: it is asked for, or it is not there.
    """
    if isinstance(recalled, RecalledSummary):
        return False
    telling = telling_words(recalled.text)
    if recalled.text.rstrip().endswith("?") and (not asks_of_the_past or telling <= telling_words(question)):
        return False
    if len(telling) < TELLING_WORDS:
        return False
    n_shared = len(telling & telling_words(question))
    if is_own_utterance(recalled, npc):
        return n_shared >= 1
    similarity = recalled.similarity
    if similarity is None:
        # The embedding was late, or this is too new to have one: words alone decide.
        return n_shared >= 1
    return similarity >= NEAR or (similarity >= RELATED and n_shared >= 1)


@lru_cache(maxsize=1_024)  # of the same question and the same talk with each partial transcript
def telling_words(text: str) -> frozenset[str]:
    """The words of a line that are about something: not `VAGUE`, and four letters or more, or three if they are not
    among the `_LITTLE`; by their beginnings, so that "smiths" is "smith".
    """
    return frozenset(word[:5] for word in _WORD.findall(text.casefold()) if word not in VAGUE and word not in _LITTLE)


_CALL: Final = "\0"
"""Where somebody was called."""


def without_call(question: str, name: str) -> str:
    """The question without the name it is called by: a name everybody says with every question tells nothing. Of a name
    of several words each calls, too, where it stands apart.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    >>> without_call("Where did my father fall, Ulric?", "Father Ulric")
    'Where did my father fall?'
    """
    left = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _CALL, question, flags=re.IGNORECASE)
    for part in map(re.escape, name.split()):
        left = re.sub(rf"^\s*{part}(?=\s*[,.:;!])|(?<=,)\s*{part}(?=[.?!]*\s*$)", _CALL, left, flags=re.IGNORECASE)
    left = re.sub(rf"^\s*{_CALL}[\s,.:;!?]*|,?\s*{_CALL}(?=[.?!])", "", left)
    left = re.sub(rf"[\s,]*{_CALL}[\s,]*", " ", left)
    return " ".join(left.split())


# What a line is about, in the shortest forms of its words.
#
# Names, words that ask and words of time are not counted: everything has them.


_ENGLISH: Final = (
    "happen recall remember hear heard mention promise speak spoke talk where which whose true swore meet met"
)
_OF_TIME: Final = (
    "yesterday today tonight tomorrow last year week month night evening morning day ago time once ever always again "
    "still now recently lately"
)
_GERMAN: Final = (
    "weiss kennst kennt erinnerst gesagt erzähl erzählt gehört gesehen getroffen wohin woher welche warum wisst noch "
    "über habe hast etwas nicht stimmt mein meine meinen deine euer unser unsere meiner meinem deiner seiner geschehen"
)
_VON_ZEIT: Final = (
    "gestern heute morgen jahr woche monat nacht nachts abend tag letzte letzten letztes mal zeit früher immer wieder "
    "schon zuletzt jetzt damals"
)
_ENDINGS: Final = ("ies", "ied", "ing", "ed", "es", "en", "er", "em", "est", "st", "te", "e", "s", "n", "t", "y")
_STEM: Final = 5
_SHORTEST: Final = 3
_COMPOUND: Final = 5
"""Letters of a word that is found at the end of another: "Kessel" in "Kupferkessel"."""
_TOPIC_WORDS_WORD: Final = re.compile(r"[^\W\d_]{3,}")


def _stem(word: str) -> str:
    while True:
        shorter = (word.removesuffix(end) for end in _ENDINGS if word.endswith(end))
        short = next((each for each in shorter if len(each) >= _SHORTEST), word)
        if short == word:
            return word[:_STEM]
        word = short


_NOTHING: Final = frozenset(
    _stem(fold(word)) for word in " ".join((_ENGLISH, _OF_TIME, _GERMAN, _VON_ZEIT, *VAGUE)).split()
)
"""What asks, and says nothing of what for."""


class TopicWords:
    """The words of a text that say what it is about.

    Args:
        language: Of the text, as a tag.
    """

    def __init__(self, text: str, language: str) -> None:
        self.language = primary_language(language)
        stop, verbs = vocabulary_of(language).stop, IRREGULAR.get(self.language, {})
        folded = [
            verbs.get(word, word)
            for word in (fold(found) for found in _TOPIC_WORDS_WORD.findall(text))
            if word not in stop
        ]
        self._by_stem = {_stem(word): word for word in folded if _stem(word) not in _NOTHING}

    def __sub__(self, other: TopicWords) -> TopicWords:
        left = TopicWords("", self.language)
        left._by_stem = {stem: word for stem, word in self._by_stem.items() if stem not in other._by_stem}
        return left

    def __bool__(self) -> bool:
        return bool(self._by_stem)

    def __len__(self) -> int:
        return len(self._by_stem)

    def n_in(self, other: TopicWords) -> int:
        """How many of its words another text has, also as the end of a longer one."""
        others = other._by_stem
        return sum(
            stem in others or any(_is_part(word, each) for each in others.values())
            for stem, word in self._by_stem.items()
        )


def _is_part(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMPOUND and len(long) > len(short) and long.endswith(short)


# Whether something that an NPC has in mind is about what it is asked.
#
# By words, in their shortest forms, of which the question and a line have one in common. Names, words that ask and
# words of time are not counted: everything has them. Of what was said, meaning counts as well, in the language that
# the embeddings were made for.


_EMBEDDED: Final = "en"
_WE: Final = re.compile(r"\b(?:we|our|us|wir|unser\w*|uns)\b")
_OF_ME: Final = re.compile(r"\b(?:about|of|to) me\b|\b(?:über|von|zu) m(?:ich|ir)\b")
_SWORN: Final = re.compile(r"promise|swor|vowed|versproch|geschwor")
_QUOTED: Final = re.compile(r"'([^']+)'")


@dataclass(frozen=True, slots=True)
class InMind:
    """What the prompt holds.

    Attributes:
        name: The NPC's.
        facts: What it knows that the question calls for.
        remembered: What was said before.
        talk: What was said in the talk that the prompt holds, the question aside, and what happened before it.
        beside: What it knows of itself, and where it is.
        asker: Who asks; empty if that is not known.
        is_known: Whether it has heard a name.
    """

    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[RecalledTalk]
    talk: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]
    asker: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        told = (line for one in self.remembered for line in (getattr(one, "speaker_name", ""), one.text))
        return (*(fact.text for fact in self.facts), *told, *self.talk, *self.beside)


def bears(asked: str, mind: InMind, names: Sequence[str], *, language: str) -> bool:
    """Whether something in the prompt is about what is asked, beyond whom it names."""
    if any("asks for" in fact.path for fact in mind.facts):
        return True
    said = [one for one in mind.remembered if not _is_anothers(one, asked, mind, language)]
    if any(isinstance(one, RecalledSummary) for one in said):
        return True
    named = (found for fact in mind.facts for found in _QUOTED.findall(fact.path))
    about = TopicWords(asked, language) - TopicWords(" ".join((*names, *named)), language)
    own = [one for one in said if _is_own(one, mind)]
    if asks_what_it_said(asked, language=language):
        if not _WE.search(asked.casefold()):
            said = own
        sworn = [line for line in mind.beside if _SWORN.search(line.casefold())]
        return (
            _is_near(about, said) or _is_in(about, (*mind.talk, *sworn)) or (not about and bool((*mind.talk, *sworn)))
        )
    acts = asks_of_acts(asked, language=language)
    is_open = not acts and not asks_of_the_past(asked, language=language)
    if is_open and not _OF_ME.search(asked.casefold()) and any(_names(one, names) for one in said):
        return True
    if not about:
        if asks_of_perception(asked, language=language):  # what others told is nothing that it saw
            return any(mind.name in fact.text for fact in mind.facts)
        of_facts = bool(mind.facts) and not speaks_of_the_asker(asked, language=language)
        return bool(said) or of_facts or (acts and bool(mind.talk))
    beside = () if acts else mind.beside
    return _is_near(about, said) or _is_in(about, (*(fact.text for fact in mind.facts), *mind.talk, *beside))


def _is_own(one: RecalledTalk, mind: InMind) -> bool:
    return isinstance(one, RecalledUtterance) and (one.is_own or one.speaker_name == mind.name)


def _names(one: RecalledTalk, names: Sequence[str]) -> bool:
    return any(name.split()[-1] in one.text for name in names)


def _is_anothers(one: RecalledTalk, asked: str, mind: InMind, language: str) -> bool:
    """Whether it is what somebody else said of himself, where the asker asks about himself alone."""
    if not mind.asker or isinstance(one, RecalledSummary) or _is_own(one, mind) or one.speaker_name == mind.asker:
        return False
    if _WE.search(asked.casefold()) or not speaks_of_the_asker(asked, language=language):
        return False
    tells_of_himself = speaks_of_the_asker(one.text, language=language)
    return tells_of_himself and not any(part in one.text for part in mind.asker.split())


def _is_in(about: TopicWords, lines: Iterable[str]) -> bool:
    return any(about.n_in(TopicWords(line, about.language)) for line in lines)


def _is_near(about: TopicWords, said: Sequence[RecalledTalk]) -> bool:
    if not about:
        return bool(said)
    return _is_in(about, (one.text for one in said)) or any(_means(one, about.language) for one in said)


def _means(one: RecalledTalk, language: str) -> bool:
    similarity = getattr(one, "similarity", None)
    return language == _EMBEDDED and similarity is not None and similarity >= NEAR


# What who asks has said itself of just what it asks, in the words of an answer.
#
# A small model that has the line in front of it may still answer with something else, or that it knows nothing. What
# the asker told is the surest thing an NPC can say, so the answer is made without a model, for where the model's will
# not do.


_SHARED: Final = 2
_NAMING: Final = "name named names called call heißt heissen heißen namens genannt nennt"
"""Who tells of a brother Joren need not say that he is called so."""
_WISH: Final = re.compile(
    r"\b(?:i|we) (?:want|need|would like|wish|hope|am looking|are looking)\b|\b(?:i|we)'d like\b|\bplease\b|\bcan i\b"
    r"|\b(?:ich|wir) (?:will|wollen|brauche\w*|möchte\w*|hätte\w* gern|suche\w*|hoffe\w*)\b|\bbitte\b"
)
_WISHED: Final = re.compile(r"\b(?:want|need|wish|hope|looking for|will|brauche\w*|möchte\w*|suche\w*|hoffe\w*)\b")
_TO_THE_NPC: Final = re.compile(r"\b(?:you|your|yours|du|dich|dir|dein\w*|ihr|euch|euer|eure\w*)\b")
_SAYS_WHO: Final = re.compile(r"(?:I|My|We|Our|The|A|An|There|It|He|She|They)\b")
_CHANGED: Final = (
    "i'm you're|i am you are|i was you were|i've you've|i'll you'll|i'd you'd|am i are you|was i were you|i you|my your"
    "|mine yours|me you|myself yourself|we're you're|we've you've|we'll you'll|we'd you'd|we you|our your"
    "|ours yours|us you"
)
_YOURS: Final = {
    " ".join(said[: len(said) // 2]): " ".join(said[len(said) // 2 :])
    for said in (change.split() for change in _CHANGED.split("|"))
}
_OURS: Final = re.compile(r"\b(?:" + "|".join(sorted(_YOURS, key=len, reverse=True)) + r")\b", re.IGNORECASE)


def told_before(question: str, said: Sequence[RecalledTalk], asker: str, *, language: str) -> tuple[str, ...]:
    """Sentences with which the NPC answers from what the asker told it, the best first. None where the question is not
    for what the asker said of itself.

    Args:
        said: What is recalled for the question.
        asker: The name of who asks; empty if that is not known.
        language: The campaign's.
    """
    spoken = language_of(question) or primary_language(language)
    if not asker or spoken != primary_language(language) or asks_what_it_said(question, language=spoken):
        return ()
    if not (asks_for_memory(question, language=spoken) and speaks_of_the_asker(question, language=spoken)):
        return ()
    about = TopicWords(question, spoken) - TopicWords(_NAMING, spoken)
    asks_for_a_wish = _WISHED.search(question.casefold()) is not None
    found = [
        one.text
        for one in said
        if isinstance(one, RecalledUtterance)
        and one.speaker_name == asker
        and _tells_of(one.text, about)
        and (asks_for_a_wish or not _WISH.search(one.text.casefold()))
    ]
    return tuple(_as_answer(text, spoken) for text in found)


def _tells_of(text: str, about: TopicWords) -> bool:
    """Whether it states something of what is asked, and more than the question itself says."""
    if text.rstrip().endswith("?"):
        return False
    has = TopicWords(text, about.language)
    shared = about.n_in(has)
    return bool(shared) and shared >= min(_SHARED, len(about)) and len(has) > shared


def _as_answer(text: str, language: str) -> str:
    told = text.strip()
    if language != "en" or _TO_THE_NPC.search(told.casefold()):
        return wording(language).you_said.format(what=told)
    if _SAYS_WHO.match(told) and not told.startswith("I"):
        told = told[:1].lower() + told[1:]
    return wording(language).you_told.format(what=_OURS.sub(_yours, told))


def _yours(found: re.Match[str]) -> str:
    yours = _YOURS[found[0].casefold()]
    opens = found.string[: found.start()].rstrip().endswith((".", "!", "?"))
    return yours.capitalize() if opens else yours


# What a prompt says where memory is silent.
#
# A small model that is asked about something answers as if it knew. So where a question asks for what an NPC remembers,
# was told or saw, and nothing in its prompt bears on that, the prompt says so, in the form of a fact; and a name that
# the NPC has never heard is named as such. Pure: what the prompt holds is given.


_MOST_NAMES: Final = 2
_BEGINNING: Final = 4
"""Letters of an adjective that stay in all its forms."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """
    Attributes:
        facts: Sentences to stand among the facts of the prompt.
        replies: What the NPC can say to that, of which one is enough. Empty where a model has to find the words.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


NOTHING_MISSING: Final = NotKnown()


def not_known(question: str, mind: InMind, *, language: str) -> NotKnown:
    """Nothing where something bears on the question.

    Args:
        language: The campaign's. A question in another one has names by the rules of its own, and what bears on it
            cannot be told from words that are not its: only a name that nobody has heard is said to be one.
    """
    words = wording(language)
    asked = without_call(question, mind.name)
    spoken = language_of(asked) or primary_language(language)
    is_foreign = spoken != primary_language(language)
    names = names_in(asked, language=spoken)
    said = asks_what_it_said(asked, language=language)
    remembers = said or asks_for_memory(asked, language=language)
    is_asked = asked.rstrip().endswith("?")
    unheard = [name for name in names if not _is_heard(name, mind.lines, language) and not mind.is_known(name)][
        :_MOST_NAMES
    ]
    if unheard and (remembers or is_asked):
        facts = tuple(words.unheard.format(name=mind.name, what=name) for name in unheard[:_MOST_NAMES])
        return NotKnown(facts, _of_name(words, unheard[0]))
    if is_foreign:
        return NOTHING_MISSING
    is_more = not remembers and asks_for_more(asked, language=language)
    if not (remembers or is_more) or bears(asked, mind, names, language=language):
        return NOTHING_MISSING
    if is_more and not mind.facts:
        is_story = asks_why(asked, language=language) or (names and asks_of_the_past(asked, language=language))
        return NotKnown((words.untold.format(name=mind.name),), words.knows_nothing) if is_story else NOTHING_MISSING
    line = words.untold if remembers and not said else words.unsaid if said else words.no_more
    replies = words.never_said if said else words.knows_nothing
    if not (said or is_asked or wants_to_be_told(asked, language=language)):
        replies = ()
    if is_more and not asks_of_the_past(asked, language=language):
        replies = ()
    return NotKnown((line.format(name=mind.name),), replies)


def _of_name(words: Wording, name: str) -> tuple[str, ...]:
    return tuple(line.format(what=name) for line in words.never_heard)


def _is_heard(name: str, lines: Sequence[str], language: str) -> bool:
    """Who speaks of Captain Hesper speaks of Hesper; a genitive is the same name. Where the last word is an ordinary
    one, it needs the first: who speaks of his hand does not speak of the Red Hand.
    """
    first, *_, last = name.split() if " " in name else ("", name)
    heard = "\n".join(lines)
    if not first:
        heard, last = heard.casefold(), last.casefold()
    is_there = any(form in heard for form in (last, last.removesuffix("s")))
    is_name = not first or not vocabulary_of(language).is_ordinary(fold(last))
    return is_there and (is_name or first[:_BEGINNING].casefold() in heard.casefold())
