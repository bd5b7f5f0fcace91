"""Calls everybody who subscribed to something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

from loguru import logger

P = ParamSpec("P")


class Subscribers(Generic[P]):
    """Calls each subscriber, in order of subscription. One that raises does not stop the others.

    Args:
        what: Their common subject, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._subscribers: list[Callable[P, object]] = []

    def subscribe(self, subscriber: Callable[P, object]) -> Callable[[], None]:
        """Subscribe. Returns a function that unsubscribes."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber) if subscriber in self._subscribers else None

    def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(*args, **kwargs)
            except Exception as error:  # whatever it is
                logger.opt(exception=error).error("a subscriber of {} raised an error", self._what)
