-- What a prompt consisted of: each part with where it came from, how many tokens it has and how long it took.

ALTER TABLE turns ADD COLUMN parts JSONB NOT NULL DEFAULT '[]';
