-- Level 2 again: by campaign like the talk, with who may be reminded of a chunk and which model embedded it.
-- {{embedding_dimensions}} is the number of the settings at the time the database was made.

DROP INDEX idx_chunks_session_id, idx_chunks_embedding;
ALTER TABLE chunks RENAME TO chunks_in_one;
ALTER TABLE chunks_in_one DROP CONSTRAINT chunks_pkey;

CREATE TABLE chunks (
    campaign_id  TEXT NOT NULL,
    id           TEXT NOT NULL,                    -- of the utterance; `#2` and so on behind it if it was cut
    utterance_id TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    content      TEXT NOT NULL,                    -- what was embedded
    content_hash TEXT NOT NULL,
    embedding    vector({{embedding_dimensions}}) NOT NULL,
    model        TEXT NOT NULL,                    -- vectors of different models are never compared
    next_embedding vector,                         -- of the model that is to come; see `glyphoxa reindex`
    speaker_id   TEXT NOT NULL DEFAULT '',
    entity_id    TEXT NOT NULL DEFAULT '',         -- the first of those it speaks of
    entity_ids   TEXT[] NOT NULL DEFAULT '{}',
    topic        TEXT NOT NULL DEFAULT '',
    timestamp    TIMESTAMPTZ NOT NULL DEFAULT now(),
    knowers      TEXT[] NOT NULL DEFAULT '{}',     -- the NPCs that were there
    struck       BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (campaign_id, id),
    FOREIGN KEY (campaign_id, utterance_id) REFERENCES session_entries (campaign_id, utterance_id) ON DELETE CASCADE
) PARTITION BY HASH (campaign_id);

-- Out-of-line vectors would make an exact scan several times slower.
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE PLAIN;

DO $$ BEGIN
    FOR i IN 0..31 LOOP
        EXECUTE format('CREATE TABLE chunks_%s PARTITION OF chunks '
                       'FOR VALUES WITH (MODULUS 32, REMAINDER %s)', lpad(i::text, 2, '0'), i);
    END LOOP;
END $$;

-- What was embedded before is embedded anew: nobody noted by which model, and it is minutes of background work.
DROP TABLE chunks_in_one;

CREATE INDEX idx_chunks_session_id ON chunks (campaign_id, session_id);
CREATE INDEX idx_chunks_utterance_id ON chunks (campaign_id, utterance_id);
CREATE INDEX idx_chunks_entity_id ON chunks (campaign_id, entity_id) WHERE entity_id <> '';
-- Half precision: 57 % of the size, the same recall. Only an approximate query (ordering by this very expression)
-- uses it; recall within a small scope is exact, because a filter over an approximate search loses rows.
CREATE INDEX idx_chunks_embedding ON chunks
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);
