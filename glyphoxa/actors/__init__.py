"""What keeps a table running: mailboxes, supervision, circuit breakers. Fallbacks between providers will stand here."""
