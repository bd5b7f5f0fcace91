"""Subjects of the ports' contracts: a real database, as the integration tests have it, and twins in memory."""

from tests.integration.conftest import dsn, postgres, reachable_dir, store, without_hurry

__all__ = ["dsn", "postgres", "reachable_dir", "store", "without_hurry"]
