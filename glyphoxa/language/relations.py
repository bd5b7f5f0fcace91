"""Relations as sentences: no type of a relation stands in what a person or a model reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from glyphoxa.domain.campaign import Campaign
from glyphoxa.language.lexicon import Lexicon, lexicon, primary_language

_ENDS: Final = re.compile(r"\{(source|target)\}")


@dataclass(frozen=True, slots=True)
class RelationWords:
    """Gives the sentences for relations in one language.

    Attributes:
        language: BCP 47 tag of the campaign. A language without data of its own is given English sentences.
        own: Sentences of the campaign by relation type, with `{source}` and `{target}`.
    """

    language: str = "en"
    own: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, campaign: Campaign) -> RelationWords:
        return cls(campaign.language, campaign.relation_types)

    def knows(self, relation: str) -> bool:
        """Whether the language or the campaign has a sentence of its own for a relation type."""
        return relation in self.own or relation.upper() in _data(primary_language(self.language)).value("sentences")

    def sentence(self, relation: str, source: str, target: str) -> str:
        """Return a relation as a sentence without a full stop.

        >>> RelationWords().sentence("LOCATED_AT", "Grimjaw", "The Anvil")
        'Grimjaw is at The Anvil'
        >>> RelationWords().sentence("BROTHER_OF", "Rusk", "Pilar")
        'Rusk is brother of Pilar'
        >>> RelationWords().sentence("RIVAL", "Rusk", "Pilar")
        'Rusk: rival: Pilar'
        """
        ends = {"source": source, "target": target}
        return _ENDS.sub(lambda end: ends[end[1]], self._template(relation))

    def between(self, relation: str) -> str:
        """Return what stands between the two names in the sentence; the type in words if one of them is not an end.

        >>> RelationWords().between("LOCATED_AT"), RelationWords().between("RIVAL")
        ('is at', 'rival')
        """
        before, source, words, target, after = _ENDS.split(self._template(relation))
        is_between = not before and not after and (source, target) == ("source", "target")
        return words.strip(" :") if is_between else in_words(relation)

    def _template(self, relation: str) -> str:
        return self.own.get(relation) or _template(relation, primary_language(self.language))


def in_words(predicate: str) -> str:
    """Return a relation type or the name of an attribute as words.

    >>> in_words("SWORN_TO"), in_words("speaking_style")
    ('sworn to', 'speaking style')
    """
    words = " ".join(predicate.replace("_", " ").split())
    return words.lower() if predicate.isupper() else words


IN_ENGLISH: Final = RelationWords()


def _data(language: str) -> Lexicon:
    return lexicon("relations", language) or lexicon("relations", "en")


@lru_cache(1024)
def _template(relation: str, language: str) -> str:
    data = _data(language)
    known: str | None = data.value("sentences").get(relation.upper())
    if known is not None:
        return known
    words = in_words(relation)
    form = next((each for each in data.value("own") if re.fullmatch(each["pattern"], words.lower())), None)
    text: str = form["sentence"] if form is not None else "{source}: {words}: {target}"
    return text.replace("{words}", words).replace("{Words}", words[:1].upper() + words[1:])
