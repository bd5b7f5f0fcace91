-- What of a reply was rejected before the voice had it, each sentence with the reason.

ALTER TABLE turns ADD COLUMN unsaid JSONB NOT NULL DEFAULT '[]';
