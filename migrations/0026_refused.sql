-- What an extractor found in a session and nobody believed: how much, and why the last of it was not.

ALTER TABLE chronicle_progress
    ADD COLUMN n_refused BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN refused   TEXT;                      -- NULL: all was believed
