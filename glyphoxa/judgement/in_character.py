"""What of a reply an NPC says as itself.

Small models tell of the character instead of speaking as it ("Oskar nods."), speak of it as of somebody else ("A
draught from Brunhild"), fall into the phrases that assistants end and refuse with, or give the question back. Whoever
listens hears none of it: such a sentence is left out, or put into the first person where only the person is wrong.

Decided sentence by sentence and by plain patterns that ordinary talk does not meet: what is left out wrongly is a hole
in what an NPC says, what slips through is one odd sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.first_person import in_first_person
from glyphoxa.judgement.reply import Verdict
from glyphoxa.judgement.safety import SafetyFilter

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
