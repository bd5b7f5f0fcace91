"""The exact gate, and beside it what PrecisionMemBench pins: told whether it is asked for or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from glyphoxa.recall.entities.gate import CalledFor, ExactGate, MaySee, Named, everything


@dataclass(frozen=True, slots=True)
class Pinned:
    """
    Attributes:
        is_question: It is not settled; it stands apart from facts.
        told_ms: When it was last confirmed, milliseconds since the Unix epoch; the latest come first.
    """

    is_question: bool = False
    told_ms: int = 0


@dataclass(frozen=True, slots=True)
class Given:
    """An answer. Nothing is in it twice.

    Attributes:
        pinned: The latest first.
        questions: Pinned questions that are open.
        called: What is called for beside these, in the order in which it is named; participants of relations last.
    """

    pinned: tuple[Named, ...] = ()
    questions: tuple[Named, ...] = ()
    called: tuple[CalledFor, ...] = ()


class PinningGate:
    """
    Args:
        items: Pinned by nobody.
    """

    def __init__(self, items: Iterable[Named] = ()) -> None:
        self._gate = ExactGate(items)
        self._pinned: dict[str, tuple[Named, Pinned]] = {}

    def put(self, item: Named, pinned: Pinned | None = None) -> None:
        """Know this item, in the place of one with the same id."""
        self.remove(item.id)
        self._gate.put(item)
        if pinned is not None:
            self._pinned[item.id] = item, pinned

    def remove(self, item_id: str) -> None:
        """Forget an item; nothing happens if there is none."""
        self._gate.remove(item_id)
        self._pinned.pop(item_id, None)

    def ask(self, question: str, *, may_see: MaySee = everything, limit: int | None = None) -> Given:
        """
        Args:
            limit: Of pinned facts and what is called for, together, 0 or more; pinned facts come first.
        """
        live = [each for each in self._pinned.values() if each[0].holds_at(None) and may_see(each[0])]
        live.sort(key=lambda each: (-each[1].told_ms, each[0].id))
        pinned = [item for item, pin in live if not pin.is_question][:limit]
        questions = [item for item, pin in live if pin.is_question]
        told_anyway = {item.id for item, _ in live}
        room = None if limit is None else max(0, limit - len(pinned))
        called = [each for each in self._gate.ask(question, may_see=may_see) if each.item.id not in told_anyway]
        return Given(tuple(pinned), tuple(questions), tuple(called[:room]))
