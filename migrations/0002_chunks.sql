-- Memory level 2: what was said, by meaning. One chunk an utterance for now.
-- {{embedding_dimensions}} is the number of the settings at the time the database was made.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE chunks (
    campaign_id TEXT NOT NULL,
    id          TEXT NOT NULL,                   -- of the utterance
    session_id  TEXT NOT NULL,
    content     TEXT NOT NULL,                   -- what was embedded
    embedding   vector({{embedding_dimensions}}) NOT NULL,
    speaker_id  TEXT NOT NULL DEFAULT '',
    entity_id   TEXT NOT NULL DEFAULT '',
    topic       TEXT NOT NULL DEFAULT '',
    timestamp   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, id),
    FOREIGN KEY (campaign_id, id) REFERENCES session_entries (campaign_id, utterance_id) ON DELETE CASCADE
);

-- Out-of-line vectors would make an exact scan several times slower.
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX idx_chunks_session_id ON chunks (campaign_id, session_id);
-- Half precision: 57 % of the size, the same recall. Only an approximate query (ordering by this very expression)
-- uses it; recall within a scene is exact, because a filter over an approximate search loses rows.
CREATE INDEX idx_chunks_embedding ON chunks
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);
