from __future__ import annotations

from glyphoxa.actors.circuit_breaker import CircuitBreaker


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def opened(*, successes_to_close: int = 1) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(clock, max_failures=2, cooldown_ms=1_000, successes_to_close=successes_to_close)
    for _ in range(2):
        assert breaker.allows_call()
        breaker.failed()
    assert breaker.is_open
    assert not breaker.allows_call()
    return breaker, clock


def test_after_a_rest_it_is_tried_once_at_a_time_until_enough_succeed() -> None:
    breaker, clock = opened(successes_to_close=3)
    clock.now_ms = 1_000
    for n in range(3):
        assert breaker.is_open, n
        assert breaker.allows_call()
        assert not breaker.allows_call(), "one at a time"
        breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows_call()
    assert breaker.allows_call()


def test_failed_trial_restarts_the_pause_and_resets_successes() -> None:
    breaker, clock = opened(successes_to_close=2)
    clock.now_ms = 1_000
    assert breaker.allows_call()
    breaker.succeeded()
    assert breaker.allows_call()
    breaker.failed()
    assert (breaker.retry_in_ms, breaker.allows_call()) == (1_000, False)
    clock.now_ms = 2_000
    assert breaker.allows_call()
    breaker.succeeded()
    assert breaker.is_open


def test_a_try_that_was_called_off_says_nothing_and_may_be_made_again() -> None:
    breaker, clock = opened()
    clock.now_ms = 1_000
    assert breaker.allows_call()
    breaker.cancelled()
    assert breaker.is_open
    assert breaker.allows_call()
    breaker.succeeded()
    assert not breaker.is_open


def test_breaker_opens_immediately_after_a_timeout() -> None:
    breaker = CircuitBreaker(Clock(), max_failures=5, cooldown_ms=1_000)
    breaker.trip()
    assert breaker.is_open
    assert not breaker.allows_call()


def test_a_success_while_it_is_trusted_ends_the_row_of_failures() -> None:
    breaker = CircuitBreaker(Clock(), max_failures=2)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open
