"""Which views of a session share a model's summary."""

from __future__ import annotations

from collections.abc import Sequence

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.events import UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.session_state_keeper import SessionStateKeeper
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, SummarySentence, View
from tests.support.builders import INNKEEPER, SMITH, an_utterance

EVERYBODY = (SMITH, INNKEEPER)
VIEWS = (DM_VIEW, View(SMITH), View(INNKEEPER))


class Model:
    """Tells the first line of what it is asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def summarise(self, said: Sequence[Utterance]) -> list[SummarySentence]:
        self.asked.append(tuple(each.text for each in said))
        return [SummarySentence(said[0].text, (said[0].id,))]


async def summarised(
    *lines: tuple[str, Sequence[NpcId]], asking: Sequence[View] = VIEWS
) -> tuple[Model, dict[View, RollingSummary]]:
    model = Model()
    views = {view: RollingSummary(120) for view in VIEWS}
    keeper = SessionStateKeeper(
        views, LineSelection("en"), tell=lambda *_: None, summarisers=dict.fromkeys(asking, model)
    )
    for n, (text, heard_by) in enumerate(lines):
        said = an_utterance(text, id=f"u{n}", witnesses=frozenset(heard_by))
        keeper.on(UtteranceKept(said))
    await keeper.finish()
    return model, views


def spoken(n: int, heard_by: Sequence[NpcId] = EVERYBODY) -> tuple[str, Sequence[NpcId]]:
    return f"The lamp of tower {n} went out and nobody knows why.", heard_by


async def test_views_that_heard_the_same_share_one_summary() -> None:
    model, views = await summarised(*map(spoken, range(6)))
    assert len(model.asked) == 1
    assert len({view.summary for view in views.values()}) == 1 and views[DM_VIEW].summary


async def test_view_that_heard_less_has_a_summary_of_its_own() -> None:
    model, views = await summarised(spoken(0), spoken(7, [SMITH]), *map(spoken, range(1, 6)))
    own = [asked for asked in model.asked if not any("tower 7" in text for text in asked)]
    assert len(model.asked) == 2 and len(own) == 1
    assert "tower 7" not in str(views[View(INNKEEPER)].summary)


async def test_without_its_own_model_lines_of_a_view_are_selected() -> None:
    lines = (spoken(0), spoken(7, [SMITH]), *map(spoken, range(1, 6)))
    model, views = await summarised(*lines, asking=(DM_VIEW,))
    assert len(model.asked) == 1
    assert views[View(SMITH)].summary == views[DM_VIEW].summary, "it heard the same lines"
    assert "tower" in str(views[View(INNKEEPER)].summary)
    assert "tower 7" not in str(views[View(INNKEEPER)].summary)
