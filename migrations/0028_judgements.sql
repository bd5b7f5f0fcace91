-- How each utterance was judged, written together with the reading position: what facts may be learned from, and why.
CREATE TABLE turn_judgements (
    campaign_id    TEXT        NOT NULL,
    session_id     TEXT        NOT NULL,
    utterance_id   TEXT        NOT NULL,
    ordinal        BIGINT      NOT NULL,
    mode           TEXT        NOT NULL CHECK (mode IN ('in_world_answer', 'memory_consent', 'safe_redirect')),
    risk           TEXT        NOT NULL CHECK (risk IN ('low', 'medium', 'high')),
    flags          TEXT[]      NOT NULL DEFAULT '{}',
    note           TEXT        NOT NULL DEFAULT '',
    extract_memory BOOLEAN     NOT NULL DEFAULT false,
    judged_by      TEXT        NOT NULL,                   -- rules, llm or backstop
    reason         TEXT        NOT NULL DEFAULT '',        -- why another judge decided than the configured one
    at             TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (campaign_id, utterance_id)
);
CREATE INDEX idx_turn_judgements_ordinal ON turn_judgements (campaign_id, session_id, ordinal);

-- Up to here, utterances were judged a second time, with what came after them. What was read before this migration was
-- read in full.
ALTER TABLE chronicle_progress ADD COLUMN checked_ordinal BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chronicle_progress DISABLE ROW LEVEL SECURITY;
UPDATE chronicle_progress SET checked_ordinal = read_ordinal;
ALTER TABLE chronicle_progress ENABLE ROW LEVEL SECURITY;

SELECT glyphoxa_isolate();
