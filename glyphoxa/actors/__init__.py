"""The actor runtime: mailboxes, supervision, deadlines and circuit breakers."""
