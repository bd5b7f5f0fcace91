"""The form of a player's line: what kind of question it is, and whether it addresses somebody.

Every question is classified, using words only. A false positive costs an NPC a shrug; a miss lets a small model invent.
The patterns are data: see `data/LANGUAGE/asking.toml`. In a language without them, every answer is no, except for the
kinds that are looked for in English then.

The signals of whom a sentence addresses (`Form`) are evidence, not proof; `glyphoxa.turns.address` weighs them. Their
patterns are those of all languages, whatever the campaign's: see `data/LANGUAGE/sentence.toml`. They are matched
against a `SaidSentence`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache, cached_property, lru_cache
from typing import Final

from glyphoxa.language.language_data import lexicon
from glyphoxa.language.text import Text
from glyphoxa.language.words import Put, applied


class AskKind(Enum):
    """A kind of question. The value is the key of its patterns.

    Attributes:
        MEMORY: It asks for a memory, or something nobody can know without being told. Includes claims that expect a
            confirmation: "You owe me three crowns, don't you?".
        MORE: It has a presupposition or is a yes/no question: "Why did she ...?", "Is it true ...?".
        WHY: It presupposes a fact and asks for its reason or beginning.
        ACTS: It asks what somebody did, said or saw: "What did I tell you?".
        PERCEPTION: It asks what the NPC saw, heard or found, or whom it met.
        PAST_EVENT: It presupposes a past event, or asks whether one happened.
        PAST: It refers to the past. Checked for every partial transcript, so that recall can start before the speaker
            has finished.
        ASKER: It is about the asker. "Tell me ..." alone is not.
        NPC: It says "you".
        NPC_FIRST: It says "you" before anything about the asker: "You sold me the map.", not "I sold you the map.".
        HOW_RELATED: It asks how two entities are related: "How is Orla related to the smith?", not "Who is Orla?".
        OWN_WORDS: It asks an NPC about its own words ("What did you promise me?", "You said six crowns!"), not about
            what others told it or what it has to say now.
        PROMISE: It has a word for a promise or an agreement.
    """

    MEMORY = "memory"
    MORE = "more"
    WHY = "why"
    ACTS = "acts"
    PERCEPTION = "perception"
    PAST_EVENT = "past"
    PAST = "refers_to_past"
    ASKER = "asker"
    NPC = "you"
    NPC_FIRST = "you_first"
    HOW_RELATED = "how_related"
    OWN_WORDS = "own_words"
    PROMISE = "promise"


_ELSE_ENGLISH: Final = frozenset((AskKind.PAST, AskKind.NPC, AskKind.NPC_FIRST, AskKind.HOW_RELATED))
"""Looked for in English in a language without patterns."""


class QuestionLine:
    """A line of a player, and what it asks for. See `question_of`."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self._plain = Text.of(text).plain.casefold()
        self._found: dict[AskKind, bool] = {}

    def has(self, kind: AskKind) -> bool:
        """Return whether it is of a kind. Each kind is looked for once."""
        if kind not in self._found:
            self._found[kind] = _pattern(kind, self.language).search(self._plain) is not None
        return self._found[kind]

    @cached_property
    def is_remark(self) -> bool:
        """Whether it asks for nothing and does not speak of the NPC: "We will dive tomorrow."."""
        return only_states(self.text) and not self.has(AskKind.NPC_FIRST)


@lru_cache(256)
def question_of(text: str, language: str) -> QuestionLine:
    """Return a line as a question; the same object for the same line.

    Args:
        language: BCP 47 tag.

    >>> question_of("You sold me the map.", "en").has(AskKind.NPC_FIRST)
    True
    >>> question_of("I will bring you the map.", "en").has(AskKind.NPC_FIRST)
    False
    """
    return QuestionLine(text, language)


def looks_for_own_words(query: str, *, name: str, language: str) -> bool:
    """Return whether an NPC's model searches for the NPC's own words: "what I promised Hanna", "Korvald promised".

    Args:
        name: The NPC's name; empty if unknown.
    """
    of, text = lexicon("asking", language), Text.of(query).plain.casefold()
    if not of:
        return False
    if name:
        text = re.sub(rf"\b{re.escape(Text.of(name).plain.casefold())}\b", of.value("addressed"), text)
    for said, instead in of.value("as_another_says"):
        text = re.sub(said, instead, text)
    asked = QuestionLine(text, language)
    return asked.has(AskKind.PROMISE) or asked.has(AskKind.OWN_WORDS)


@cache
def _pattern(kind: AskKind, language: str) -> re.Pattern[str]:
    of = lexicon("asking", language)
    if not of and kind in _ELSE_ENGLISH:
        of = lexicon("asking", "en")
    return of.pattern(kind.value)


# Whom a sentence addresses.

_WORDS: Final = lexicon("sentence")
_OPENING: Final = r"(?:{openers}\b(?: ?[,:;-])? ?)*"

_SIGNS: Final = {
    "second": _WORDS.pattern("second"),
    "others": _WORDS.pattern("others"),
    "question": _WORDS.compile(r"^{opening}{question}\b", opening=_OPENING),
    "order": _WORDS.compile(r"^{opening}(?:{before_order} )?{order}\b", opening=_OPENING),
    "request": _WORDS.pattern("request"),
    "greeting": _WORDS.compile(r"^{opening}{greeting}\b", opening=_OPENING),
    "plan": _WORDS.pattern("plan"),
    "talked": _WORDS.pattern("talked"),
    "decided": _WORDS.pattern("decided"),
    "aloud": _WORDS.compile(r"\b{aloud}\b"),
    "narration": _WORDS.compile(r"{narration}|^\*[^*]*\*?$|^/ me\b", opening=_OPENING),
    "weak_act": _WORDS.compile(r"^(?:\w+ )?{weak_act}"),
    "doubt": _WORDS.pattern("doubt"),
    "to_all": _WORDS.pattern("to_all"),
    "greeted_all": _WORDS.pattern("greeted_all"),
}
"""The pattern of each signal of a `Form`."""
_SAYS_SELF: Final = _WORDS.pattern("says_self")

# A text split into sentences, normalised for patterns.
#
# A sentence is its words in lower case and its punctuation, separated by spaces; a mention of a name is "@" and its
# number. "Well, Oskar, what do you think?" is `well , @0 , what do you think` with the end
# `?`. German "Sie" and "Ihr" keep their capital unless they are the first word: it distinguishes "you" from "she".
#
# Of text role-play only speech counts: stage directions ("*nods*") and narration around the player's own words in
# quotation marks (`I say: "Oskar, wait!"`) may only tell to whom it is said. Quotations of others are removed.


_TOKEN = re.compile(r"@\d+|[^\W_]+(?:['’][^\W_]+)*|[^\w\s]")
_ENDS = frozenset(".!?…")
_DASHES = frozenset("-–—>~")
"""Marks before a line of dialogue."""
_QUOTED = re.compile(
    r"“[^”]*(?:”|$)|„[^“”\"]*(?:[“”\"]|$)|»[^«]*«|«[^»]*»|›[^‹]*‹|‹[^›]*›|\"[^\"]*(?:\"|$)|‚[^‘’]*[‘’]"
    r"|(?<!\w)[‘'][^’']{2,}[’'](?!\w)"
)
_QUOTATION_MARKS = "“”„»«›‹\"‚‘’'"
_SET_OFF = re.compile(r"(?P<mark>\*{1,3}|_{1,3}|~~?)(?=\S| @)(?P<within>[^*_~\n]+?)(?P=mark)|\([^()]*\)|\[[^\[\]]*\]")
"""Emphasis or a stage direction."""
_EMPHASIS = re.compile(r"\W*@\d+\W*|\s*@\d+ ?[,!].*|.*, ?@\d+\W*")
_CLAUSE_BEFORE = re.compile(r"[^.!?…\n]*$")
_CLAUSE_AFTER = re.compile(r"[^.!?…\n]*")
_QUOTE_ENDS = re.compile(r"[.,!?…—–-]\s*$")
_QUOTES_OTHERS: Final = _WORDS.compile(r"\b{reports}\b")
_REPORTS_SPEECH: Final = _WORDS.compile(
    r"^[^\w@]*(?:@(\d+)|(?!{no_speaker}\b)\w+)(?: \w+)? {reports_now}\b|@(\d+) ?:$|^\W*{reports_now} @?\w+$"
)
_POLITE: Final = _WORDS.pattern("polite")


@dataclass(frozen=True, slots=True)
class SaidSentence:
    """
    Attributes:
        text: See the comment above.
        end: The punctuation that ends it; "" for none.
    """

    text: str
    end: str


def sentences_of(
    text: str, places: Sequence[tuple[int, int]], *, others: Collection[int] = ()
) -> tuple[list[SaidSentence], list[SaidSentence]]:
    """Return the sentences that were spoken, and those that only tell about it: stage directions and narration.

    Args:
        places: Positions of names, in order and without overlap: first character and one past the last.
        others: Numbers of names that are not the players': a quotation that they introduce is not a player's.
    """
    marks = (Put(start, end, f" @{number} ") for number, (start, end) in enumerate(places))
    said, told = _said_and_told(applied(text.replace("@", " "), marks), others)
    return _split(said), _split(told)


def _split(marked: str) -> list[SaidSentence]:
    made: list[SaidSentence] = []
    tokens: list[str] = []
    for token in [*_TOKEN.findall(marked), "."]:
        if token in _ENDS:
            if tokens:
                made.append(SaidSentence(" ".join(tokens), token))
            elif made and "?" in token:
                made[-1] = SaidSentence(made[-1].text, "?")
            tokens = []
        elif tokens or token not in _DASHES:
            tokens.append(token if tokens and _POLITE.fullmatch(token) else token.lower().replace("’", "'"))
    return made


def _said_and_told(marked: str, others: Collection[int]) -> tuple[str, str]:
    """Separate speech from stage directions, narration and the words of others."""
    told: list[str] = []

    def set_off(match: re.Match[str]) -> str:
        within = match["within"]
        if within is not None and (_EMPHASIS.fullmatch(within) or (len(match["mark"]) > 1 and _is_all(match))):
            return within
        told.append(f"{match[0]}.")
        return " "

    spoken = _SET_OFF.sub(set_off, marked)
    if not re.search(r"\w", spoken):
        return marked.translate(dict.fromkeys(map(ord, _QUOTATION_MARKS[:8]), " ")), ""
    quoted, around, at = [], [], 0
    for match in _QUOTED.finditer(spoken):
        if _is_own(spoken, match, others):
            is_going_on = spoken[match.end() : match.end() + 1] == ","
            quoted.append(match[0][1:].rstrip(_QUOTATION_MARKS) + "," * is_going_on)
            around.append(spoken[at : match.start()])
        else:
            around += (spoken[at : match.start()], " ")
        at = match.end()
    around.append(spoken[at:])
    if quoted:
        return " ".join(quoted), " . ".join((*told, *around))
    return "".join(around), " ".join(told)


def _is_all(match: re.Match[str]) -> bool:
    return not re.search(r"\w", match.string[: match.start()] + match.string[match.end() :])


def _is_own(text: str, quote: re.Match[str], others: Collection[int]) -> bool:
    """Whether a quotation is what the player says now, by the clauses around it."""
    before = _clause(_CLAUSE_BEFORE, text[: quote.start()])
    after = _clause(_CLAUSE_AFTER, text[quote.end() :])
    for clause in (before, after):
        if _SAYS_SELF.search(clause):
            return True
        if (report := _REPORTS_SPEECH.search(clause)) is not None:
            speaker = report[1] or report[2]
            return speaker is None or int(speaker) not in others
        if _QUOTES_OTHERS.search(clause):
            return False
    if before:
        return _SIGNS["narration"].search(before) is not None
    return not after or _QUOTE_ENDS.search(quote[0].rstrip(_QUOTATION_MARKS)) is not None


def _clause(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return " ".join(_TOKEN.findall(_QUOTED.sub(" ", found[0]))).lower().replace("’", "'") if found else ""


@dataclass(frozen=True, slots=True)
class Form:
    """Signals of one sentence.

    Attributes:
        second: It addresses somebody: "you", "dein".
        others: It addresses several: "you two", "Leute".
        question: It is a question.
        order: It begins with an imperative.
        request: It is a request: "I'd like a room".
        greeting: It is a greeting, thanks or a farewell.
        plan: It makes plans: "we should", "lasst uns".
        talked: It asks about an earlier conversation: "What did we agree on?".
        decided: It states a decision: "we agreed to".
        aloud: Thinking aloud: "I wonder".
        narration: It describes a character's action: "I walk to the bar".
        weak_act: Possibly an action, possibly an answer: "I take it".
        doubt: It comments on a third person who may be present: "he's lying".
        to_all: It asks everybody: "does anyone here ...".
        greeted_all: It greets everybody.
    """

    second: bool
    others: bool
    question: bool
    order: bool
    request: bool
    greeting: bool
    plan: bool
    talked: bool
    decided: bool
    aloud: bool
    narration: bool
    weak_act: bool
    doubt: bool
    to_all: bool
    greeted_all: bool

    @property
    def asks_somebody(self) -> bool:
        """Whether it expects a reaction from a listener."""
        return self.second or self.question or self.order or self.request or self.greeting


def only_states(text: str) -> bool:
    """Return whether a text asks for nothing: no question, request, order or greeting in any clause.

    >>> only_states("Rusk, we will dive tomorrow."), only_states("Rusk, tell me of the dive"), only_states("Rusk?")
    (True, False, False)
    """
    said, _ = sentences_of(text, ())
    clauses = (SaidSentence(clause.strip(), each.end) for each in said for clause in each.text.split(","))
    form = all_of([form_of(each) for each in clauses])
    is_long = sum(len(each.text.split()) for each in said) >= _SHORTEST_STATEMENT
    return is_long and not (form.question or form.order or form.request or form.greeting)


_SHORTEST_STATEMENT: Final = 3
"""Words. A shorter text refers to what was said before: "Too dear."."""


def all_of(forms: Sequence[Form]) -> Form:
    """The union of the signals of these sentences."""
    return Form(**{sign.name: any(getattr(form, sign.name) for form in forms) for sign in fields(Form)})


def without_call_to_all(text: str) -> str:
    """Return a text in lower case without the words that ask everybody."""
    return _SIGNS["to_all"].sub(" ", text.lower())


@lru_cache(1024)  # a partial transcript repeats the sentences of the one before it
def form_of(sentence: SaidSentence) -> Form:
    found = {sign: pattern.search(sentence.text) is not None for sign, pattern in _SIGNS.items()}
    found["question"] |= sentence.end == "?"
    found["plan"] &= not found["request"]
    return Form(**found)
