"""Ordinary words: what speech is made of, and so the last thing to be taken for a misheard name."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from glyphoxa.speech.phonetics import primary_language

_ELONGATED = re.compile(r"(.)\1\1")
_REPEATED = re.compile(r"(.{1,3}?)\1{2,}")
_ENDINGS = ("s", "es", "ed", "d", "ing", "er", "ers", "est", "ly", "y", "ish", "less", "ness", "like")


@dataclass(frozen=True)
class Vocabulary:
    """The ordinary words of a language. Words are given folded (see `glyphoxa.speech.words.fold`).

    Attributes:
        stop: Words too common to carry a name: articles, pronouns, prepositions, auxiliaries.
        common: Words that stand in a dictionary with a small letter; empty for a language without a list.
        proper: Names that stand in a dictionary: persons, places.
    """

    stop: frozenset[str]
    common: frozenset[str]
    proper: frozenset[str]

    @property
    def is_known(self) -> bool:
        """There is a list for this language: a word that is not in it is worth a second look."""
        return bool(self.common)

    def is_ordinary(self, word: str) -> bool:
        """Whether it is a word of the language, also inflected, drawn out ("nooo") or repeated ("hahaha")."""
        if word in self.stop or word in self.common:
            return True
        if word.isdigit() or _ELONGATED.search(word) or _REPEATED.fullmatch(word):
            return True
        return any(word.endswith(end) and self._is_stem(word.removesuffix(end), end) for end in _ENDINGS)

    def is_proper(self, word: str) -> bool:
        return word in self.proper

    def _is_stem(self, stem: str, ending: str) -> bool:
        if len(stem) < 4 and ending != "s":
            return False
        return (
            stem in self.common
            or (stem + "e" in self.common and ending[0] in "ei")
            or (stem[-1:] == stem[-2:-1] and stem[:-1] in self.common)
        )


@cache
def vocabulary_of(language: str) -> Vocabulary:
    """The vocabulary of a language tag, read once. A language without one gets empty sets."""
    match primary_language(language):
        case "en":
            packed = (files("glyphoxa.speech") / "data" / "words-en.txt.gz").read_bytes()
            listed = gzip.decompress(packed).decode("ascii").split()
            common = frozenset(word for word in listed if word.islower())
            proper = frozenset(word.lower() for word in listed if not word.islower())
            return Vocabulary(stop=_ENGLISH_STOP, common=common | _ENGLISH_SPOKEN, proper=proper)
        case "de":
            return Vocabulary(stop=_GERMAN_STOP, common=frozenset(), proper=frozenset())
        case _:
            return Vocabulary(stop=frozenset(), common=frozenset(), proper=frozenset())


_ENGLISH_STOP = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before being below between
    both but by can cannot could couldnt did didnt do does doesnt doing dont down during each few for from further get
    gets getting go goes going got had hadnt has hasnt have havent having he hed hell her here heres hers herself hes
    him himself his how hows i id if ill im in into is isnt it itll its itself ive just let lets like me more most my
    myself no nor not now of off oh on once one only or other our ours ourselves out over own said same say says she
    shed shes should shouldnt so some still such than that thats the their theirs them themselves then there theres
    these they theyd theyll theyre theyve this those through to too under until up upon us very was wasnt we wed well
    were werent weve what whats when where wheres which while who whos whom why will with wont would wouldnt yes yet
    you youd youll your youre yours yourself youve
    """.split()
)

_ENGLISH_SPOKEN = frozenset(
    """
    aah ah aha ahh argh aw aww bam bleh boop bruh cmon coulda dammit dang dude duh eek eh em er erm eww gah gee gimme
    goddamn gonna goodbye gotcha gotta haha hah heh hehe hey hm hmm hmmm hooray huh hush kinda lemme lol lotta ma mhm mhmm
    mm mmhmm mmm mon nah nope nuh ok okay oof ooh oops ooo ouch outta ow phew pfft psst shh shhh shoulda sorta tada
    tsk ugh uh uhh uhhuh uhm um umm ump wanna whatcha whoa whoo whoop whoops woah wow woulda ya yay yeah yep yessir
    yikes yo yup yknow
    """.split()
)

_GERMAN_STOP = frozenset(
    """
    ab aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes ans auch auf aus
    bei beim bin bis bist da dabei dadurch dafur dagegen daher dahin damals damit danach daneben dann daran darauf
    daraus darin darum das dass dasselbe davon davor dazu dein deine deinem deinen deiner dem den denn der deren des
    dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines
    einig einige einmal er erst es etwas euch euer eure eurem euren eurer fast fur gab ganz gar gegen gehe gehen geht
    gerade gern gesagt gewesen ging gut guten habe haben hat hatte hatten hattest her heute hier hin hinter ich ihm ihn
    ihnen ihr ihre ihrem ihren ihrer im immer in indem ins ist ja jede jedem jeden jeder jedes jene jetzt kann kannst
    kein keine keinem keinen keiner komm kommen kommt konnen konnte lass machen macht mal man manche mehr mein meine
    meinem meinen meiner mich mir mit muss mussen nach nein nicht nichts noch nun nur ob oder ohne sage sagen sagt
    schon sehr sein seine seinem seinen seiner seit selbst sich sie sind so soll sollte sondern sonst uber um und uns
    unser unsere unter viel vom von vor wahrend wann war waren warum was weg weil weiter welche welchem welchen welcher
    wenn wer werde werden wie wieder will wir wird wirst wo wohl wollen wollte wurde wurden zu zum zur zwar zwischen
    """.split()
)
