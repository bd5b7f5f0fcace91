"""An open table learns the DM's decisions on its talk."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.events import UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import SpeakerId
from glyphoxa.transcript.ports import Decided, DecidedTalk
from tests.support.builders import an_utterance

HEARD = an_utterance("It was Liora.", id="u1")


def now(text: str) -> Utterance:
    return replace(HEARD, text=text)


def a_table() -> DecidedTalk:
    return DecidedTalk({HEARD.id: HEARD}.get)


def corrected(text: str) -> Decided:
    return Decided(now(text), is_retracted=False, own_text=HEARD.text)


def test_what_is_retracted_is_told_once_and_so_is_its_return() -> None:
    talk, retracted = a_table(), Decided(HEARD, is_retracted=True)
    assert talk.take([retracted]) == [UtteranceRetracted(HEARD)]
    assert talk.take([retracted]) == []
    assert talk.take([]) == [UtteranceRetracted(HEARD, is_retracted=False)]
    assert talk.take([]) == []


def test_other_words_are_told_with_those_that_the_table_believed_and_so_is_their_end() -> None:
    talk = a_table()
    assert talk.take([corrected("Nobody.")]) == [UtteranceRevised(now("Nobody."), HEARD)]
    assert talk.take([corrected("Nobody.")]) == []
    assert talk.take([corrected("Somebody.")]) == [UtteranceRevised(now("Somebody."), now("Nobody."))]
    assert talk.take([]) == [UtteranceRevised(HEARD, now("Somebody."))]


def test_a_table_that_was_opened_with_the_dms_words_is_told_nothing_of_them() -> None:
    talk = DecidedTalk({HEARD.id: now("Nobody.")}.get)
    assert talk.take([corrected("Nobody.")]) == []


def test_what_a_second_look_found_is_not_undone_by_what_is_retracted_beside_it() -> None:
    """Only what the DM decided is followed: the log may have a second look's words later than the table."""
    talk = DecidedTalk({HEARD.id: now("It was Lyora.")}.get)
    other = an_utterance("Hm.", id="u2")
    assert talk.take([Decided(other, is_retracted=True)]) == [UtteranceRetracted(other)]


def test_corrected_speaker_is_told_and_so_is_the_return_of_the_first() -> None:
    talk, of_bran = a_table(), replace(HEARD, speaker_id=SpeakerId("bran"), speaker_name="Bran")
    assert talk.take([Decided(of_bran, is_retracted=False, own_text=HEARD.text)]) == [UtteranceRevised(of_bran, HEARD)]
    of_cara = replace(HEARD, speaker_id=SpeakerId("cara"), speaker_name="Cara")
    assert talk.take([Decided(of_cara, is_retracted=False, own_text=HEARD.text)]) == [
        UtteranceRevised(of_cara, of_bran)
    ]
    assert talk.take([]) == [UtteranceRevised(HEARD, of_cara)]


def test_what_is_corrected_and_retracted_is_told_so() -> None:
    talk = a_table()
    both = replace(corrected("Nobody."), is_retracted=True)
    assert talk.take([both]) == [UtteranceRevised(now("Nobody."), HEARD), UtteranceRetracted(now("Nobody."))]
    assert talk.take([corrected("Nobody.")]) == [UtteranceRetracted(now("Nobody."), is_retracted=False)]


def test_what_the_table_never_knew_is_told_all_the_same() -> None:
    """It may stand on a page that was opened before."""
    talk = DecidedTalk(lambda _: None)
    assert talk.take([corrected("Nobody.")]) == [UtteranceRevised(now("Nobody."), HEARD)]
    assert talk.take([Decided(an_utterance("x", id="u9"), is_retracted=True)])[-1].utterance.id == "u9"
