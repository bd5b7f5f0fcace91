from __future__ import annotations

from glyphoxa.actors.circuit_breaker import CircuitBreaker


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def opened(*, successes_to_close: int = 1) -> tuple[CircuitBreaker, Clock]:
    clock = Clock()
    breaker = CircuitBreaker(clock, most_failures=2, rest_ms=1_000, successes_to_close=successes_to_close)
    for _ in range(2):
        assert breaker.may_try()
        breaker.failed()
    assert breaker.is_resting
    assert not breaker.may_try()
    return breaker, clock


def test_after_a_rest_it_is_tried_once_at_a_time_until_enough_succeed() -> None:
    breaker, clock = opened(successes_to_close=3)
    clock.now_ms = 1_000
    for n in range(3):
        assert breaker.is_resting, n
        assert breaker.may_try()
        assert not breaker.may_try(), "one at a time"
        breaker.succeeded()
    assert not breaker.is_resting
    assert breaker.may_try()
    assert breaker.may_try()


def test_failed_trial_restarts_the_pause_and_resets_successes() -> None:
    breaker, clock = opened(successes_to_close=2)
    clock.now_ms = 1_000
    assert breaker.may_try()
    breaker.succeeded()
    assert breaker.may_try()
    breaker.failed()
    assert (breaker.left_ms, breaker.may_try()) == (1_000, False)
    clock.now_ms = 2_000
    assert breaker.may_try()
    breaker.succeeded()
    assert breaker.is_resting


def test_a_try_that_was_called_off_says_nothing_and_may_be_made_again() -> None:
    breaker, clock = opened()
    clock.now_ms = 1_000
    assert breaker.may_try()
    breaker.called_off()
    assert breaker.is_resting
    assert breaker.may_try()
    breaker.succeeded()
    assert not breaker.is_resting


def test_breaker_opens_immediately_after_a_timeout() -> None:
    breaker = CircuitBreaker(Clock(), most_failures=5, rest_ms=1_000)
    breaker.open()
    assert breaker.is_resting
    assert not breaker.may_try()


def test_a_success_while_it_is_trusted_ends_the_row_of_failures() -> None:
    breaker = CircuitBreaker(Clock(), most_failures=2)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_resting
