"""What a sentence of a reply is judged by, and the judgement."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.turn import Fault


@dataclass(frozen=True, slots=True)
class Character:
    """Who speaks.

    Attributes:
        others: Names of everybody else who may speak.
        language: The campaign's (BCP 47).
        guards_secrets: Its own secrets are never said, whoever asks.
    """

    name: str
    aliases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    language: str = "en"
    guards_secrets: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What it answers, and what the prompt held.

    Attributes:
        question: The words of the player.
        speaker_name: Who asks.
        facts: What it knows that bears on the question, a sentence each.
        not_known: Of the facts, those which say that it knows nothing of what is asked.
        remembered: What it heard that bears on it, each line with who said it.
        identity: What it knows of itself, and the scene it is in.
        kept: Its own secrets that the question comes to.
        told: Answers from what the asker told it of just this, the best first.
        before: The talk before: what was said to it and what it answered, oldest first.
        so_far: What of this reply was passed already.
        direction: What the DM wants of the answer. It is not for players' ears.
    """

    question: str = ""
    speaker_name: str = ""
    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    so_far: str = ""
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        text: What may be said; empty for nothing.
        fault: Why a sentence was rejected. None with an empty text: there was nothing to say, or it is kept for the
            next piece.
    """

    text: str = ""
    fault: Fault | None = None
