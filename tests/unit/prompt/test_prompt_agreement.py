"""A prompt does not deny what it contains, and does not contain the same line twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.domain.knowledge import RecalledSummary
from glyphoxa.judgement.small_model import shared, topic_of
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen
from glyphoxa.transcript.sessions import SummarySentence
from tests.support.builders import FORGE, SESSION, SMITH, TAMSIN, a_campaign, an_utterance
from tests.support.memory import LogTwin
from tests.support.minds import Mind, SessionsTwin
from tests.support.patience import DEADLINE_MS
from tests.support.proof import n_examples

NOBODY_TOLD = "Nobody has told Grimjaw anything about that."
HORSE = an_utterance("My horse Bramble limps since the ford.", id="horse")
LONG = an_utterance(
    "My horse Bramble limps since the ford. A farrier at Mill Cross wants nine crowns to look at her hoof.", id="long"
)


def summaries(text: str) -> SessionsTwin:
    """The summary of one earlier session, for every NPC."""
    return SessionsTwin(lambda _: [RecalledSummary(SessionId("before"), text)] if text else [])


class Evening(Mind):
    """A smith, what it has heard, and what its summaries contain.

    Args:
        summary: Texts of this session's summary, each with the line that supports it.
        past: The summary of an earlier session.
        lines: Lines of the transcript.
    """

    def __init__(self, summary: Sequence[tuple[str, str]] = (), *, past: str = "", lines: Sequence[str] = ()) -> None:
        town = a_campaign()
        self.log, self.talk = LogTwin(), Conversation(town.npc(SMITH))
        self.talk.cover([SummarySentence(text, (UtteranceId(line),)) for text, line in summary], ())
        self.talk.fold()
        for n, line in enumerate(lines):
            self.talk.hear(an_utterance(line, id=f"line-{n}"))
        super().__init__(
            town,
            talk=self.log,
            conversations={SMITH: self.talk},
            past=Past(SaidWhen(town, SESSION, None), summaries(past), tokens=60),
        )


@asynccontextmanager
async def played(evening: Evening) -> AsyncIterator[Evening]:
    await evening.assembly.enter(a_campaign().scene(FORGE))
    yield evening
    await evening.prefetch.close()


async def facts(evening: Evening, question: str) -> tuple[str, ...]:
    async with played(evening):
        hot = await evening.assembly.gather(SMITH, question, asker="Tamsin", within_ms=DEADLINE_MS)
        return hot.not_known


ABOUT_THE_HORSE = "What did I tell you about my horse?"


async def test_summarised_topic_is_not_called_unknown() -> None:
    assert await facts(Evening(), ABOUT_THE_HORSE) == (NOBODY_TOLD,)
    assert await facts(Evening([("Tamsin says: My horse limps.", "horse")]), ABOUT_THE_HORSE) == ()
    assert await facts(Evening(past="Tamsin's horse limps."), ABOUT_THE_HORSE) == ()
    assert await facts(Evening([("Tamsin says: An ale for me.", "ale")]), ABOUT_THE_HORSE) == (NOBODY_TOLD,)


@pytest.mark.parametrize("question", ["Do you remember what happened?", "Tell me what you remember."])
async def test_summary_answers_a_question_without_a_topic(question: str) -> None:
    assert await facts(Evening([("Tamsin says: The bridge fell.", "bridge")]), question) == ()
    assert await facts(Evening(past="The bridge fell."), question) == ()


async def test_summary_of_others_says_nothing_about_the_asker() -> None:
    asked = "Do you remember me?"
    assert await facts(Evening(past="Bran and Mira sang."), asked) == await facts(Evening(), asked)
    assert await facts(Evening(past="Tamsin and Mira sang."), asked) == ()


async def recalled(evening: Evening, question: str) -> tuple[list[str], list[str]]:
    """Return what is recalled, and why the rest is not."""
    async with played(evening):
        await evening.log.append([HORSE, LONG])
        hot = await evening.assembly.gather(SMITH, question, asker="Tamsin")
        return [one.text for one in hot.recalled], [one.why for one in hot.rejected]


async def test_summarised_line_is_not_recalled_again() -> None:
    asked = "Why does my horse Bramble limp?"
    assert HORSE.text in (await recalled(Evening(), asked))[0]
    texts, why_not = await recalled(Evening([(f"Tamsin says: {HORSE.text}", "horse")]), asked)
    assert HORSE.text not in texts and "it is already in the prompt's transcript" in why_not


async def test_line_that_says_more_than_its_summary_is_recalled() -> None:
    told = Evening([("Tamsin says: My horse Bramble limps since the ford.", "long")])
    assert any("nine crowns" in text for text in (await recalled(told, "What does the farrier want for my horse?"))[0])


async def test_same_words_of_another_line_are_recalled() -> None:
    told = Evening([("Tamsin says: My horse Bramble does not limp since the ford.", "denied")])
    assert HORSE.text in (await recalled(told, "Why does my horse Bramble limp?"))[0]


async def test_held_back_line_is_recalled() -> None:
    evening = Evening()
    evening.talk.history_tokens = 20
    for one in (HORSE, *(an_utterance(f"An ale, please, number {n}.", id=f"ale-{n}") for n in range(6))):
        evening.talk.hear(one)
    assert HORSE.id not in evening.talk.utterance_ids
    assert HORSE.text in (await recalled(evening, "Why does my horse Bramble limp?"))[0]


async def test_line_in_the_summary_of_an_earlier_session_is_not_recalled() -> None:
    texts, _ = await recalled(Evening(past=f"Tamsin says: {HORSE.text}"), "Why does my horse Bramble limp?")
    assert HORSE.text not in texts


SUBJECTS = st.sampled_from(["horse", "bridge", "lantern", "miller", "treaty", "Tarquin", "Vexmoor", "harbour"])
STATED = st.builds(
    lambda one, other, verb: f"The {one} {verb} the {other}.".replace("The T", "T").replace("The V", "V"),
    SUBJECTS, SUBJECTS, st.sampled_from(["broke", "found", "feared", "burned"]),
)  # fmt: skip
QUESTIONS = st.builds(
    lambda form, what: form.format(what=what),
    st.sampled_from(
        [
            "What did I tell you about the {what}?",
            "Do you remember the {what}?",
            "Who told you about {what}?",
            "Who is {what}?",
            "What happened to the {what}?",
            "Do you remember what happened?",
            "What more do you know about the {what}?",
        ]
    ),
    SUBJECTS,
)


@settings(max_examples=n_examples(150), derandomize=True, deadline=None)
@given(
    QUESTIONS,
    st.lists(STATED, max_size=3),
    st.lists(STATED, max_size=2),
    st.lists(STATED, max_size=2),
    st.lists(STATED, max_size=2),
)
async def test_prompt_never_says_that_nobody_told_what_it_contains(
    question: str, summary: list[str], past: list[str], lines: list[str], memory: list[str]
) -> None:
    evening = Evening(
        [(f"Tamsin says: {text}", f"covered-{n}") for n, text in enumerate(summary)], past=" ".join(past), lines=lines
    )
    async with played(evening):
        await evening.log.append([an_utterance(text, id=f"old-{n}") for n, text in enumerate(memory)])
        await evening.partial(TAMSIN, question)
        about = topic_of(question, "en")
        for hot in (
            evening.assembly.gather_nowait(SMITH, question, asker="Tamsin"),
            await evening.assembly.gather(SMITH, question, asker="Tamsin"),
        ):
            inside = [
                *summary,
                *past,
                *lines,
                *hot.remembered,
                *(fact for fact in hot.facts if fact not in hot.not_known),
            ]
            if NOBODY_TOLD in hot.not_known:
                assert not any(shared(about, text, "en") for text in inside)
