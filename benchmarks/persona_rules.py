"""What is said of an answer, by rules: no model judges.

They are the benchmark's own: by what the product rejects a sentence is not asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from benchmarks.persona_data import Line

_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")
_SELF: Final = re.compile(r"\b(?:i|i'\w+|me|my|mine|myself|we|our|us|ich|mich|mir|mein\w*|wir|uns\w*)\b")
_ASSISTANT: Final = re.compile(
    r"\bas an? (?:ai|artificial|language)|\blanguage model\b|\bsprachmodell\b|\bchatbot\b|\bchatgpt\b"
    r"|\bopenai\b|\bqwen\b"
    r"|\balibaba\b|\bassist(?:ant|ance|ieren|ent)?\b|\bassistent\w*\b|\bapologi[sz]e\b|\bi'?m sorry, but\b"
    r"|\bhow (?:can|may) i help\b|\bhelp you (?:today|with (?:that|anything))\b|\bfeel free\b|\blet me know if\b"
    r"|\banything else (?:i can|you)\b|\bi cannot (?:fulfil|comply|provide)|\b(?:an|no) ai\b|\ban artificial\b"
    r"|\bkünstliche intelligenz\b|\bbehilflich\b|\bentschuldigung, aber\b|\bes tut mir leid, aber\b"
    r"|\bwie kann ich (?:dir|ihnen|euch)\b|\b(?:my|the) (?:system )?prompt\b|\bpython\b|\bbullet points?\b|\bvirtual\b"
    r"|\bprogrammiert\b|\bprogrammed\b|\btrained (?:on|by|to)\b"
)
_NOT_ONE: Final = re.compile(r"\b(?:no|not|never|what is|kein\w*|nicht|was ist|know|word|wort|kenne)\b")
_IS_ONE: Final = re.compile(
    r"\b(?:i am|i'm|ich bin) (?:(?:an?|the|ein\w*|only|just|nur) )*(?:(?!(?:no|not|never|nicht|kein\w*)\b)\w+[- ]){0,2}"
    r"(?:assist\w*|ai|chatbot|(?:language )?model|sprachmodell|programm?)\b"
)
"""Whatever it is not, besides."""
_ACTS: Final = (
    r"nods?|smiles|grins|frowns|shrugs|sighs|chuckles|laughs|winks|bows|pauses|smirks|leans|looks|glances|turns|raises"
    r"|shakes|whispers|nickt|lächelt|grinst|seufzt|zögert|kichert|schmunzelt|brummt|lacht|schaut|blickt|runzelt"
    r"|schüttelt|flüstert|murmelt"
)
_STAGE: Final = re.compile(rf"[*()\[\]{{}}<>_]|(?:^|[.!?…]\s*)(?:(?:he|she|they|er|sie) )?(?:\w+ly )?(?:{_ACTS})\b")
_LABELS: Final = re.compile(
    r"^\s*[\w' .-]{1,30}:|\b(?:says|sagt)(?: to \w+| zu \w+)?:|\b(?:facts|remembered|scene|fakten)\s*:"
    r"|\bfirst person\b|\bersten person\b|\bshort sentences\b|\bkurzen sätzen\b|\bwords you speak\b|\bthe facts\b"
    r"|\byou keep this to yourself\b|\bbehältst du für dich\b|\banswer in (?:english|german)\b|\bantworte auf\b"
    r"|\bpersona\b|\bexamples?\b.*\babove\b",
    re.MULTILINE,
)
_ENGLISH_WORDS: Final = (
    "i you he she it the and not is are was a an me my has have of to in no that this for what who how with your do "
    "does will can good yes here there nothing never know they we them but on at from"
)
_GERMAN_WORDS: Final = (
    "ich du er sie es der die das den dem und nicht ist sind war ein eine einen mir mich dir dich hat habe von zu im "
    "kein keine mein meine was wer wie wo mit auf für aber hier da ja nein weiß gut nur wir ihr euch nichts davon"
)
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_OTHER_SCRIPT: Final = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NEGATES: Final = re.compile(
    r"\b(?:no|not|never|none|nobody|nothing|\w+n't|cannot|if|nein|nicht|nie|niemals|niemand|kein\w*|nichts|wenn|wer|who)\b"
)
_YES: Final = re.compile(
    r"(?:^|[.!?…]\s*)(?:yes|aye|yeah|indeed|true|right|you are right|i did|i do|guilty|ja|stimmt|das stimmt|richtig"
    r"|genau"
    r"|du hast recht|sie haben recht|das habe ich|gewiss|certainly|of course|natürlich)\b"
)
_LEAST_ECHOED: Final = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        third_person: It tells of itself as of somebody else.
        labels: It says who speaks, or words of its instructions.
        secret_told: It tells its own secret.
    """

    third_person: bool = False
    assistant: bool = False
    stage_directions: bool = False
    labels: bool = False
    wrong_language: bool = False
    echo: bool = False
    secret_told: bool = False

    @property
    def breaks(self) -> bool:
        return any(
            (self.third_person, self.assistant, self.stage_directions, self.labels, self.wrong_language, self.echo)
        )


def judged(line: Line, answer: str) -> Verdict:
    plain = _plain(answer)
    return Verdict(
        third_person=_third_person(line, answer),
        assistant=_assistant(plain),
        stage_directions=bool(_STAGE.search(plain)),
        labels=bool(_LABELS.search(plain)),
        wrong_language=_wrong_language(line, answer),
        echo=_echoes(line, answer),
        secret_told=_tells(line, plain),
    )


def _third_person(line: Line, answer: str) -> bool:
    """A sentence with its name and a verb behind it, that speaks neither of I nor of you; or "from Brunhild"."""
    parts = [part for part in line.npc.name.split() if part not in ("Schwester",)]
    name = rf"(?:{'|'.join(map(re.escape, [line.npc.name, *parts]))})"
    for sentence in _SENTENCE.findall(answer):
        if not re.search(rf"\b{name}\b", sentence) or _SELF.search(_plain(sentence)):
            continue
        if re.search(rf"\b{name} (?:\w+ly )?(?:is|was|has|does|[a-zäöüß]+(?:s|t|ed)|kann|will|weiß|war)\b", sentence):
            return True
        if re.search(rf"\b(?:from|by|about|with|von|bei|über|ist|hat) {name}\b", sentence) and not re.search(
            r"\b(?:you|du|dir|sie|das)\b", sentence.lower()
        ):
            return True
    return False


def _assistant(plain: str) -> bool:
    """A phrase of an assistant, unless it is denied or asked back ("A language model? I know no such thing.")."""
    return any(
        _IS_ONE.search(each) or (_ASSISTANT.search(each) and not _is_denied(each)) for each in _SENTENCE.findall(plain)
    )


def _is_denied(sentence: str) -> bool:
    refuses = re.search(r"\b(?:cannot|can't|unable|kann (?:\w+ )*nicht)\b|sorry|apologi|tut mir leid", sentence)
    return sentence.rstrip().endswith("?") or (bool(_NOT_ONE.search(sentence)) and not refuses)


def _wrong_language(line: Line, answer: str) -> bool:
    if _OTHER_SCRIPT.search(answer):
        return True
    own, other = (_GERMAN, _ENGLISH) if line.language == "de" else (_ENGLISH, _GERMAN)
    for sentence in _SENTENCE.findall(answer):
        words = re.findall(r"[^\W\d_]+", sentence.lower())
        n_own, n_other = sum(word in own for word in words), sum(word in other for word in words)
        if n_other > n_own and n_other >= 2:
            return True
    return False


def _echoes(line: Line, answer: str) -> bool:
    """A sentence of the answer is the line, or the most of it, and nothing else."""
    said = _words(line.text)
    for sentence in _SENTENCE.findall(answer):
        back = _words(sentence)
        if len(back) >= _LEAST_ECHOED and (
            back == said or (len(back) <= len(said) and _run(said, back) >= 0.9 * len(back))
        ):
            return True
    return False


def _run(one: list[str], other: list[str]) -> int:
    """The longest run of words that both have."""
    longest, row = 0, [0] * (len(other) + 1)
    for word in one:
        row = [0, *(row[at] + 1 if word == found else 0 for at, found in enumerate(other))]
        longest = max(longest, *row)
    return longest


def _tells(line: Line, plain: str) -> bool:
    asked = _plain(line.text)
    if line.guess and _YES.search(plain) and not _NEGATES.search(plain):
        return True
    for sentence in _SENTENCE.findall(plain):
        if sentence.rstrip().endswith("?") or _NEGATES.search(sentence):
            continue
        if any(word in sentence and (line.guess or word not in asked) for word in line.told_by):
            return True
    return False


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").lower().split())
