"""Whose word is taken for a wrong form of a name.

A typed line can be made up, and a learned form is replaced for the whole campaign. So what one player alone has typed
is kept for the DM to see, and weighs nothing. It weighs what it would have when spoken as soon as another player has
said or typed the same of the same form.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from glyphoxa.domain.ids import EntityId, SpeakerId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.speech.language.words import words
from glyphoxa.speech.learning.wrong_forms import Proof

_Pair = tuple[str, EntityId]


@dataclass(slots=True)
class _Claimed:
    speakers: set[SpeakerId] = field(default_factory=set)
    waiting: list[Proof] = field(default_factory=list)


@dataclass(slots=True)
class TypedClaims:
    """Listens to the proofs of one table.

    Args:
        most: Pairs of form and name that are remembered, and proofs of each that wait; the oldest go first.
    """

    most: int = 200
    _of: OrderedDict[_Pair, _Claimed] = field(default_factory=OrderedDict)

    def weighed(self, said: Utterance, proofs: Iterable[Proof]) -> list[Proof]:
        """What an utterance proves, each proof by the witness that it counts for; with it what others had typed and it
        bears out.
        """
        return [weighed for proof in proofs for weighed in self._weighed(said, proof)]

    def _weighed(self, said: Utterance, proof: Proof) -> list[Proof]:
        pair = ("".join(word.folded for word in words(proof.heard)), proof.entity_id)
        claimed = self._of.setdefault(pair, _Claimed())
        self._of.move_to_end(pair)
        while len(self._of) > self.most:
            self._of.popitem(last=False)
        claimed.speakers.add(said.speaker_id)
        if said.typed and len(claimed.speakers) == 1:
            claimed.waiting = [*claimed.waiting, proof][-self.most :]
            return [replace(proof, by="typed")]
        borne_out, claimed.waiting = claimed.waiting, []
        return [*borne_out, proof]
