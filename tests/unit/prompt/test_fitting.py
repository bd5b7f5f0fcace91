"""The part of a large model's prompt that is left for a small one that answers in its place."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import EntityId, SceneId
from glyphoxa.language.sentences import characters_in
from glyphoxa.prompt.prompt import (
    HotContext,
    Message,
    Prompt,
    fit_hot,
    fit_prompt,
)
from tests.support.builders import SMITH, a_campaign
from tests.support.minds import Mind
from tests.support.proof import n_examples

SMALL = Budgets(history_tokens=20, facts_tokens=20, identity_tokens=10, bible_tokens=0, past_tokens=5)


def a_prompt(n_rounds: int, *, length: int = 30, scenes: tuple[tuple[int, Scene], ...] = ()) -> Prompt:
    talk = [
        Message(role, f"{role} {n} ".ljust(length, "."))
        for n in range(n_rounds)
        for role in ("user", "assistant")
    ]  # fmt: skip
    messages = (Message("system", "You are Grimjaw."), Message("user", "example"), Message("assistant", "example"))
    return Prompt(SMITH, (*messages, *talk, Message("user", "And now?")), "And now?", "Alice", scenes, n_examples=2)


def a_scene(name: str) -> Scene:
    return Scene(SceneId(name), EntityId(name), ())


@settings(max_examples=n_examples(200), derandomize=True, deadline=None)
@given(st.integers(0, 12), st.integers(1, 90), st.integers(0, 60))
def test_the_latest_talk_is_left_from_a_players_line_on_and_the_rest_as_it_was(
    n_rounds: int, length: int, tokens: int
) -> None:
    prompt = a_prompt(n_rounds, length=length)
    fitted = fit_prompt(prompt, Budgets(history_tokens=tokens))
    assert fitted.messages[:3] == prompt.messages[:3]
    assert fitted.messages[-1] == prompt.messages[-1]
    left = fitted.messages[3:-1]
    assert left == prompt.messages[len(prompt.messages) - 1 - len(left) : -1]
    assert sum(len(one.content) for one in left) <= characters_in(tokens)
    assert not left or left[0].role == "user"
    if sum(len(one.content) for one in prompt.messages[3:-1]) <= characters_in(tokens):
        assert fitted == prompt


def test_talk_that_is_left_still_begins_in_the_scene_it_was_said_in() -> None:
    inn, forge = a_scene("inn"), a_scene("forge")
    prompt = a_prompt(4, scenes=((3, inn), (9, forge)))
    fitted = fit_prompt(prompt, Budgets(history_tokens=characters_in(1) and 33))
    kept = len(fitted.messages) - 4
    assert kept == 4
    assert fitted.scenes == ((3, inn), (5, forge))
    assert fitted.messages[5] == prompt.messages[9]
    assert fit_prompt(prompt, Budgets(history_tokens=0)).scenes == ((3, forge),)


def test_what_it_knows_nothing_of_is_kept_before_what_it_knows() -> None:
    unknown = "Nobody told you of the brother."
    hot = HotContext(
        facts=("The forge is old and cold and dark.", unknown, "The king is ill and nobody knows of what."),
        not_known=(unknown,),
        remembered=("Alice said: I like it here.",),
        identity=("You are old.", "You have a sister who lives far away from here, in the north."),
        past="A long evening was had.",
    )
    fitted = fit_hot(hot, SMALL)
    assert fitted.facts == ("The forge is old and cold and dark.", unknown)
    assert fitted.remembered == ()
    assert fitted.identity == ("You are old.",)
    assert fitted.past == ""
    assert fit_hot(hot, Budgets(facts_tokens=500)) == replace(hot)


async def test_standing_orders_stay_in_the_prompt_of_a_smaller_model() -> None:
    smith = replace(a_campaign().npc(SMITH), standing=("Never name the king.",), speaks=("Dwarvish",))
    mind = Mind(replace(a_campaign(), npcs=(smith,), bible="The realm is at war."))
    hot = mind.assembly.gather_nowait(SMITH, "Hello.")
    assert "The realm is at war." in hot.identity
    fitted = fit_hot(hot, Budgets(identity_tokens=0, bible_tokens=0))
    assert fitted.identity == (
        "Never name the king.",
        "You speak only Dwarvish. To any other language you say that you do not understand it.",
    )
