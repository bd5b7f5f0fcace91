"""What people at an invented table say: names, rare words and sentences without end, the same for the same seed.

Common words come often and most words seldom, as in speech: the search for words is as hard as it is at a table.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final


def _listed(text: str) -> tuple[str, ...]:
    """Words, or, where there is a "|", what stands between them."""
    return tuple(text.split("|" if "|" in text else None))


_FIRST: Final = _listed(
    "Al Ar Bel Bra Cal Cor Dag Dor El Er Fal Fen Gar Gil Hal Hes Il Isen Jor Kal Kes Lor Lu Mar Mor Nal Ner Ol Or "
    "Per Quil Ra Rho Sal Ser Tal Thes Ul Var Ves Wil Xan Yar Yl Zan Zeph"
)
_MIDDLE: Final = _listed("a an ar e el en i ia in o on or u ul ur y")
_LAST: Final = _listed(
    "bar bek dan dis dric dun fin gar gund han kas len lin mar mund na nor rak ran ric ros sha tas thas tir van vek "
    "vin wen wyn zar"
)
_PLACE: Final = _listed("ford gate haven hollow keep march mere moor reach spire stead vale watch")
_OF_THINGS: Final = _listed("blade bell crown lantern ledger map mirror ring seal shard staff tome")
_OF_GROUPS: Final = _listed("Brotherhood Circle Compact Company Court Guild Hand League Order Pact")

_VERBS: Final = _listed(
    "saw found lost hid stole sold buried burned carried followed feared trusted betrayed warned paid robbed healed "
    "questioned chased watched guarded cursed blessed freed caught named mocked praised begged bribed"
)
_THINGS: Final = _listed(
    "lantern rope wagon boat horse sword shield cloak letter key coin barrel chest bottle torch candle book "
    "scroll bell drum knife hammer boot glove ladder bridge gate tower well mill barn tavern chapel cellar attic "
    "tunnel orchard meadow swamp harbour quarry forge market road river forest hill cave ditch wall door window "
    "stair roof chimney table bench bed blanket kettle bread cheese apple stew ale wine salt honey wolf bear "
    "raven owl rat spider goat mule dog cat ghost witch priest smith guard thief baker miller sailor hunter "
    "farmer widow orphan judge captain bishop healer singer stranger cousin brother mother uncle army tax debt "
    "oath secret promise dream fever plague storm flood fire winter harvest feast funeral wedding trial war truce "
    "treaty throne crown prison gallows shrine altar tomb"
)
_QUALITIES: Final = _listed(
    "old new broken cursed silver golden rusty hidden forgotten stolen heavy empty burning frozen crooked quiet loud "
    "strange hollow bitter sweet wet muddy narrow deep tall blind lame young cruel kind honest greedy holy sunken"
)
_WHENS: Final = _listed(
    "yesterday|this morning|last night|before the rain|at dusk|in the spring|two days ago|after the feast|at midnight|"
    "when the bell rang|before the war|on the third day|while you slept|last winter|an hour ago|once"
)

STATEMENTS: Final = (
    "{who} {verb} the {quality} {thing} near {where} {when}.",
    "I {verb} a {thing} at {where}, and nobody asked me about {who}.",
    "They say {who} {verb} {other} for a {quality} {thing}.",
    "We should go to {where} before somebody {verb} the {thing} again.",
    "Do you know why {who} keeps a {quality} {thing}?",
    "{when}, the {thing} behind the {place} was {quality}, I swear it.",
    "My {thing} is {quality}, so let us rest and talk about {who} later.",
    "No, it was {other} who {verb} the {thing}, not {who}.",
    "The {rare} of {where} is worth more than a {quality} {thing}.",
    "I roll for the {thing}, and then I ask the {person} about {who}.",
    "He told me that {what} lies under the {quality} {place} of {where}.",
    "If {who} hears of {what}, we are all {quality} by {when}.",
    "There were {rare} tracks by the {place}, and the {thing} was gone.",
    "Give me the {thing} and I will tell you what {other} {verb} {when}.",
    "Nobody in {where} speaks of {who} since the {thing}.",
    "Fine, but the {person} wants a {quality} {thing} for it.",
    "So {who} and {other} met at {where}, and one of them {verb} the {thing}.",
    "Wait, did the {person} say {rare} or {thing}?",
    "What {who} wants is {what}, and {where} is where it was {verb}.",
    "Let me look for a {thing} in the {place}; it must be {quality} by now.",
)
QUESTIONS: Final = (
    "What do you know about {who} and the {thing}?",
    "Who {verb} the {quality} {thing} near {where}?",
    "Do you remember what we said about {what} at {where}?",
    "Why would {who} have {verb} {other}?",
    "Have you ever been to {where}, and was the {place} still {quality}?",
    "Where did {who} hide the {thing}?",
    "What happened to the {person} with the {quality} {thing}?",
    "Tell me about {what}.",
)


def pick_by_rank(n: int, *, exponent: float = 0.9, offset: int = 3) -> list[float]:
    """Cumulative weights for `random.choices`: the rank r, from 0, is drawn like 1 / (r + 1 + offset) ** exponent."""
    return list(accumulate((rank + 1 + offset) ** -exponent for rank in range(n)))


@dataclass(frozen=True, slots=True)
class Sentence:
    """
    Attributes:
        names: The entities' names in it, each once.
    """

    text: str
    names: tuple[str, ...]


class Words:
    """Draws names and sentences.

    Args:
        people: Names, those who are spoken of most first; so are `places` and `things`.
        rare: How many invented words there are that no dictionary knows.
    """

    def __init__(
        self, people: Sequence[str], places: Sequence[str], things: Sequence[str], *, seed: int, rare: int = 4_000
    ) -> None:
        of_people, of_places, of_things = ((names, pick_by_rank(len(names))) for names in (people, places, things))
        self._names = {"who": of_people, "other": of_people, "where": of_places, "what": of_things}
        dice = random.Random(f"rare words {seed}")
        invented = sorted({invented_word(dice) for _ in range(rare)})
        self._ranked = {
            slot: (words, pick_by_rank(len(words)))
            for slot, words in (("verb", _VERBS), ("thing", _THINGS), ("quality", _QUALITIES), ("rare", invented))
        }

    def sentence(self, dice: random.Random, templates: Sequence[str] = STATEMENTS) -> Sentence:
        names = {slot: _drawn(dice, ranked) for slot, ranked in self._names.items()}
        words = {slot: _drawn(dice, ranked) for slot, ranked in self._ranked.items()}
        template = dice.choice(templates)
        text = template.format(
            **names, **words, place=dice.choice(_THINGS), person=dice.choice(_THINGS), when=dice.choice(_WHENS)
        )
        return Sentence(
            text[0].upper() + text[1:], tuple(name for slot, name in names.items() if f"{{{slot}}}" in template)
        )

    def turn(self, dice: random.Random) -> Sentence:
        """One to four sentences, two in the mean."""
        said = [self.sentence(dice) for _ in range(dice.choice((1, 1, 2, 2, 2, 3, 4)))]
        names = dict.fromkeys(name for one in said for name in one.names)
        return Sentence(" ".join(one.text for one in said), tuple(names))

    def question(self, dice: random.Random) -> str:
        return self.sentence(dice, QUESTIONS).text


def invented_word(dice: random.Random) -> str:
    return (dice.choice(_FIRST) + dice.choice(_MIDDLE) + dice.choice(_MIDDLE) + dice.choice(_LAST)).lower()


def invented_name(dice: random.Random, kind: str) -> str:
    """Of a kind of entity; two calls may give the same."""
    stem = dice.choice(_FIRST) + dice.choice(_MIDDLE)
    match kind:
        case "npc" | "player":
            family = dice.choice(_FIRST) + dice.choice(_LAST)
            return f"{stem}{dice.choice(_LAST)} {family}" if dice.random() < 0.5 else stem + dice.choice(_LAST)
        case "location":
            return stem + dice.choice(_PLACE)
        case "item":
            return f"{dice.choice(_QUALITIES).title()} {dice.choice(_OF_THINGS).title()} of {stem}{dice.choice(_LAST)}"
        case "faction":
            return f"{dice.choice(_OF_GROUPS)} of {stem}{dice.choice(_LAST)}"
        case _:
            return f"The {dice.choice(_QUALITIES).title()} {dice.choice(_THINGS).title()} of {stem}{dice.choice(_LAST)}"


def _drawn(dice: random.Random, ranked: tuple[Sequence[str], list[float]]) -> str:
    words, weights = ranked
    return dice.choices(words, cum_weights=weights)[0]
