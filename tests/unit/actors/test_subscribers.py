"""Subscribers are called in order, whatever one of them does."""

from __future__ import annotations

from loguru import logger

from glyphoxa.actors.subscribers import Subscribers


def test_subscriber_is_called_until_it_unsubscribes() -> None:
    names, told = Subscribers[[str]]("the names"), list[str]()
    stop = names.subscribe(told.append)
    names.tell("Marek")
    stop()
    stop()
    names.tell("Grimjaw")
    assert told == ["Marek"]


def test_subscriber_that_fails_is_logged_and_stops_no_other() -> None:
    names, told, logged = Subscribers[[str]]("the names"), list[str](), list[str]()

    def failing(_name: str) -> None:
        raise RuntimeError("no room")

    names.subscribe(failing)
    names.subscribe(told.append)
    sink = logger.add(lambda line: logged.append(str(line)), level="ERROR")
    names.tell("Grimjaw")
    logger.remove(sink)
    assert told == ["Grimjaw"]
    assert len(logged) == 1 and "no room" in logged[0]
