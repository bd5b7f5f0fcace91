"""How recall of talk is done: its deadlines, and the weights of its ranking."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.recall.ranking.ranking import DEFAULT, RankingWeights


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """
    Attributes:
        deadline_ms: For reading a campaign's talk into memory when that was not done before.
        embed_deadline_ms: For the question's embedding; when it is late, words alone decide.
        patient_embed_deadline_ms: The same where nobody waits.
        refresh_deadline_ms: For what has changed in the log; what is not there yet is not recalled yet.
        patient_refresh_deadline_ms: The same where nobody waits.
        summaries_deadline_ms: For the summaries of the sessions of which a recap is asked for.
        weights: Of the ranking.
    """

    deadline_ms: int = 1_000
    embed_deadline_ms: int = 40
    patient_embed_deadline_ms: int = 900
    refresh_deadline_ms: int = 20
    patient_refresh_deadline_ms: int = 300
    summaries_deadline_ms: int = 20
    weights: RankingWeights = DEFAULT
