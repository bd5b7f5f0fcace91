"""Talk around an entity: what it speaks of is decided by the graph, how near it is by words or by meaning."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import DM, Claim, Viewer, secret_of
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.recall.vectors import Embedder
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import Neighbourhood, Passage
from tests.support.world_tables import a_campaign_row

TOWN = CampaignId("town")
MIRA, GRIM = NpcId("mira"), NpcId("grim")
INN, CELLAR, CASK, VAULT, FAR = (EntityId(each) for each in ("inn", "cellar", "cask", "vault", "far"))
SAID = (
    ("u1", "The cellar floods in spring.", [CELLAR], (MIRA, GRIM), False, "m"),
    ("u2", "In spring the cask leaks.", [CASK], (MIRA,), False, "m"),
    ("u3", "A spring feeds the far tower.", [FAR], (MIRA, GRIM), False, "m"),
    ("u4", "The vault opens in spring.", [VAULT], (MIRA, GRIM), False, "m"),
    ("u5", "Spring in the cellar was retracted.", [CELLAR], (MIRA, GRIM), True, "m"),
    ("u6", "The inn is old, and so is the cask.", [INN, CASK], (GRIM,), False, "m"),
    ("u7", "Another spring in the cellar.", [CELLAR], (MIRA,), False, "another model"),
)


async def embed(_texts: list[str]) -> NDArray[float32]:
    raise Unavailable("the model is away")


def towards(*weights: float) -> NDArray[float32]:
    """Utterance n lies on axis n."""
    vector = np.zeros(384, dtype=np.float32)
    vector[: len(weights)] = weights
    return vector / np.linalg.norm(vector)


@pytest.fixture
async def town(dsn: str) -> AsyncIterator[Store]:
    """The inn has a cellar, which has a cask; of the vault beside it only Grim knows. The tower is far."""
    async with open_store(dsn, embedder=Embedder("m", 384, embed)) as store:
        await a_campaign_row(store, TOWN)
        named = ((INN, "Inn"), (CELLAR, "Cellar"), (CASK, "Cask"), (FAR, "Tower"))
        await store.world.commit(
            TOWN,
            [
                *(EntityAdded(entity, "location", name) for entity, name in named),
                EntityAdded(VAULT, "location", "Vault", (), secret_of([GRIM])),
                FactStated(Claim.relation(INN, "HAS", CELLAR)),
                FactStated(Claim.relation(CELLAR, "HAS", CASK)),
                FactStated(Claim.relation(INN, "HAS", VAULT)),
            ],
            Cause("dm", 1_000),
        )
        async with store.database.use(TOWN) as connection:
            await connection.execute("INSERT INTO sessions (campaign_id, id, started_at) VALUES ($1, 's', now())", TOWN)
            for n, (id_, text, speaks_of, hearers, retracted, model) in enumerate(SAID):
                await connection.execute(
                    """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id,
                                                    speaker_name, text, witnesses, retracted)
                       VALUES ($1, 's', $2, $3, 'grim', 'Grimjaw', $4, $5, $6)""",
                    *(TOWN, n + 1, id_, text, list(hearers), retracted),
                )
                await connection.execute(
                    """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding,
                                           model, entity_ids, knowers, retracted)
                       VALUES ($1, $2, $2, 's', $3, '', $4, $5, $6, $7, $8)""",
                    *(TOWN, id_, text, towards(*([0] * n), 1), model, speaks_of, list(hearers), retracted),
                )
        yield store


def ids(passages: Sequence[Passage]) -> list[str | None]:
    return [passage.recalled.utterance_id for passage in passages]


async def by_words(store: Store, viewer: Viewer, words: str, *, depth: int = 2, limit: int = 10) -> list[str | None]:
    return sorted(
        ids(
            await store.graph_rag.query_with_context(TOWN, viewer, words, around=Neighbourhood(INN, depth), limit=limit)
        ),
        key=str,
    )


async def test_words_are_looked_for_in_what_speaks_of_the_neighbourhood_and_was_heard(town: Store) -> None:
    assert await by_words(town, MIRA, "What of the spring?") == ["u1", "u2", "u7"]
    assert await by_words(town, GRIM, "What of the spring?") == ["u1", "u4"]
    assert await by_words(town, DM, "What of the spring?") == ["u1", "u2", "u4", "u7"]
    assert await by_words(town, MIRA, "What of the spring?", depth=1) == ["u1", "u7"]
    assert await by_words(town, MIRA, "What of the spring?", depth=0) == []
    assert await by_words(town, MIRA, "What of the dragon?") == []
    assert len(await by_words(town, MIRA, "What of the spring?", limit=2)) == 2
    assert await by_words(town, MIRA, " \0 ") == []


async def test_meaning_is_compared_with_what_speaks_of_the_neighbourhood_and_was_heard(town: Store) -> None:
    """The retracted one, that of another model, and that of the vault are nearer, and are not there."""
    question = towards(0.2, 0.3, 0, 0.9, 0.9, 0, 0.9)
    found = await town.graph_rag.query_with_embedding(TOWN, MIRA, question, around=Neighbourhood(INN))
    assert ids(found) == ["u2", "u1"]
    first = found[0]
    assert first.score == pytest.approx(float(question[1]))
    assert (first.entity_ids, first.depth) == ((CASK,), 2)
    assert recalled_line(first.recalled) == "Grimjaw said: In spring the cask leaks."
    assert first.recalled.similarity == first.score
    nearest = await town.graph_rag.query_with_embedding(TOWN, GRIM, question, around=Neighbourhood(INN), limit=1)
    assert ids(nearest) == ["u4"]


async def test_what_was_retracted_while_it_was_being_embedded_is_not_found(town: Store) -> None:
    assert "u1" in ids(await town.graph_rag.query_with_embedding(TOWN, MIRA, towards(1), around=Neighbourhood(INN)))
    async with town.database.use(TOWN) as connection:
        await connection.execute("UPDATE session_entries SET retracted = TRUE WHERE utterance_id = 'u1'")
    assert "u1" not in ids(await town.graph_rag.query_with_embedding(TOWN, MIRA, towards(1), around=Neighbourhood(INN)))


async def test_an_embedding_of_other_dimensions_is_refused(town: Store) -> None:
    with pytest.raises(InvalidInput, match="cannot search with an embedding of 3 dimensions"):
        await town.graph_rag.query_with_embedding(TOWN, MIRA, np.ones(3, dtype=np.float32), around=Neighbourhood(INN))


async def test_an_npc_that_may_look_long_finds_what_was_said_of_what_is_related(town: Store) -> None:
    """Nobody said that the cask is one of the inn's. Mira's model names the inn."""
    for npc, expected in ((MIRA, [("Grimjaw said: In spring the cask leaks.", ["Cask"], 2)]), (GRIM, [])):
        tools = Toolbox(NpcMemory(TOWN, npc, town.world_memory(TOWN), town.past_talk, around=town.around), tier="DEEP")
        found: Any = await tools.call("memory_search_sessions", {"query": "What leaks?", "around": "the inn"})
        told = [(one["said"], one.get("speaks of"), one.get("relations away")) for one in found["found"]]
        assert told == expected


async def test_a_connection_plans_once_for_talk_around_an_entity_and_for_nothing_else(town: Store) -> None:
    async def mode(*, generic_plan: bool) -> str:
        async with town.database.use(TOWN, generic_plan=generic_plan) as connection:
            return str(await connection.fetchval("SHOW plan_cache_mode"))

    for generic_plan in (False, True, True, False):
        assert await mode(generic_plan=generic_plan) == ("force_generic_plan" if generic_plan else "auto")


async def test_who_said_it_oneself_is_told_so(town: Store) -> None:
    (said,) = await town.graph_rag.query_with_context(TOWN, GRIM, "old", around=Neighbourhood(INN))
    assert recalled_line(said.recalled) == "You said: The inn is old, and so is the cask."
    assert (said.entity_ids, said.depth) == ((CASK, INN), 0)


async def test_around_what_the_viewer_may_not_know_nothing_is_found(town: Store) -> None:
    for around in (VAULT, EntityId("nowhere"), EntityId("")):
        assert await town.graph_rag.query_with_context(TOWN, MIRA, "spring", around=Neighbourhood(around)) == []
        assert await town.graph_rag.query_with_embedding(TOWN, MIRA, towards(1), around=Neighbourhood(around)) == []
    assert ids(await town.graph_rag.query_with_context(TOWN, GRIM, "vault", around=Neighbourhood(VAULT))) == ["u4"]


async def test_an_utterance_that_was_cut_is_found_once(town: Store) -> None:
    async with town.database.use(TOWN) as connection:
        await connection.execute(
            """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model,
                                   entity_ids, knowers)
               VALUES ($1, 'u1#2', 'u1', 's', '', '', $2, 'm', $3, $4)""",
            *(TOWN, towards(0.5, 0.5), [INN], [MIRA]),
        )
    found = await town.graph_rag.query_with_embedding(TOWN, MIRA, towards(1), around=Neighbourhood(INN))
    assert ids(found) == ["u1", "u2"]
    assert found[0].entity_ids == (CELLAR, INN)


async def test_words_and_entities_of_which_all_talk_lose_nothing_that_is_rare(town: Store) -> None:
    async with town.database.administer() as connection:
        await connection.execute("DROP INDEX idx_chunks_embedding")  # to fill faster
        await connection.execute("SELECT set_config('glyphoxa.campaign', $1, false)", TOWN)

        async def much(prefix: str, text: str, entity: EntityId) -> None:
            await connection.execute(
                """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, text, witnesses)
                   SELECT $1, 's', $4::int * 1000 + n, $2 || n, $3, '{mira}' FROM generate_series(1, 600) AS n""",
                *(TOWN, prefix, text, len(prefix)),
            )
            await connection.execute(
                """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding,
                                       model, entity_ids, knowers)
                   SELECT $1, $2 || n, $2 || n, 's', '', '', $3, 'm', ARRAY[$4], '{mira}'
                     FROM generate_series(1, 600) AS n""",
                *(TOWN, prefix, towards(*([0] * 300), 1), entity),
            )

        await much("x", "Spring elsewhere.", FAR)
        assert await by_words(town, MIRA, "spring") == ["u1", "u2", "u7"]
        await much("yy", "The cellar again.", CELLAR)
        assert await by_words(town, MIRA, "leaks") == ["u2"]
        everywhere = await town.graph_rag.query_with_context(
            TOWN, MIRA, "cask leaks in the cellar", around=Neighbourhood(INN)
        )
        assert len(everywhere) == 10
        assert everywhere[0].recalled.utterance_id == "u2"
        assert {entity for passage in everywhere for entity in passage.entity_ids} <= {INN, CELLAR, CASK}
        assert await by_words(town, GRIM, "spring") == ["u1", "u4"]
