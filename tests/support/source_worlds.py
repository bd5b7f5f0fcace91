"""Worlds of other tools: a small one, and random ones in which each hidden word begins with "Mor"."""

from __future__ import annotations

from random import Random

from glyphoxa.dm.source_world import SourceDocument, SourceLink, SourceText, SourceWorld

MILL = SourceDocument(
    "Scene.1",
    "Salt Mill",
    "location",
    "Scene",
    "data/scenes.db",
    ("Coast",),
    hidden=False,
    texts=(SourceText("A mill at the sea. Nobody grinds here any more.", hidden=False),),
)
MILLER = SourceDocument(
    "Actor.1",
    "Berta Moor",
    "npc",
    "Actor (npc)",
    "data/actors.db",
    ("People", "Coast"),
    ("the miller",),
    {"race": "dwarf"},
    hidden=False,
    texts=(
        SourceText("She grinds salt.", hidden=False),
        SourceText("She drowned her brother.", hidden=True, page="GM notes"),
    ),
    links=(SourceLink("Scene.1", "LOCATED_AT"),),
)
SPY = SourceDocument("Actor.2", "Vask", "npc", "Actor (npc)", "data/actors.db", ("People",), attributes={"race": "elf"})


def a_world(*documents: SourceDocument) -> SourceWorld:
    return SourceWorld("foundry", "coast", "The Coast", documents)


def named(world: SourceWorld, name: str) -> SourceDocument:
    """Return the only document with this name."""
    (found,) = (each for each in world.documents if each.name == name)
    return found


def texts(document: SourceDocument, *, hidden: bool) -> str:
    """Return what is hidden of a document, or what is not."""
    return "\n".join(each.text for each in document.texts if each.hidden == hidden)


def a_random_world(random: Random, known: tuple[str, ...], *, n: int = 12, id: str = "random") -> SourceWorld:
    """
    Args:
        known: Names that some documents have, too.
    """

    def word(*, hidden: bool) -> str:
        return f"{'Mor' if hidden else 'Vek'}{random.randrange(100_000)}or"

    def document(at: int) -> SourceDocument:
        hidden = random.random() < 0.5
        is_known = random.random() < 0.3
        texts = [random.random() < 0.5 for _ in range(random.randrange(4))]
        return SourceDocument(
            f"d{at}",
            random.choice(known) if is_known else word(hidden=hidden),
            random.choice(("npc", "location", "item", "concept", "faction")),
            "page",
            "Mor1or.json",
            ("Mor2or",),
            tuple(word(hidden=hidden) for _ in range(random.randrange(3))),
            {name: word(hidden=hidden) for name in random.sample(("race", "note", "description", "secret"), 2)}
            if hidden
            else {name: word(hidden=False) for name in random.sample(("race", "note", "description"), 2)},
            hidden=hidden,
            texts=tuple(
                SourceText(f"It is told that {word(hidden=one or hidden)} came by night.", hidden=one) for one in texts
            ),
            links=tuple(
                SourceLink(f"d{random.randrange(n)}", random.choice(("LOCATED_AT", "LINKED_TO", "KNOWS")), one)
                for one in [random.random() < 0.3 for _ in range(2)]
            ),
        )

    return SourceWorld("foundry", id, "Random", tuple(document(at) for at in range(n)))
