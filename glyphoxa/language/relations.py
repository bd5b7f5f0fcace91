"""Word relations as sentences, so that people and models never read a relation type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final

from glyphoxa.domain.campaign import Campaign
from glyphoxa.language.language_data import Lexicon, languages, lexicon, texts
from glyphoxa.language.words import fold, words

_ENDS: Final = re.compile(r"\{(source|target)\}")

_PAIRS: Final = (
    ("PARENT_OF", "CHILD_OF"),
    ("GRANDPARENT_OF", "GRANDCHILD_OF"),
    ("UNCLE_OR_AUNT_OF", "NEPHEW_OR_NIECE_OF"),
    ("PARENT_IN_LAW_OF", "CHILD_IN_LAW_OF"),
    ("GUARDIAN_OF", "WARD_OF"),
    ("EMPLOYER_OF", "EMPLOYED_BY"),
    ("MASTER_OF", "SERVES"),
    ("MENTOR_OF", "APPRENTICE_OF"),
    ("SUPPLIER_OF", "CUSTOMER_OF"),
    ("OWNS", "OWNED_BY"),
    ("LEADS", "LED_BY"),
    ("HAS_MEMBER", "MEMBER_OF"),
)
_MUTUAL: Final = (
    "SIBLING_OF", "COUSIN_OF", "SIBLING_IN_LAW_OF", "RELATED_TO", "MARRIED_TO", "ENGAGED_TO", "LOVER_OF", "FRIEND_OF",
    "ALLIED_WITH", "HOSTILE_TO", "RIVAL_OF", "NEIGHBOUR_OF", "COLLEAGUE_OF", "PARTNER_OF",
)  # fmt: skip
OTHER_END: Final[Mapping[str, str]] = {
    **dict(_PAIRS),
    **{of_target: of_source for of_source, of_target in _PAIRS},
    **{each: each for each in _MUTUAL},
}
"""The type of the same relation, seen from its other end."""


@dataclass(frozen=True, slots=True)
class RelationType:
    """A type of relation, however a campaign spells it.

    Attributes:
        type: SIBLING_OF for BROTHER_OF, "sister of" and HAS_TWIN.
        sex: Sex of the source: 0 for any, 1 for a man, 2 for a woman.
        is_turned: Source and target are exchanged, as in HAS_TWIN.
        word: The noun in its spelling, "brother"; empty if `type` says the same.
        language: The language of that noun.
        spelled: The stored spelling: BROTHER_OF.
    """

    type: str
    sex: int = 0
    is_turned: bool = False
    word: str = ""
    language: str = ""
    spelled: str = ""


def known_type(relation: str) -> RelationType | None:
    """Return a known type; None for one of a campaign's own. Case, spaces and punctuation are ignored.

    >>> known_type("brother of") == known_type("BROTHER_OF") == known_type("BrotherOf")
    True
    >>> known_type("SWORN_ENEMY_AT_NIGHT")
    """
    return _types().get(fold(relation))


@cache
def spelled_types() -> tuple[str, ...]:
    """Return the known types of all languages in their stored spelling: SIBLING_OF, BROTHER_OF."""
    nouns = (_as_type(form.format(word=word)) for of, word, _, _ in _nouns() for form in of.value("noun_types")[:1])
    return tuple(dict.fromkeys((*OTHER_END, *lexicon("relations").value("sentences"), *nouns)))


@cache
def _types() -> Mapping[str, RelationType]:
    found = {fold(each): RelationType(each) for each in (*OTHER_END, *lexicon("relations").value("sentences"))}
    for language in languages():
        for each, listed in lexicon("relations", language).table("spelled").items():
            for spelled in listed:
                found.setdefault(fold(spelled), RelationType(each))
    for of, word, type_, sex in _nouns():
        straight, turned = of.value("noun_types"), of.value("noun_types_of_other_end")
        adds_nothing = not sex and of.value("nouns")[type_][0].split(", ")[0] == word
        shown = "" if adds_nothing else word
        named = "" if adds_nothing else _as_type(straight[0].format(word=word))
        read = RelationType(type_, sex, word=shown, language=of.value("language"), spelled=named)
        for form in (*straight, *(["{word}"] if OTHER_END.get(type_) == type_ else [])):
            found.setdefault(fold(form.format(word=word)), read)
        read = replace(read, is_turned=True, word=word, spelled=_as_type(turned[0].format(word=word)))
        for form in turned:
            found.setdefault(fold(form.format(word=word)), read)
    return found


def _nouns() -> Iterator[tuple[Lexicon, str, str, int]]:
    """Yield each word with its language's data, its type and its sex."""
    for language in languages():
        of = lexicon("relations", language)
        for type_, forms in of.value("nouns").items():
            for sex, listed in enumerate(forms):
                yield from ((of, word, type_, sex) for word in listed.split(", ") if word)


@cache
def asked_types(language: str) -> Mapping[tuple[str, ...], Sequence[RelationType]]:
    """Return the types that nouns in a question ask for ("sister"), by the folded words of the noun."""
    found: dict[tuple[str, ...], list[RelationType]] = {}
    of = lexicon("relations", language)
    nouns = [
        (word, RelationType(type_, sex))
        for own, word, type_, sex in _nouns()
        if own.value("language") == of.value("language")
    ]
    plurals = [(f"{word}s", each) for word, each in nouns]
    others = [(word, RelationType(type_)) for type_, listed in of.table("asked").items() for word in listed]
    for word, each in (*nouns, *plurals, *others):
        found.setdefault(tuple(part.full for part in words(word)), []).append(each)
    return found


def _as_type(spelled: str) -> str:
    return "_".join(part.text for part in words(spelled)).upper()


@dataclass(frozen=True, slots=True)
class RelationWords:
    """Words relations as sentences in one language.

    Attributes:
        language: BCP 47 tag of the campaign. Sentences are English if its language has no data.
        own: The campaign's own sentences by relation type, with `{source}` and `{target}`.
    """

    language: str = "en"
    own: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, campaign: Campaign) -> RelationWords:
        return cls(campaign.language, campaign.relation_types)

    def knows(self, relation: str) -> bool:
        """Return whether the type is known or has a sentence in the campaign file."""
        return relation in self.own or known_type(relation) is not None

    def spelled(self, relation: str) -> str:
        """Return the stored spelling of a type: "brother of" is BROTHER_OF. The campaign's own types are unchanged.

        >>> RelationWords().spelled("brother of"), RelationWords().spelled("owes a favour")
        ('BROTHER_OF', 'owes a favour')
        """
        known = None if relation in self.own else known_type(relation)
        return relation if known is None else known.spelled or known.type

    def sentence(self, relation: str, source: str, target: str) -> str:
        """Return a relation as a sentence without a full stop.

        >>> RelationWords().sentence("LOCATED_AT", "Grimjaw", "The Anvil")
        'Grimjaw is at The Anvil'
        >>> RelationWords().sentence("BROTHER_OF", "Rusk", "Pilar")
        'Rusk is the brother of Pilar'
        >>> RelationWords().sentence("HEARTTHROB", "Rusk", "Pilar")
        'Rusk: heartthrob: Pilar'
        """
        return _filled(self._template(relation), source, target)

    def between(self, relation: str) -> str:
        """Return the words between the two names of the sentence, or the type in words if it has another form.

        >>> RelationWords().between("LOCATED_AT"), RelationWords().between("RIVAL")
        ('is at', 'rival')
        """
        before, source, words, target, after = _ENDS.split(self._template(relation))
        is_between = not before and not after and (source, target) == ("source", "target")
        return words.strip(" :") if is_between else in_words(relation)

    def _template(self, relation: str) -> str:
        return self.own.get(relation) or _template(relation, self.language)

    def from_other_end(self, relation: str, source: str, target: str, *, sex: int = 0) -> str:
        """Return the sentence that begins with the target; empty if the type has none.

        >>> RelationWords().from_other_end("BROTHER_OF", "Rusk", "Pilar", sex=2)
        'Pilar is the sister of Rusk'
        >>> RelationWords().from_other_end("BROTHER_OF", "Rusk", "Pilar")
        'Pilar is a sibling of Rusk'
        """
        known = None if relation in self.own else known_type(relation)
        other = None if known is None else OTHER_END.get(known.type)
        if known is None or other is None or known.is_turned:
            return ""
        return _filled(_sentence_of(RelationType(other, sex), texts("relations", self.language)), target, source)


def in_words(predicate: str) -> str:
    """Return a relation type or the name of an attribute as words.

    >>> in_words("SWORN_TO"), in_words("speaking_style")
    ('sworn to', 'speaking style')
    """
    words = " ".join(predicate.replace("_", " ").split())
    return words.lower() if predicate.isupper() else words


IN_ENGLISH: Final = RelationWords()


def _filled(template: str, source: str, target: str) -> str:
    return _ENDS.sub(lambda end: source if end[1] == "source" else target, template)


@lru_cache(1024)
def _template(relation: str, language: str) -> str:
    data = texts("relations", language)
    known = known_type(relation)
    if known is not None:
        return _sentence_of(known, data)
    spelled = in_words(relation)
    form = next((each for each in data.value("own") if re.fullmatch(each["pattern"], spelled.lower())), None)
    text: str = form["sentence"] if form is not None else "{source}: {words}: {target}"
    return text.replace("{words}", spelled).replace("{Words}", spelled[:1].upper() + spelled[1:])


def _sentence_of(known: RelationType, data: Lexicon) -> str:
    is_own = bool(known.word) and known.language == data.value("language")
    text: str | None = None if is_own or known.sex else data.value("sentences").get(known.type)
    if text is None:
        forms = data.value("nouns")[known.type]
        word = known.word if is_own else forms[min(known.sex, len(forms) - 1)].split(", ")[0]
        text = data.value("noun").replace("{word}", word)
    if known.is_turned:
        text = text.replace("{source}", "{}").replace("{target}", "{source}").replace("{}", "{target}")
    return text
