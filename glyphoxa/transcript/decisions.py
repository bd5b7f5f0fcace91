"""What the DM decides of this evening's talk, as news for a table that is being played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from glyphoxa.domain.events import UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.transcript.ports import Decided

News = UtteranceRetracted | UtteranceRevised


class DecidedTalk:
    """Compares what is decided now with what was decided when it was looked at last.

    Args:
        text_of: What the table believes was said; None for what it does not know.
    """

    def __init__(self, text_of: Callable[[UtteranceId], str | None]) -> None:
        self._text_of = text_of
        self._last: dict[UtteranceId, Decided] = {}

    def take(self, decided: Sequence[Decided]) -> list[News]:
        """What the table is to be told, in the order of the talk; what was taken back first.

        Args:
            decided: Everything that is decided of its session.
        """
        now = {each.utterance.id: each for each in decided}
        before, self._last = self._last, now
        news: list[News] = []
        for utterance, old in before.items():
            if utterance not in now and old.own_text is not None:
                own = replace(old.utterance, text=old.own_text)
                news += self._worded(replace(old, utterance=own), old.utterance.text)
            if old.is_retracted and (utterance not in now or not now[utterance].is_retracted):
                news.append(UtteranceRetracted(old.utterance, is_retracted=False))
        for utterance, new in now.items():
            known = before.get(utterance)
            was = (self._text_of(utterance) or new.own_text) if known is None else known.utterance.text
            if was is not None and (new.own_text is not None or known is not None):
                news += self._worded(new, was)
            if new.is_retracted and (known is None or not known.is_retracted):
                news.append(UtteranceRetracted(new.utterance))
        return news

    def _worded(self, decided: Decided, was: str) -> list[News]:
        said = decided.utterance
        return [] if said.text == was else [UtteranceRevised(said, replace(said, text=was))]
