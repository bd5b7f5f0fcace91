"""Repairs what a small model does wrong as an NPC: in its prompt, and in its replies. A large model needs none of it.

The prompt: a small model answers as if it knew. A fitted model decides whether the NPC may know the answer, from the
wording of the question and from how much of it the prompt contains. If the NPC does not know it, the prompt says so in
the form of a fact, and no language model is asked. A name that the NPC has never heard is named as such. What the asker
told the NPC about the question becomes an answer without a model, for when the model's reply is rejected.

The reply: it narrates the character instead of speaking as it ("Oskar nods."), refers to it in the third person ("A
draught from Brunhild"), takes another identity, echoes the question, repeats itself, confuses "my" and "your", and
ignores what it was told. A sentence with only the wrong person is corrected. Other mistakes are dropped. The patterns
avoid ordinary speech: a false match leaves a hole in a reply, a missed one is a single odd sentence.

English and German; the word lists are data: see `glyphoxa/language/data/en/reply.toml` and `told.toml`.

Each repair names its worth: how often it acts, and how often rightly, on the 358 questions of the grounding sets (the
prompt) or on 1,002 sentences that small models said there and in the persona sets (the reply). See
`docs/measurements.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Final

from glyphoxa.domain.knowledge import RecalledFact, RecalledTalk, RecalledUtterance, Signal
from glyphoxa.domain.turn_record import Asked, Character, Fault, Verdict
from glyphoxa.language.language_data import any_of, capitalises_nouns, lexicon, primary_language, texts, vocabulary_of
from glyphoxa.language.new_names import names_in
from glyphoxa.language.roles import TITLES
from glyphoxa.language.sentence_form import AskKind, only_states, question_of
from glyphoxa.language.sentences import sentences
from glyphoxa.language.text import (
    FUNCTION_WORDS,
    Text,
    content_of,
    language_of,
    log_odds,
    phrases,
    shipped,
)
from glyphoxa.language.words import fold

# What the prompt adds.


_CONTENT: Final = lexicon("content")
_TOLD: Final = lexicon("told")
_WISH: Final = _TOLD.pattern("wish")
_WISHED: Final = _TOLD.compile(r"\b{wished}\b")
_ASKED: Final = _TOLD.compile(r"\b{asked}\b")
_TO_THE_NPC: Final = _TOLD.compile(r"\b{to_the_npc}\b")
_OPENS: Final = _TOLD.compile(r"{opens}\b")
_SAID_BACK: Final = _TOLD.value("yours")
_OURS: Final = re.compile(rf"\b(?:{any_of(_SAID_BACK)})\b", re.IGNORECASE)
_COMPOUND: Final = 5
"""Letters of a word that may be the end of another: "Kessel" in "Kupferkessel"."""
_SHARED: Final = 2
_MOST_NAMES: Final = 2
_MOST_COUNTED: Final = 3
_MOST_BESIDE: Final = 2
_MAY_TRY: Final = -1.0
"""Log odds of an answer that a model may try. `python -m benchmarks.answerable` shows others."""
_UNSURE: Final = (-2.0, 2.5)
"""Log odds between which a model is asked, too. These numbers are of 101 questions to the default model: see
`docs/measurements.md`."""
_WEIGHT, _CONSTANT = 0.5, 1.8
"""Weight of the fitted model's log odds beside those of the model that is asked."""
LIKELY: Final = -1.0
"""Log odds of the model that is asked from which its notes hold the answer: its examples make it cautious."""
_BEGINNING: Final = 4
"""Letters of an adjective that stay in all its forms."""


@cache
def _no_topic(language: str) -> frozenset[str]:
    """Return the stems of words of a language that carry no topic."""
    return Text.of(" ".join(_CONTENT.words("asks_or_times") | _CONTENT.words("vague"))).telling(language)


def topic_of(text: str, language: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's topic.

    Args:
        language: BCP 47 tag of the text.
    """
    return Text.of(text).telling(language) - _no_topic(language)


def shared(about: frozenset[str], text: str, language: str) -> frozenset[str]:
    """Return which of these stems another text has, also as the end of a longer one."""
    others = topic_of(text, language)
    return frozenset(stem for stem in about if stem in others or any(_is_part(stem, each) for each in others))


def _is_part(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _COMPOUND and len(long) > len(short) and long.endswith(short)


@dataclass(frozen=True, slots=True)
class NotKnown:
    """The things that an NPC does not know about a question, in words.

    Attributes:
        facts: Sentences for the facts of the prompt.
        replies: Possible answers, of which one is enough. Empty if a model has to find the words, or the language.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


def may_answer(log_odds: float, by_model: float | None = None) -> bool:
    """Return whether an NPC may try an answer.

    Args:
        log_odds: Log odds by the wording of the question and the evidence.
        by_model: Log odds that the model finds the answer in the NPC's notes; None: it was not asked, or cannot tell.
    """
    return log_odds >= _MAY_TRY if by_model is None else _WEIGHT * log_odds + by_model + _CONSTANT >= 0


def notes_examples(language: str) -> list[tuple[str, str]]:
    """Return instruction and examples for `PromptRepair.notes`, as pairs of role and text.

    Args:
        language: BCP 47 tag of the campaign.
    """
    words = texts("prompt", primary_language(language)).value
    pairs = [(words("asked_of_notes").format(**shot), shot["reply"]) for shot in words("notes_examples")]
    return [("system", words("notes")), *(each for q, a in pairs for each in (("user", q), ("assistant", a)))]


@dataclass
class PromptRepair:
    """Finds what a small model needs to be told for one question, from the contents of its prompt.

    Args:
        question: Without the words that call the NPC.
        language: The campaign's. The words of a question in another language cannot show what bears on it: only a name
            that nobody has heard is reported.
        name: The NPC's.
        facts: The known facts that the question calls for.
        remembered: Past utterances.
        talk: The lines in the prompt, without the question.
        beside: Its knowledge of itself, and its place.
        is_known: Returns whether it has heard a name.
        asker: The asker's name; empty if it is unknown.
        summaries: Summaries of what was said before the talk.
    """

    question: str
    language: str
    name: str
    facts: Sequence[RecalledFact]
    remembered: Sequence[RecalledTalk]
    talk: Sequence[str]
    beside: Sequence[str]
    is_known: Callable[[str], bool]
    asker: str = ""
    summaries: Sequence[str] = ()

    def __post_init__(self) -> None:
        question, self._language = self.question, primary_language(self.language)
        spoken = language_of(question) or self._language
        self._asked = question_of(question, spoken)
        self._plain = question.casefold()
        self._is_foreign = spoken != self._language
        self._names = names_in(question, language=spoken)
        self._topic = topic_of(question, self._language)
        self._is_question = question.rstrip().endswith("?")

    def _words(self, name: str) -> Any:
        """Return a text of prompts in the campaign's language."""
        return texts("prompt", self._language).value(name)

    # What the asker and others told the NPC.

    def said_then(self) -> tuple[str, ...]:
        """Return the answer to "What did I ask you last time?": the asker's own words; empty for another question.

        A small model would say them as its own. Worth: no question of the sets asks this.
        """
        if self._is_foreign or not (self._asked.has(AskKind.ACTS) and self._asked.has(AskKind.ASKER)):
            return ()
        of_then = [one.text for one in self._heard() if self._is_askers(one) and Signal.RECAP in one.signals]
        if _ASKED.search(self._plain):
            of_then = [text for text in of_then if text.rstrip().endswith("?")]
        return (self._words("you_said").format(what=of_then[-1].strip()),) if of_then else ()

    def told(self) -> tuple[str, ...]:
        """Return recalled lines that answer the question, worded as answers, the best first; empty if none does.

        A question about what the asker told the NPC of itself gets all such lines. Another one that no fact answers
        gets the best line, anybody's, which shares at least two words with it beside names. What others said of
        themselves is no answer to a question about the asker. Worth: 54 questions, 52 rightly. Without it, NPCs say
        twice as often that they do not know what they were told.
        """
        asked = self._asked
        if self._is_foreign or asked.has(AskKind.OWN_WORDS):
            return ()
        is_of_asker = asked.has(AskKind.ASKER)
        if is_of_asker and asked.has(AskKind.MEMORY):
            about = self._topic - topic_of(" ".join(_CONTENT.words("calls")), self._language)
            asks_for_a_wish = _WISHED.search(self._plain) is not None
            own = [one for one in self._heard() if self._is_askers(one) and self._tells_of(one.text, about)]
            own = [one for one in own if asks_for_a_wish or not _WISH.search(one.text.casefold())]
            if own:
                return tuple(map(self._as_answer, own))
        about = self._about()
        is_known = any(fact.is_asked or fact.similarity is not None for fact in self.facts)
        if is_known or not self._is_question or len(about) < _SHARED:
            return ()
        telling = (one for one in self._heard() if self._is_askers(one) or not is_of_asker)
        best = next((one for one in telling if self._tells_of(one.text, about)), None)
        return () if best is None else (self._as_answer(best),)

    def _as_answer(self, one: RecalledUtterance) -> str:
        told = one.text.strip()
        if not self._is_askers(one):
            return str(self._words("they_said").format(who=one.speaker_name, what=told))
        if self._language != "en" or _TO_THE_NPC.search(told.casefold()):
            return str(self._words("you_said").format(what=told))
        if _OPENS.match(told):
            told = told[:1].lower() + told[1:]
        return str(self._words("you_told").format(what=_OURS.sub(_yours, told)))

    def _heard(self) -> Iterator[RecalledUtterance]:
        lines = (one for one in self.remembered if isinstance(one, RecalledUtterance))
        return (one for one in lines if one.speaker_name and not one.is_own)

    def _is_askers(self, one: RecalledUtterance) -> bool:
        return one.speaker_name == self.asker

    def _tells_of(self, text: str, about: frozenset[str]) -> bool:
        """Return whether it states something about the question, and more than the question contains."""
        if text.rstrip().endswith("?"):
            return False
        n_shared = len(shared(about, text, self._language))
        return 0 < n_shared < len(topic_of(text, self._language)) and n_shared >= min(_SHARED, len(about))

    # What the NPC does not know.

    def not_known(self) -> NotKnown:
        """Return what the NPC does not know, for the prompt; nothing if it may know the answer, or none is asked for.

        Worth: see `benchmarks/answerable.py`.
        """
        if self._unheard and self._is_foreign and self._is_question:
            return self.if_not_known()
        odds = self.log_odds
        return NotKnown() if odds is None or may_answer(odds) else self.if_not_known()

    def if_not_known(self) -> NotKnown:
        """Return what the prompt and the NPC say if it does not know the answer."""
        unheard, is_own = self._unheard, self._asked.has(AskKind.OWN_WORDS)
        if unheard:
            facts = tuple(self._words("unheard").format(name=self.name, what=name) for name in unheard[:_MOST_NAMES])
            replies = () if self._is_foreign else self._words("never_heard")
            return NotKnown(facts, tuple(line.format(what=unheard[0]) for line in replies))
        is_about_it = self.facts or any(self._shared)
        line = self._words("unsaid" if is_own else "no_more" if is_about_it else "untold").format(name=self.name)
        return NotKnown((line,), tuple(self._words("never_said" if is_own else "knows_nothing")))

    @cached_property
    def log_odds(self) -> float | None:
        """Log odds that it may answer, by the wording and the evidence; None if nothing is asked that it must know.

        The fitted model reads neither talk nor summaries. Talk about the question may answer it. A summary leaves it
        open.
        """
        if self._is_foreign or self._is_in_talk:
            return None
        if self._asked.is_remark and not self._asked.has(AskKind.OWN_WORDS):
            return None
        return 0.0 if self._summed_up else log_odds(self.signs, shipped(__package__, "known"))

    @property
    def is_unsure(self) -> bool:
        """Whether a model should be asked about `notes`."""
        least, most = _UNSURE
        return self.log_odds is not None and least < self.log_odds < most

    def notes(self, lines: Sequence[str]) -> str:
        """Return the question, and these lines, in the form of `notes_examples`.

        What the NPC knows of itself and its place is added if it has a word of the question, and so are summaries.
        """
        form, nothing, somebody = map(self._words, ("asked_of_notes", "no_notes", "somebody"))
        standing = (line for line in self.beside if line not in (*lines, *self.summaries))
        beside = [line for line in standing if shared(self._topic, line, self._language)]
        notes = " ".join((*beside[:_MOST_BESIDE], *self._summed_up[:_MOST_BESIDE], *lines)) or nothing
        asker = self.asker or somebody
        return str(form.format(name=self.name, notes=notes, asker=asker, question=self.question))

    @property
    def signs(self) -> frozenset[str]:
        """The wording of the question, and how much of it the prompt contains, and from whom, for the fitted model."""
        language, of_asker = self._language, self._asked.has(AskKind.ASKER)
        about, covered = self._about(), frozenset[str]().union(*self._shared)
        beside = shared(self._topic, " ".join(self.beside), language)
        by = ["fact" for _ in self.facts] + [self._by(one) for one in self.remembered]
        best, best_by = max(zip(map(len, self._shared), by, strict=False), key=lambda of: of[0], default=(0, "nobody"))
        return phrases(self.question) | {
            f"best: {_share(best, self._topic)}",
            f"best by: {best_by}, of asker {of_asker}",
            f"beside: {_share(len(beside), self._topic)}",
            f"missing: {min(_MOST_COUNTED, len(about - covered))}",
            f"question: {self._is_question}, own words {self._asked.has(AskKind.OWN_WORDS)}, said {'npc' in by}",
            *(f"heard: {name not in self._unheard}, maybe a noun {self._may_be_a_noun(name)}" for name in self._names),
        }

    @cached_property
    def _shared(self) -> list[frozenset[str]]:
        """The words of the question that each fact and each recalled line has."""
        return [shared(self._topic, one.text, self._language) for one in (*self.facts, *self.remembered)]

    @property
    def _is_in_talk(self) -> bool:
        """Whether the talk has something about the question."""
        return any(shared(self._topic, line, self._language) for line in self.talk)

    @cached_property
    def _summed_up(self) -> list[str]:
        """The sentences of summaries that have something about the question."""
        said = (sentence for summary in self.summaries for sentence in sentences(summary))
        return [sentence for sentence in said if shared(self._topic, sentence, self._language)]

    def _may_be_a_noun(self, name: str) -> bool:
        return capitalises_nouns(self._language) and " " not in name

    def _by(self, one: RecalledTalk) -> str:
        if not isinstance(one, RecalledUtterance):
            return "nobody"
        return "npc" if one.is_own else "asker" if self._is_askers(one) else "other"

    @cached_property
    def _unheard(self) -> list[str]:
        return [name for name in self._names if not self._is_heard(name)]

    def _is_heard(self, name: str) -> bool:
        """Return whether the NPC or its prompt knows a name, also by the last of several parts or in the genitive.

        If the last part is an ordinary word, the lines must have the first too: "his hand" is not the Red Hand.
        """
        first, *_, last = name.split() if " " in name else ("", name)
        said = (line for one in self.remembered for line in (getattr(one, "speaker_name", ""), one.text))
        facts = (fact.text for fact in self.facts)
        heard = "\n".join((*facts, *said, *self.talk, *self.summaries, *self.beside))
        if not first:
            heard, last = heard.casefold(), last.casefold()
        is_there = any(form in heard for form in (last, last.removesuffix("s")))
        is_name = not first or not vocabulary_of(self._language).is_ordinary(fold(last))
        in_lines = is_there and (is_name or first[:_BEGINNING].casefold() in heard.casefold())
        is_common = vocabulary_of(self._asked.language).is_common_knowledge(name)
        return in_lines or is_common or self.is_known(name)

    def _about(self) -> frozenset[str]:
        """Return the words of the question without names."""
        return self._topic - topic_of(" ".join(self._names), self._language)


def _share(n: int, of: frozenset[str]) -> int:
    """Return in thirds how many of these it is; one more than all for none."""
    return round(3 * n / len(of)) if of else 4


def _yours(found: re.Match[str]) -> str:
    yours = str(_SAID_BACK[found[0].casefold()])
    opens = found.string[: found.start()].rstrip().endswith((".", "!", "?"))
    return yours.capitalize() if opens else yours


# What replies lose.


_WORDS: Final = lexicon("reply")
_ANY_CASE: Final = re.IGNORECASE
_GESTURE_ALONE: Final = _WORDS.compile(
    r"(?:{pronoun} )?(?:\w+ly )?{gestures}(?=\s*(?:[.,;!…]|$|{after_gesture}\b))", flags=_ANY_CASE
)
_ENDS: Final = re.compile(r"[.!?…][\"”“«'’)]*$")
_MIN_ECHOED: Final = 4
"""Minimum words. A shorter question may be returned: "And you?"."""
_MIN_TAKEN: Final = 2
"""Minimum content words. One may be chance."""
_MIN_REPEATED: Final = 3
"""Minimum words. Shorter phrases are common ("Aye.", "Not I.") and may repeat."""
_SAYS_I_DO: Final = _WORDS.compile(r"\b{says_i_do}\b", flags=_ANY_CASE)
_SAYS_I_OR_WE: Final = _WORDS.compile(r"\b(?:{says_i}|{says_we})\b", flags=_ANY_CASE)
_NO_VERB: Final = _WORDS.words("no_verb")
"""Words after a name used as a name: "Brunhild is what they call me", "Brunhild, at your service"."""
_SAYS_TO_BE: Final = (
    r"\b(?i:{my_name_is}) {own}\b(?!['’])|(?<!\w)(?i:{i_am}) {own}\b(?=\s*(?:[.,;:!…–—-]|$|{name_ends}\b))"
)
"""After "I am", nothing may follow the name: "I am Tamsin's friend" is allowed."""
_GREETS: Final = r"(?:^|[.!?…] )(?i:{greeting}),? (?i:(?:{dear},? )*){own}(?=[.,!?…]|$)"
_OF_CLAIMS: Final = content_of(_WORDS.words("of_claims"))
"""Words that report what was told or seen, without its content."""


class ReplyRepair:
    """Repairs and judges the sentences of one reply of one NPC. Create a new one for every reply."""

    def __init__(self, character: Character, asked: Asked) -> None:
        self._character = character
        self._asked = asked
        self._own = (character.name, *_names((character.name,), not_of=character.others))
        self._called = (*self._own, *character.aliases)
        self._acts = _pattern(self._called, r"(?i:{own} (?:\w+ly )?{acts}\b)")
        self._is_narrating = False

    def repaired(self, said: str) -> Verdict:
        """Return the part of the next piece that may be said, in the first person, without narration.

        Worth of the narration: no sentence, but 18 labelled ones.
        """
        if self._is_narrating or self._acts.match(said) or _GESTURE_ALONE.match(said):
            self._is_narrating = not _ENDS.search(said)
            return Verdict(fault=Fault.NARRATED)
        if self._echoes(said):
            return Verdict(fault=Fault.ECHO)
        return Verdict(with_correct_owner(in_first_person(said, self._own), self._asked))

    def rejects(self, sentence: str, _character: Character, asked: Asked) -> Fault | None:
        """Return why a repaired sentence may not be said; None if it may. A `glyphoxa.judgement.reply.Rule`.

        Args:
            asked: The same as at the beginning, with the sentences of the reply so far.
        """
        faults = (
            (self._is_in_third_person, Fault.THIRD_PERSON),
            (self._claims_other_identity, Fault.IDENTITY),
            (self._repeats, Fault.REPEATED),
            (self._forgets, Fault.FORGOTTEN),
        )
        return next((fault for is_at_fault, fault in faults if is_at_fault(sentence, asked.so_far)), None)

    # Each judges one sentence of the reply.

    def _echoes(self, said: str) -> bool:
        """Return whether words of the asker are given back: a question, a part of a remark, or a remark of the NPC.

        "I will bring you lemons." in reply to the same says of the NPC what the asker said of itself. A sentence that
        adds something is a reply, and so is "I sealed it." to "You sealed it.". An answer may begin with words of the
        question. Worth: 20 sentences, 16 rightly.
        """
        reply, asker, is_question = Text.of(said), Text.of(self._asked.question), said.rstrip().endswith("?")
        if len(reply.spoken) >= _MIN_ECHOED and asker.contains(reply):
            return is_question or only_states(self._asked.question)
        is_taken = len(reply.content) >= _MIN_TAKEN and reply.content <= asker.content
        if not is_taken or is_question or not _SAYS_I_DO.search(reply.plain):
            return False
        return question_of(self._asked.question, language_of(self._asked.question) or "en").is_remark

    def _is_in_third_person(self, sentence: str, _: str) -> bool:
        """Return whether the NPC refers to itself in the third person. A lone name or an "I" is allowed.

        Worth: 1 sentence, rightly.
        """
        if _SAYS_I_OR_WE.search(Text.of(sentence).plain):
            return False
        found = _pattern(self._own, r"{own} ({verb_forms})\b").match(sentence)
        return found is not None and found.group(1) not in _NO_VERB

    def _claims_other_identity(self, sentence: str, so_far: str) -> bool:
        """Return whether the NPC claims another name or greets itself, across pieces of the reply.

        A small model confuses names in the conversation. Only names of the campaign count, because its author may use
        others. Worth: 9 sentences, all rightly.
        """
        said = f"{so_far} {sentence}".strip()
        others = _names((*self._character.others, self._asked.speaker_name), not_of=self._called)
        patterns = [_pattern(self._called, _GREETS)]
        if others and not sentence.rstrip().endswith("?"):
            patterns.append(_pattern(others, _SAYS_TO_BE))
        at = len(said) - len(sentence)
        return any(found.end() > at for pattern in patterns for found in pattern.finditer(said))

    def _repeats(self, sentence: str, so_far: str) -> bool:
        """Return whether the NPC just said it, because small models copy their own lines.

        A sentence repeats if it is already in this reply, or if the last answer to a different question had it. The
        same question may get the same answer. Worth: 8 sentences, 6 rightly.
        """
        said = Text.of(sentence).spoken
        if said and said in _bare_sentences(so_far):
            return True
        question, reply = self._asked.before[-1] if self._asked.before else ("", "")
        is_repeated = len(said) >= _MIN_REPEATED and said in _bare_sentences(reply)
        return is_repeated and not _is_alike(question, self._asked.question)

    def _forgets(self, sentence: str, so_far: str) -> bool:
        """Return whether an answer has no word of what the asker told about it. A counter-question is no answer.

        Worth: 16 sentences, 14 rightly.
        """
        if not self._asked.told or sentence.rstrip().endswith("?"):
            return False
        if not Text.of(sentence).content and not Text.of(sentence).denies:
            return False  # "Ah, that." introduces an answer
        return leaves_out(f"{so_far} {sentence}", self._asked)


def leaves_out(reply: str, asked: Asked) -> bool:
    """Return whether a reply, without its questions, contains nothing that the asker told."""
    new = content_of(asked.told) - Text.of(asked.question).content - _OF_CLAIMS
    return bool(new) and content_of(_without_questions(reply)).isdisjoint(new)


def only_calls(reply: str, asked: Asked) -> bool:
    """Return whether a reply contains nothing but the asker's name."""
    return set(Text.of(reply).spoken) <= set(Text.of(asked.speaker_name).spoken)


def _is_alike(question: str, other: str) -> bool:
    """Return whether two questions may share an answer: a common content word, or one without any."""
    words, others = Text.of(question).content, Text.of(other).content
    return bool(words & others) or not (words and others)


def _bare_sentences(text: str) -> set[tuple[str, ...]]:
    return {Text.of(sentence).spoken for sentence in Text.of(text).sentences}


def _without_questions(text: str) -> list[str]:
    return [each for each in Text.of(text).sentences if not each.endswith("?")]


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
    """Return the sentence in the first person. Worth: 4 sentences, all rightly.

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
    """Return the sentence with the person that the question implies. Worth: 3 sentences, all rightly.

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
