"""Names that the campaign does not know yet, by how they are written and introduced."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from glyphoxa.chronicle.sentences import word_set
from glyphoxa.language.vocabulary import UNLISTED, Vocabulary, vocabulary_of
from glyphoxa.language.words import Word, fold, words
from glyphoxa.turns.calls import trades_of

# What people are at work, and by rank (English and German).


_RANKS: Final = word_set(
    "miller ferryman fisherman fisher farmer baker butcher brewer carpenter mason tailor cobbler scholar sage librarian"
    " spy thief assassin bard minstrel sailor captain merchant banker judge mayor king queen prince princess duke"
    " duchess baron baroness count countess noble nobleman knight squire hermit shepherd miner pirate smuggler"
    " müller fährmann fischer bauer bäcker metzger brauer zimmermann maurer schneider schuster gelehrter spion dieb"
    " mörder barde seemann kapitän händler richter bürgermeister könig königin prinz prinzessin herzog graf gräfin"
    " ritter knappe einsiedler hirte bergmann pirat schmuggler"
)
"""Beside the trades that are known by their business."""
_ENDINGS: Final = ("keeper", "maker", "monger", "wright", "smith", "seller", "wärter", "macher", "hüter", "müllerin")


def is_occupation(word: str) -> bool:
    """
    Args:
        word: In lower case.
    """
    return word in _RANKS or word.endswith(_ENDINGS) or bool(trades_of(word))


def occupation_in(noun: str) -> str | None:
    """The words up to a trade or a rank."""
    spoken = noun.split()
    for n, word in enumerate(spoken, start=1):
        if is_occupation(word.lower()):
            return " ".join(spoken[:n])
    return None


_JOINED_BY: Final = frozenset(("of", "von", "vom", "zu", "de", "la", "du"))
_TITLES: Final = word_set(
    "lord lady king queen prince princess duke duchess baron baroness count countess captain sir dame master"
    " mistress father mother brother sister elder sovereign emperor empress general commander mayor professor"
    " arcanist saint herr frau könig königin fürst fürstin graf gräfin herzog herzogin hauptmann meister"
    " meisterin bruder schwester vater mutter ritter bürgermeister bürgermeisterin"
)
_PLACES: Final = word_set(
    "city town village keep castle tower inn tavern forest wood woods mountain mountains river lake sea road"
    " street hill hills valley temple bridge gate island isle isles desert swamp marsh district quarter kingdom"
    " empire realm peak peaks cliff cliffs cave caves mine mines bay harbor harbour port coast stadt dorf burg"
    " schloss turm wald berg fluss see straße gasse tal tempel brücke tor insel sumpf reich hafen höhle mine"
)
_FACTIONS: Final = word_set(
    "guild order brotherhood sisterhood clan company council cult house family syndicate society army legion"
    " circle gilde orden bruderschaft clan bund rat kult haus familie heer legion zirkel"
)
_ITEMS: Final = word_set(
    "sword blade axe hammer bow dagger amulet ring staff crown shield armor armour cloak book tome orb stone"
    " gem horn schwert klinge axt hammer bogen dolch amulett ring stab krone schild rüstung mantel buch stein"
    " horn"
)
_INTO: Final = word_set("in at to from near into toward towards reach leave nach aus bei")
_KIN: Final = word_set("father mother brother sister vater mutter bruder schwester")
_MY: Final = word_set("my our your his her their mein meine dein deine sein seine ihr ihre unser unsere")
_BEFORE_NOUNS: Final = word_set(
    "der die das den dem des ein eine einen einem einer zum zur im am ins vom beim kein keine jeder jede diese dieser"
    " mein meine dein deine sein seine ihr ihre unser unsere euer eure viel viele"
)
"""German: a name stands without them, any other noun with one."""
_NOT_OF_THE_STORY: Final = word_set(
    "january february march april may june july august september october november december monday tuesday"
    " wednesday thursday friday saturday sunday christmas halloween easter internet twitch youtube twitter"
    " facebook google geek sundry dungeons dragons dungeon dragon master dm gm npc pc ac hp xp jesus christ god"
    " lord american english french german british european america europe germany england london paris star"
    " wars disney batman superman common elvish dwarvish orcish infernal celestial draconic undercommon"
    " perception stealth insight persuasion investigation arcana history athletics acrobatics intimidation"
    " deception strength dexterity constitution wisdom intelligence charisma initiative inspiration januar"
    " februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag"
    " weihnachten ostern gott deutschland spielleiter"
)
_CALLED: Final = re.compile(
    r"\b(?:called|named|name is|name's|names? was|known as|heißt|heiße|heißen|namens|name ist|genannt|nennt sich)"
    r"\s+(?:the |der |die |das )?$",
    re.IGNORECASE,
)
_CASTS: Final = re.compile(r"\b(?:cast|casts|casting|use|using|have|wirke|zaubere)\W+(?:\w+\W+)?$", re.IGNORECASE)
"""What stands behind it is a spell, or a feat."""
_SHORTEST: Final = 3
_LONGEST: Final = 6
"""Words of a name."""


@dataclass(frozen=True, slots=True)
class NewName:
    """
    Attributes:
        start: Its first character; `end` is one past its last, a possessive ending included.
        confidence: How sure it is that it is a name at all.
    """

    text: str
    type: str
    start: int
    end: int
    confidence: float


class NameFinder:
    """Finds new names in utterances of one language (BCP 47 tag)."""

    def __init__(self, language: str) -> None:
        self._vocabulary: Vocabulary = vocabulary_of(language)
        self._has_capital_nouns = language.lower().startswith("de")
        self._rarity = lru_cache(8192)(self._vocabulary.rarity)

    def names_in(self, text: str, *, taken: Collection[tuple[int, int]], nobody: Collection[str]) -> Iterator[NewName]:
        """
        Args:
            taken: Places of names that are known.
            nobody: Folded names that are no part of the story: the players' own.
        """
        spoken = words(text)
        if not _is_mixed_case(spoken):
            return
        at = 0
        while at < len(spoken):
            run = self._run(text, spoken, at, taken)
            if run:
                found = self._judged(text, spoken, at, run, nobody)
                if found is not None:
                    yield found
            at += max(len(run), 1)

    def _run(
        self, text: str, spoken: tuple[Word, ...], at: int, taken: Collection[tuple[int, int]]
    ) -> tuple[Word, ...]:
        """The words with capitals from there on that stand together."""
        if not _may_be_of_a_name(spoken[at], taken):
            return ()
        end = at + 1
        while end < len(spoken) and end - at < _LONGEST and spoken[end].joins and not spoken[end - 1].tail:
            if _may_be_of_a_name(spoken[end], taken):
                end += 1
            elif (n := self._joining(spoken, end, taken)) > 0:
                end += n + 1
            else:
                break
        return spoken[at:end]

    def _joining(self, spoken: tuple[Word, ...], at: int, taken: Collection[tuple[int, int]]) -> int:
        """How many small words stand there between two parts of a name: "of", "of the"."""
        if self._has_capital_nouns or spoken[at].folded not in _JOINED_BY:
            return 0
        n = 2 if at + 1 < len(spoken) and spoken[at + 1].folded == "the" else 1
        return n if at + n < len(spoken) and _may_be_of_a_name(spoken[at + n], taken) else 0

    def _judged(
        self, text: str, spoken: tuple[Word, ...], at: int, run: tuple[Word, ...], nobody: Collection[str]
    ) -> NewName | None:
        # The first word of a sentence has its capital anyway: it counts only if it is no word of the language.
        while run and (run[0].opens or run[0].folded in _NOT_OF_THE_STORY) and not self._is_unheard(run[0]):
            if run[0].folded in _TITLES and len(run) > 1:
                break
            run, at = run[1:], at + 1
        while run and not run[0].is_capital:
            run, at = run[1:], at + 1  # "of the Grennock" is the end of a name that was cut
        if len(run) > 1 and run[0].folded in _KIN and at and spoken[at - 1].folded in _MY:
            run, at = run[1:], at + 1  # "my brother Odo" is called Odo
        while run and run[-1].folded in _NOT_OF_THE_STORY:
            run = run[:-1]
        if not run:
            return None
        name = text[run[0].start : run[-1].end - len(run[-1].tail)]
        if len(fold(name)) < _SHORTEST or fold(name) in nobody or any(each.folded in nobody for each in run):
            return None
        before = text[: run[0].start]
        is_called = _CALLED.search(before[-40:]) is not None
        unheard = sum(self._is_unheard(each) for each in run)
        titled = run[0].folded in _TITLES and len(run) > 1
        kind = self._kind(spoken, at, run)
        if self._has_capital_nouns:
            sure = 0.85 if is_called else 0.75 if unheard and titled else 0.6 if unheard == len(run) else 0.0
            if sure < 0.7 and len(run) == 1 and (run[0].opens or (at and spoken[at - 1].folded in _BEFORE_NOUNS)):
                sure = 0.0
        elif is_called or titled:
            sure = 0.85
        elif unheard and (len(run) > 1 or not run[0].opens):
            sure = 0.75
        elif unheard:
            # "Balgus said" may be a name, "Urgh!" is none.
            sure = 0.6 if at + 1 < len(spoken) and spoken[at + 1].joins else 0.0
        elif len(run) > 1 and not run[0].opens and not _CASTS.search(before[-20:]):
            sure = 0.65
        else:
            sure = 0.0
        if not sure:
            return None
        return NewName(name, kind, run[0].start, run[-1].end, sure)

    def _is_unheard(self, word: Word) -> bool:
        return (
            self._rarity(word.folded) >= UNLISTED
            and word.folded not in _NOT_OF_THE_STORY
            and not (self._has_capital_nouns and is_occupation(word.text.lower()))
        )

    def _kind(self, spoken: tuple[Word, ...], at: int, run: tuple[Word, ...]) -> str:
        inside = {each.folded for each in run}
        around = inside | {each.folded for each in spoken[max(at - 3, 0) : at]}
        if run[0].folded in _TITLES:
            return "npc"
        for kind, signs in (("location", _PLACES), ("faction", _FACTIONS), ("item", _ITEMS)):
            if inside & signs or (around & signs and "of" in around):
                return kind
        if at and spoken[at - 1].folded in _INTO:
            return "location"
        return "npc"


def _may_be_of_a_name(word: Word, taken: Collection[tuple[int, int]]) -> bool:
    return (
        word.is_capital
        and not word.text.isupper()
        and word.text.lower() not in ("i", "i'm", "i'll", "i've", "i'd")
        and "'" not in word.text[:-2]
        and not any(start < word.end and word.start < end for start, end in taken)
    )


def _is_mixed_case(spoken: tuple[Word, ...]) -> bool:
    """A transcript in capitals, or in none, says nothing of names."""
    return any(word.is_capital for word in spoken) and any(not word.is_capital for word in spoken)
