from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.turns.playback import (
    Cancelled,
    ExcuseCame,
    FillerBegins,
    FillerCame,
    FillerEnds,
    Held,
    Over,
    PieceBegan,
    PieceBegins,
    PieceEnded,
    PieceTrouble,
    Playback,
    PlaybackEvent,
    Played,
    Released,
    ReplyEnded,
    ReplyFailed,
    Resumed,
    Retracted,
    SoundBegins,
    SoundCame,
)

CHUNK = 480


def played_out(playback: Playback) -> list[object]:
    """Play as much as there is, a chunk at a time; everything that came of it."""
    effects: list[object] = []
    while n_samples := playback.playable(CHUNK):
        effects += playback.on(Played(n_samples))
    return effects


def after(*events: PlaybackEvent) -> Playback:
    playback = Playback()
    for event in events:
        playback.on(event)
    return playback


def reply(*pieces: tuple[str, int]) -> Playback:
    of_pieces = [(PieceBegan(text), SoundCame(n_samples), PieceEnded()) for text, n_samples in pieces]
    return after(*chain(*of_pieces), ReplyEnded())


def over(effects: object) -> Over:
    assert isinstance(effects, list | tuple)
    (found,) = (effect for effect in effects if isinstance(effect, Over))
    return found


def test_a_reply_that_was_played_to_its_end_was_heard_whole() -> None:
    playback = reply(("Well met.", 1_000), ("How are you?", 1_001))
    playback.on(Released())
    effects = played_out(playback)
    assert effects[0] == SoundBegins()
    assert [e.text for e in effects if isinstance(e, PieceBegins)] == ["Well met.", "How are you?"]
    assert over(effects) == Over("Well met. How are you?", "Well met. How are you?", 2_001, False, False, "")


def test_a_piece_that_is_still_being_made_has_an_estimated_length() -> None:
    playback = after(Released(), PieceBegan("a clause of thirty characters."), SoundCame(24_000), Played(24_000))
    assert over(playback.on(Cancelled())).heard == "a clause of"


def test_less_than_a_chunk_waits_for_more_unless_its_piece_is_complete() -> None:
    playback = after(Released(), PieceBegan("Hm."), SoundCame(100))
    assert playback.playable(CHUNK) == 0
    playback.on(PieceEnded())
    assert playback.playable(CHUNK) == 100


def test_the_sound_of_a_piece_comes_in_parts_and_is_played_as_it_comes() -> None:
    playback = after(Released(), PieceBegan("one two"), SoundCame(CHUNK), SoundCame(CHUNK))
    assert playback.playable(2 * CHUNK) == 2 * CHUNK
    playback.on(Played(2 * CHUNK))
    assert playback.playable(CHUNK) == 0
    playback.on(SoundCame(CHUNK))
    assert playback.playable(CHUNK) == CHUNK


def test_all_pieces_may_be_handed_out_at_once() -> None:
    playback = reply(("One.", 100), ("Two.", 100), ("Three.", 100))
    playback.on(Released())
    effects = playback.on(Played(300))
    assert effects[:-1] == (SoundBegins(), PieceBegins("One."), PieceBegins("Two."), PieceBegins("Three."))
    assert over(effects).heard == "One. Two. Three."


def test_reply_that_fails_during_its_filler_ends_after_the_filler() -> None:
    playback = after(Released(), FillerCame(CHUNK))
    assert not playback.accepts_filler()
    assert playback.on(ReplyFailed("no connection")) == ()
    assert over(playback.on(Played(CHUNK))).error == "no connection"


def test_excuse_for_an_early_failure_waits_for_the_floor() -> None:
    playback = Playback()
    assert playback.on(ExcuseCame(CHUNK)) == ()
    assert playback.on(ReplyFailed("no connection")) == ()
    assert playback.playable(CHUNK) == 0
    assert playback.on(Released()) == (FillerBegins(),)
    assert playback.on(ExcuseCame(CHUNK)) == ()
    ended = over(playback.on(Played(CHUNK)))
    assert (ended.error, ended.heard, ended.n_samples) == ("no connection", "", 0)


def test_an_excuse_follows_a_filler_and_both_are_heard() -> None:
    playback = after(Released())
    assert playback.on(FillerCame(CHUNK)) == (FillerBegins(),)
    playback.on(Played(CHUNK // 2))
    assert playback.on(ExcuseCame(CHUNK)) == ()
    assert playback.on(ReplyFailed("too late")) == ()
    assert playback.on(ExcuseCame(CHUNK)) == ()
    assert playback.on(Played(CHUNK // 2)) == ()
    assert over(playback.on(Played(CHUNK))).error == "too late"


@pytest.mark.parametrize(
    ("share", "heard"),
    [
        (0.005, ""),
        (0.2, "It costs"),
        (0.7, "It costs"),
        (0.9, "It costs 1,140 gp & a"),
        (1.0, "It costs 1,140 gp & a mule."),
    ],
)
def test_heard_words_are_the_written_ones(share: float, heard: str) -> None:
    playback = Playback()
    spoken = "It costs one thousand one hundred and forty gold pieces and a mule."
    for event in (PieceBegan("It costs 1,140 gp & a mule.", spoken), SoundCame(100_000), PieceEnded(), Released()):
        playback.on(event)
    effects = playback.on(Played(int(100_000 * share)))
    assert over((*effects, *playback.on(Cancelled()))).heard == heard


def test_cancelled_before_it_was_heard_it_was_not_interrupted() -> None:
    playback = reply(("Well met.", 24_000))
    ended = over(playback.on(Cancelled()))
    assert (ended.heard, ended.interrupted, ended.reply) == ("", False, "Well met.")


def test_a_filler_comes_first_and_is_no_part_of_the_reply() -> None:
    playback = after(Released())
    assert playback.on(FillerCame(700)) == (FillerBegins(),)
    assert playback.on(FillerCame(700)) == ()
    playback.on(PieceBegan("Yes."))
    playback.on(SoundCame(CHUNK))
    playback.on(ReplyEnded())
    assert playback.playable(CHUNK) == CHUNK
    assert playback.on(Played(CHUNK)) == ()
    assert playback.on(Played(220)) == ()
    ended = over(playback.on(Played(CHUNK)))
    assert (ended.n_samples, ended.heard) == (CHUNK, "Yes.")


def test_a_filler_ends_at_its_next_break_when_the_reply_is_there() -> None:
    playback = after(Released(), FillerCame(4_000, breaks=(500, 1_000, 3_000)), Played(600), PieceBegan("Yes."))
    assert playback.on(SoundCame(CHUNK)) == (FillerEnds(400),)
    assert playback.on(SoundCame(CHUNK)) == ()
    assert playback.on(Played(400)) == ()
    assert playback.on(Played(CHUNK)) == (SoundBegins(), PieceBegins("Yes."))


def test_a_filler_whose_last_word_has_begun_is_heard_out() -> None:
    playback = after(Released(), FillerCame(1_000, breaks=(500,)), Played(600), PieceBegan("Yes."))
    assert playback.on(SoundCame(CHUNK)) == ()
    assert playback.playable(CHUNK) == 400


def test_no_filler_once_the_reply_is_heard_or_before_it_may_be() -> None:
    playback = reply(("Well met.", 24_000))
    assert playback.on(FillerCame(700)) == ()
    playback.on(Released())
    playback.on(Played(CHUNK))
    assert not playback.accepts_filler()
    assert playback.on(FillerCame(700)) == ()


def test_a_failed_reply_plays_what_there_is_and_says_why_it_is_not_whole() -> None:
    playback = after(Released(), PieceBegan("Well met."), SoundCame(CHUNK))
    assert playback.on(ReplyFailed("the model is away")) == ()
    assert over(played_out(playback)).error == "the model is away"


def test_first_end_reason_is_kept() -> None:
    playback = Playback()
    ended = over(playback.on(ReplyFailed("no key")))
    assert ended.error == "no key"
    assert playback.on(ReplyFailed("no words")) == ()


def test_a_withheld_reply_is_over_at_once() -> None:
    assert over(Playback().on(ReplyEnded(withheld=True))).withheld


def test_a_voice_without_sound_is_an_error() -> None:
    playback = after(PieceBegan("Well met."))
    assert over(playback.on(ReplyEnded())).error == "the voice service returned no sound"


def test_trouble_with_one_piece_is_the_reason_only_if_nothing_is_heard() -> None:
    playback = after(PieceBegan("Well met."), PieceTrouble("no such voice"))
    assert over(playback.on(ReplyEnded())).error == "no such voice"
    playback = after(
        Released(),
        PieceBegan("Ahem."),
        PieceTrouble("no such sound"),
        PieceBegan("Yes."),
        SoundCame(CHUNK),
        ReplyEnded(),
    )
    assert over(played_out(playback)).error == ""


def test_a_piece_without_sound_does_not_block_the_next() -> None:
    playback = reply(("...", 0), ("Yes.", CHUNK))
    playback.on(Released())
    assert over(played_out(playback)).n_samples == CHUNK


EVENTS = st.one_of(
    st.builds(PieceBegan, st.text(alphabet="ab .", min_size=1, max_size=12)),
    st.builds(SoundCame, st.integers(1, 3_000)),
    st.just(PieceEnded()),
    st.builds(FillerCame, st.just(2_000), st.just((300, 900))),
    st.builds(FillerCame, st.integers(1, 2_000)),
    st.builds(ExcuseCame, st.integers(1, 2_000)),
    st.just(ReplyEnded()),
    st.just(ReplyFailed("x")),
    st.just(Released()),
    st.just(Cancelled()),
)


@given(st.lists(EVENTS, max_size=30))
def test_reply_ends_once_and_the_heard_part_is_its_start(events: list[PlaybackEvent]) -> None:
    playback = Playback()
    ends: list[Over] = []
    for event in [*events, Released(), Cancelled()]:
        ends += (effect for effect in playback.on(event) if isinstance(effect, Over))
        while n_samples := playback.playable(CHUNK):
            ends += (effect for effect in playback.on(Played(n_samples)) if isinstance(effect, Over))
    assert len(ends) == 1
    assert len(ends[0].heard) <= len(ends[0].reply)


def test_held_reply_resumes_with_the_next_sample() -> None:
    playback = reply(("Well met, friend.", 2_400))
    playback.on(Released())
    playback.on(Played(CHUNK))
    playback.on(Held())
    assert playback.playable(CHUNK) == 0
    playback.on(Resumed())
    assert over(played_out(playback)) == Over("Well met, friend.", "Well met, friend.", 2_400, False, False, "")


def test_held_and_cut_reply_counts_only_what_was_played() -> None:
    playback = reply(("one two three four", 2_400))
    playback.on(Released())
    for _ in range(2):
        playback.on(Played(CHUNK))
    playback.on(Held())
    cut = over(playback.on(Cancelled()))
    assert cut.interrupted
    assert cut.n_samples == 2 * CHUNK
    assert cut.heard == "one two"


def test_error_after_the_end_of_a_reply_does_not_fail_it() -> None:
    playback = reply(("Well met.", 2_400))
    playback.on(ReplyFailed("too late to matter"))
    playback.on(Released())
    ended = over(played_out(playback))
    assert (ended.heard, ended.error) == ("Well met.", "")


def test_retracted_pieces_are_not_part_of_the_reply() -> None:
    playback = after(Released(), PieceBegan("They want a price."), SoundCame(2_400), PieceEnded(), Played(CHUNK))
    for event in (Retracted(), PieceBegan("Four crowns."), SoundCame(2_400), PieceEnded(), ReplyEnded()):
        playback.on(event)
    ended = over(played_out(playback))
    assert ended.reply == ended.heard == "Four crowns."
