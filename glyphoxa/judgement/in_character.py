"""What of a reply an NPC says as itself.

Small models tell of the character instead of speaking as it ("Oskar nods."), speak of it as of somebody else ("A
draught from Brunhild"), fall into the phrases that assistants end and refuse with, or give the question back. Whoever
listens hears none of it: such a sentence is left out, or put into the first person where only the person is wrong.

Decided sentence by sentence and by plain patterns that ordinary talk does not meet: what is left out wrongly is a hole
in what an NPC says, what slips through is one odd sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.guard import SafetyFilter
from glyphoxa.judgement.reply import ENGLISH, GERMAN, Asked, Character, Verdict, words

# An NPC that speaks of itself by name, put into the first person.
#
# Only what can be put there word by word: "from Brunhild" is "from me", "Brunhild's" is "my", "Brunhild has" is "I
# have". A sentence that says I already is left alone: "I am Brunhild", "they call me Brunhild".


_SAYS_I: Final = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|myself|ich|mich|mir|mein\w*)\b", re.IGNORECASE)
_REGULAR: Final = (
    "know keep sell live work make want like love think believe tend sail own need sleep care see hear remember trust "
    "charge run serve take say ask set look"
)
_THE_SAME: Final = "was had will would can could must should did may might"
_ENGLISH: Final[Mapping[str, str]] = {
    **{f"{verb}s": verb for verb in _REGULAR.split()},
    **{verb: verb for verb in _THE_SAME.split()},
    "is": "am",
    "has": "have",
    "does": "do",
    "goes": "go",
}
_GERMAN: Final[Mapping[str, str]] = {
    **{verb: verb for verb in ("war", "kann", "weiß", "will", "muss")},
    "ist": "bin",
    "hat": "habe",
    "wird": "werde",
    "kennt": "kenne",
    "lebt": "lebe",
    "arbeitet": "arbeite",
}
_ONLY_ENGLISH: Final = re.compile(r"\b(?:the|a|an|of|to|in|not|this|that|you|and|for)\b", re.IGNORECASE)
_ONLY_GERMAN: Final = re.compile(
    r"\b(?:das|der|dem|nicht|nichts|nur|auch|es|dir|dich|mir|mich|euch|kein\w*|einen?|zu|mit|hier)\b|[äöüß]",
    re.IGNORECASE,
)
_OF_BOTH: Final = frozenset({"will"})
"""Verbs that are English unless something else is German."""
_BEFORE_ME: Final = r"(?:from|to|for|with|by|about|than|ask|tell|told|see|behind|beside)"

_NOT_FIRST: Final = (
    (r"^{own} never\b", "I never"),
    (r"\bhat {own} (nie|nicht)\b", r"habe ich \1"),
    (r"\bhat {own} etwas\b", "hat mir etwas"),
    (r"\bweiß {own}\b", "weiß ich"),
)
"""Where the verb stands in front, or behind another word: what a prompt says of an NPC that knows nothing has these."""


def in_first_person(sentence: str, names: Sequence[str]) -> str:
    """The sentence as the NPC would say it.

    Args:
        names: What it is called by, the longest first.

    >>> in_first_person("A healing draught from Brunhild costs nine silver pieces.", ["Brunhild"])
    'A healing draught from me costs nine silver pieces.'
    """
    if not names or _SAYS_I.search(sentence):
        return sentence
    own = "|".join(map(re.escape, names))
    is_not_longer = r"(?! [A-ZÄÖÜ])"
    sentence = re.sub(rf"^(?:{own})['’]s\b", "My", sentence)
    sentence = re.sub(rf"\b(?:{own})['’]s\b", "my", sentence)
    sentence = re.sub(rf"\b({_BEFORE_ME}) (?:{own})\b(?!['’]){is_not_longer}", r"\1 me", sentence)
    sentence = re.sub(rf"\b(?:{own}) (?:herself|himself)\b", "I myself", sentence)
    for pattern, instead in _NOT_FIRST:
        sentence = re.sub(pattern.format(own=f"(?:{own})"), instead, sentence)
    found = re.match(rf"(?:{own}) (\w+)\b", sentence)
    if found is None:
        return sentence
    verb, rest = found.group(1), sentence[found.end() :]
    is_german = _ONLY_GERMAN.search(sentence) if verb in _OF_BOTH else not _ONLY_ENGLISH.search(sentence)
    if verb in _GERMAN and is_german:
        return f"Ich {_GERMAN[verb]}{rest}"
    return f"I {_ENGLISH[verb]}{rest}" if verb in _ENGLISH else sentence


_ASSISTANT: Final = re.compile(
    r"\b(?:cannot|can['’]t|can not|unable to|not able to) (?:assist|fulfil|comply|provide (?:you )?(?:with )?(?:any )?"
    r"(?:information|assistance|details|help))"
    r"|\bhow (?:may|can) i (?:assist|be of assistance)|\bhow (?:may|can) i help you (?:today|further)"
    r"|\b(?:anything|something) else (?:that )?(?:i can|you(?:['’]d| would)? (?:like|want|need))(?: me)?(?: to)?"
    r" (?:help|assist|know)"
    r"|\bif you (?:have|need) (?:any |some )?(?:other|more|further|help)\b.*\b(?:let me know|feel free|hesitate)"
    r"|\bfeel free to (?:ask|reach)\b|\bi (?:do not|don['’]t) have (?:any |access to |enough |specific |personal )*"
    r"(?:information|data|access|preferences)\b"
    r"|\bprovide (?:me )?(?:with )?(?:more|further|additional|some|any) (?:details|information|context)"
    r"|\b(?:available|historical|training) data\b|\bany inconvenience\b|\b(?:feelings|preferences) like humans\b"
    r"|\bhere (?:is|are) (?:the|an?|some) (?:answer|response|reply|example|script|code)s?\b|\bhelpful assistant\b"
    r"|\bnicht behilflich sein\b|\bwie kann ich (?:ihnen|dir|euch) (?:heute|behilflich)"
    r"|\b(?:sonst|noch) etwas,? (?:wobei|womit|bei dem|mit dem) ich\b|\bzögern sie nicht\b"
    r"|\bich habe keine (?:informationen|daten|angaben)\b|\bhier ist (?:die|meine|eine) antwort\b"
    r"|\b(?:weitere|mehr) (?:informationen|details|angaben) (?:geben|nennen|benötig|brauch)"
    r"|\bhilfreicher assistent\b|\bunannehmlichkeiten\b"
    r"|\b(?:i am|i['’]m) (?:just |only |actually |really |also )*an? "
    r"(?:(?:ai|virtual|text|digital|chat|computer)[ -]?)*"
    r"(?:ai|assistant|language model|chatbot|bot|(?<=computer )program)(?! (?:to|of|at|in)\b)\b"
    r"|\bich bin (?:nur |bloß |eigentlich |auch |ja |doch |wirklich )*eine? "
    r"(?:(?:ki|text|virtueller|digitaler|großes)[ -]?)*"
    r"(?:ki|assistent\w*|sprachmodell|chatbot|künstliche intelligenz|computerprogramm)(?! (?:des|der|von|im|in)\b)\b",
    re.IGNORECASE,
)
_OPENS_A_REFUSAL: Final = re.compile(
    r"(?:i['’]m (?:so |very )?sorry|i am (?:so |very )?sorry|sorry|i apologi[sz]e|unfortunately|as an? [\w -]+"
    r"|es tut mir (?:sehr )?leid|tut mir leid|entschuldigung|leider|als [\w -]+),?",
    re.IGNORECASE,
)
"""A first clause that ordinary talk has as well: what follows decides."""
_THE_PROMPT: Final = re.compile(
    r"\bin the first person\b|\b(?:one or )?two short sentences\b|\bthe words (?:you|i) speak\b|\bstage directions?\b"
    r"|\bthe facts (?:given|say|do not say)\b|\bkeep this to (?:your|my)self and deny\b|\bthis (?:character|persona)\b"
    r"|\bin der ersten person\b|\bkurzen sätzen\b|\bbehältst du für dich und streitest\b",
    re.IGNORECASE,
)

_GESTURES: Final = (
    r"(?:nods|smiles|grins|frowns|shrugs|sighs|chuckles|winks|bows|pauses|smirks|snorts|grunts|blinks|hesitates|squints"
    r"|nickt|lächelt|grinst|seufzt|zögert|kichert|schmunzelt|brummt|räuspert sich|hält inne|verbeugt sich)"
)
_ACTS: Final = (
    rf"(?:{_GESTURES}|laughs|looks(?! after)|glances|stares|gazes|leans|turns|raises|shakes|scratches|wipes|crosses"
    r"|folds|steps|walks|points|gestures|narrows|rolls|clears|puts|replies|answers|whispers|mutters|growls|murmurs"
    r"|adds|continues|speaks|rubs|strokes|tilts|waves|coughs|swallows|lowers|lifts|takes (?:a|his|her) (?:deep|long)"
    r"|sets\b(?=.*\b(?:down|aside|back|on)\b)|(?:says|asks)(?=\s*(?:[.,:;!…\"“]|$|(?:\w+ly|in|with|as|and|to)\b))"
    r"|lacht|schaut|blickt|runzelt|schüttelt|hebt|senkt|dreht|wendet|lehnt|kratzt|wischt|verschränkt|zeigt|sagt"
    r"|antwortet|fragt|flüstert|murmelt|knurrt|zuckt|winkt|beugt|mustert|starrt)"
)
_HOW: Final = (
    r"(?=\s*(?:[.,;!…]|$|(?:and|at|softly|slowly|warmly|wearily|gently|sadly|quietly|knowingly|politely|as|his|her|with"
    r"|to (?:you|him|her|himself|herself)|und|langsam|leise|müde|freundlich|traurig|sanft|dir|euch|ihm|ihr)\b))"
)
_GESTURE_ALONE: Final = re.compile(rf"(?:(?:he|she|they|er|sie) )?(?:\w+ly )?{_GESTURES}{_HOW}", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[\"“„»]([^\"“”„«»]+)[\"”“«]")
_ENDS: Final = re.compile(r"[.!?…][\"”“«'’)]*$")
_LEAST_ECHOED: Final = 4
"""Words. A shorter question is asked back: "And you?"."""


class InCharacter:
    """Cleans one reply of one NPC, piece by piece. Build a new one for every reply.

    Args:
        npc_name: The NPC that speaks.
        others: Names of those who do not, see `SafetyFilter`.
        aliases: What else the NPC is called.
        asked: The words it answers.
    """

    def __init__(
        self, npc_name: str, *, others: Iterable[str] = (), aliases: Iterable[str] = (), asked: str = ""
    ) -> None:
        others = tuple(others)
        self._safety = SafetyFilter(npc_name, others=others)
        self._names = own_names(npc_name, others)
        called = sorted({*self._names, *aliases}, key=len, reverse=True)
        self._acts = re.compile(rf"(?:{'|'.join(map(re.escape, called))}) (?:\w+ly )?{_ACTS}\b", re.IGNORECASE)
        self._asked = _plain(asked)
        self._held = ""
        self._is_narrating = False

    def clean(self, piece: str) -> str | None:
        """What may be said of the next piece of the reply; None if nothing."""
        return self.judge(piece).text or None

    def judge(self, piece: str) -> Verdict:
        """The same, with the reason.

        The beginning of what may become an assistant's refusal is kept for the next piece.
        """
        said = self._safety.clean(piece)
        if said is None:
            return Verdict(fault=self._safety.fault_of(piece))
        if self._is_narrating:
            self._is_narrating = not _ENDS.search(said)
            return _quoted(said)
        if not self._held and _OPENS_A_REFUSAL.fullmatch(said) and said.endswith(","):
            self._held = said
            return Verdict()
        said, self._held = f"{self._held} {said}".strip(), ""
        if self._narrates(said):
            self._is_narrating = not _ENDS.search(said)
            return _quoted(said)
        if _ASSISTANT.search(said):
            return Verdict(fault=Fault.ASSISTANT)
        if _THE_PROMPT.search(said):
            return Verdict(fault=Fault.OF_THE_PROMPT)
        if self._echoes(said):
            return Verdict(fault=Fault.ECHO)
        return Verdict(in_first_person(said, self._names))

    def _narrates(self, said: str) -> bool:
        return bool(self._acts.match(said) or _GESTURE_ALONE.match(said))

    def _echoes(self, said: str) -> bool:
        if not said.endswith("?"):
            return False  # an answer may well begin with words of its question
        given_back = _plain(said)
        n_words = given_back.count(" ") + 1
        return n_words >= _LEAST_ECHOED and f" {self._asked} ".endswith(f" {given_back} ")


def own_names(name: str, others: Iterable[str]) -> tuple[str, ...]:
    """What of an NPC's name is nobody else's, the longest first."""
    taken = {word for other in others for word in other.casefold().split()}
    parts = [part for part in name.split() if part[:1].isupper() and len(part) > 2 and part.casefold() not in taken]
    return tuple(sorted({name, *(part for part in parts if part.casefold() not in _TITLES)}, key=len, reverse=True))


_ENGLISH_TITLES: Final = "the sister brother captain lord lady king queen sir dame father mother master mistress doctor"
_GERMAN_TITLES: Final = "der die das schwester bruder kapitän herr frau könig königin vater mutter meister doktor"
_TITLES: Final = frozenset((*_ENGLISH_TITLES.split(), *_GERMAN_TITLES.split()))


def _quoted(narrated: str) -> Verdict:
    """What is spoken within a sentence that tells who speaks it."""
    spoken = " ".join(found.group(1).strip() for found in _QUOTED.finditer(narrated))
    return Verdict(spoken) if spoken else Verdict(fault=Fault.NARRATED)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


# Whose a thing is, and who said it: put right where a small model takes the question's "my" and "I" for its own.
#
# Asked "What is my horse called?", it says "My horse is called Bramble." The words are right and the person is not, so
# the sentence is put right and not thrown away. Only where the question itself says whose it is, and nothing that the
# NPC knows of itself speaks of such a thing. English and German.


_YOURS: Final = re.compile(r"\b(?:your|yours|dein\w*|euer|eure\w*)\b", re.IGNORECASE)
_OWN_TOO: Final = "too also own than better worse auch ebenso eigen eigene eigenes eigener als besser"
_TOO: Final = frozenset(_OWN_TOO.split())
_NO_THING: Final = frozenset(("name", "names", "namen"))
"""Who answers with its own name has misread the question; with the other person it would say what is false."""
_MY: Final = re.compile(r"\b(my|mein(?:e|en|em|er|es)?)(?= \w)", re.IGNORECASE)
_DID_I: Final = re.compile(
    r"\b(?:did|have|had) i\b(?: \w+){0,2} (?:say|said|tell|told|mention|mentioned|promise|promised)\b"
    r"|\b(?:habe|hab|hatte) ich\b.*\b(?:gesagt|erzählt|erwähnt|versprochen)\b",
    re.IGNORECASE,
)
_TOLD: Final = re.compile(r"\bI((?: have| had|'ve)?) told you\b")
_SAID: Final = re.compile(r"\bI((?: have| had|'ve)?) (said|mentioned|promised)\b(?: you)?")
_WITHIN: Final = re.compile(r"(?<=[^.!?] )You(?=(?: have| had|'ve)? (?:told|said|mentioned|promised)\b)")
_GESAGT: Final = re.compile(r"\b(I|i)ch (habe|hatte)( dir)?(?=.*\b(?:gesagt|erzählt|erwähnt|versprochen)\b)")
_HAST: Final = {"habe": "hast", "hatte": "hattest"}


def with_its_owner(sentence: str, asked: Asked) -> str:
    """The sentence with the person that the question means.

    >>> with_its_owner("My horse is called Bramble.", Asked(question="What is my horse called?"))
    'Your horse is called Bramble.'
    >>> with_its_owner("I said that she limps.", Asked(question="What did I tell you of her?"))
    'You said that she limps.'
    """
    if _DID_I.search(asked.question):
        sentence = _said_by_the_asker(sentence)
    if _YOURS.search(asked.question) or not _TOO.isdisjoint(words(sentence)):
        return sentence
    # It may have a horse of its own, if it knows of one.
    own = set(words(" ".join((*asked.identity, *asked.facts))))
    theirs = {thing for found in _MY.finditer(asked.question) for thing in _behind(found)} - own - _NO_THING

    def turned(found: re.Match[str]) -> str:
        return _turned(found[1]) if not theirs.isdisjoint(_behind(found)) else found[0]

    return _MY.sub(turned, sentence)


def _behind(found: re.Match[str]) -> list[str]:
    """The words behind a "my": what it is about, with an adjective or without."""
    return [word for word in words(found.string[found.end() :])[:2] if word not in ENGLISH and word not in GERMAN]


def _turned(mine: str) -> str:
    yours = "your" if mine.casefold() == "my" else "dein" + mine[4:]
    return yours.capitalize() if mine[0].isupper() else yours


def _said_by_the_asker(sentence: str) -> str:
    sentence = _SAID.sub(r"You\1 \2", _TOLD.sub(r"You\1 told me", sentence))
    return _GESAGT.sub(_du_hast, _WITHIN.sub("you", sentence))


def _du_hast(found: re.Match[str]) -> str:
    you = "Du" if found[1] == "I" else "du"
    return f"{you} {_HAST[found[2]]}{' mir' if found[3] else ''}"


# An NPC that takes itself for somebody else: "My name is Tamsin." of who is asked by Tamsin, or a greeting that calls
# its own name.
#
# A small model takes a name that stands in the talk for the one that is asked for. Only names of the campaign count:
# what else an NPC is called its author knows, and no list of ours does.


_MY_NAME_IS: Final = (
    r"(?:my name(?: is|['’]s)|i(?: am|['’]m) called|(?:they|people|folk|folks) call me|(?:you (?:can|may) )?call me"
    r"|i go by(?: the name of)?|mein name ist|ich hei(?:ß|ss)e|(?:man|alle|die leute) nenn(?:t|en) mich"
    r"|nenn(?:t|en sie)? mich)"
)
_I_AM: Final = r"(?:i(?: am|['’]m)|ich bin(?: der| die)?)"
_MISTAKEN_IDENTITY_ENDS: Final = r"(?=\s*(?:[.,;:!…–—-]|$|(?:the|of|from|at your service|von|aus|zu ihren diensten)\b))"
"""Behind a name that is all that is said: "I am Tamsin's friend" and "Ich bin Tamsin begegnet" say something else."""
_GREETING: Final = (
    r"(?:hello|hi|hey|hail|greetings|welcome(?: back)?|well met|farewell|good ?bye|good (?:day|morning|evening|night"
    r"|afternoon)|thank you|thanks|hallo|grüß (?:dich|gott)|sei gegrüßt|seid gegrüßt|guten (?:tag|morgen|abend)"
    r"|gute nacht|willkommen(?: zurück)?|leb wohl|auf wiedersehen|danke)"
)
_DEAR: Final = r"(?:(?:there|again|my|dear|old|friend|good|mein\w*|liebe[rs]?|alte[rs]?|gute[rs]?|freund(?:in)?),? )*"


def takes_itself_for_another(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. A question asks for the name, and a piece goes on with those before it."""
    said = f"{asked.so_far} {sentence}".strip()
    at = len(said) - len(sentence)
    own = own_names(character.name, character.others)
    called = {*own, character.name, *character.aliases}
    others = _names((*character.others, asked.speaker_name), not_of=" ".join(called))
    patterns = []
    if others and not sentence.rstrip().endswith("?"):
        patterns.append(_says_to_be(others))
    patterns.append(_greets(tuple(sorted(called, key=len, reverse=True))))
    new = (found for pattern in patterns for found in pattern.finditer(said) if found.end() > at)
    return Fault.IDENTITY if next(new, None) is not None else None


@lru_cache(maxsize=64)
def _names(others: tuple[str, ...], *, not_of: str) -> tuple[str, ...]:
    """What others are called, whole and by each of their names, the longest first."""
    own = set(_words(not_of))
    found = {name for one in others for name in (one, *one.split()) if name[:1].isupper() and len(name) > 2}
    return tuple(sorted((name for name in found if own.isdisjoint(_words(name))), key=len, reverse=True))


def _words(text: str) -> Iterator[str]:
    yield from text.casefold().split()


@lru_cache(maxsize=64)
def _says_to_be(names: tuple[str, ...]) -> re.Pattern[str]:
    name = _one_of(names)
    return re.compile(rf"\b(?i:{_MY_NAME_IS}) {name}\b(?!['’])|(?<!\w)(?i:{_I_AM}) {name}\b{_MISTAKEN_IDENTITY_ENDS}")


@lru_cache(maxsize=64)
def _greets(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[.!?…] )(?i:{_GREETING}),? (?i:{_DEAR}){_one_of(names)}(?=[.,!?…]|$)")


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"


# An NPC that speaks of itself as of somebody else, where no word can put it right (see `in_first_person`).


_THIRD_PERSON_SAYS_I: Final = re.compile(
    r"\b(?:I|I['’]\w+|me|my|mine|we|our|us|ich|mich|mir|mein\w*|wir|uns\w*)\b", re.IGNORECASE
)
_VERB: Final = r"(?:[a-z]+(?:s|ed)|did|made|knew|saw|told|can|will|may|must|[a-zäöüß]+t|weiß|kann|will|muss)"
_NO_VERB: Final = frozenset(("is", "ist", "at", "just", "yes", "that", "it", "but", "not", "nicht", "mit", "dort"))
"""Behind a name that is said by itself: "Brunhild is what they call me", "Brunhild, at your service"."""


def tells_of_itself(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. A name alone, or a sentence that says I, is no fault."""
    own = "|".join(re.escape(name) for name in own_names(character.name, character.others))
    if re.search(rf"\b(?:I|i) (?:know|trust|met|saw|like|love|remember) (?:{own})\b(?!['’]s)", sentence):
        return Fault.THIRD_PERSON
    if _THIRD_PERSON_SAYS_I.search(sentence):
        return None
    found = re.match(rf"(?:{own}) ({_VERB})\b", sentence)
    return Fault.THIRD_PERSON if found is not None and found.group(1) not in _NO_VERB else None
