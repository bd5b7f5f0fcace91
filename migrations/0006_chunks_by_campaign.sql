-- Level 2 again: by campaign like the talk, with who may be reminded of a chunk and which model embedded it.
-- {{embedding_dimensions}} is the number of the settings at the time the database was made. `glyphoxa reindex` builds
-- a table like this one (its columns, keys and indexes are read from here) for another model, and swaps the two.

DROP INDEX idx_chunks_session_id, idx_chunks_embedding;
ALTER TABLE chunks RENAME TO chunks_in_one;
ALTER TABLE chunks_in_one DROP CONSTRAINT chunks_pkey;

CREATE TABLE chunks (
    campaign_id  TEXT NOT NULL,
    id           TEXT NOT NULL,                    -- of the utterance; `#2` and so on behind it if it was cut
    utterance_id TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    content      TEXT NOT NULL,                    -- what was embedded
    content_hash TEXT NOT NULL,                    -- of the content and of the way in which talk is cut
    embedding    vector({{embedding_dimensions}}) NOT NULL,
    model        TEXT NOT NULL,                    -- vectors of different models are never compared
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

-- Out-of-line vectors would make an exact scan several times slower. MAIN moves only what no page can hold.
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE MAIN;

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
-- What one NPC heard, what speaks of an entity, or both: inside the index the lists are cut with each other, and an
-- exact search reads nothing else.
CREATE INDEX idx_chunks_entity_ids ON chunks USING gin (entity_ids, knowers);
-- Half precision: 57 % of the size, the same recall. Only an approximate query (ordering by this very expression)
-- uses it; recall within a small scope is exact, because a filter over an approximate search loses rows.
CREATE INDEX idx_chunks_embedding ON chunks
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);

-- As for words in 0008: under rules about rows an index may serve a comparison only if that is trusted to tell
-- nothing of rows that the rules hide.
DO $$ BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) LEAKPROOF;
        ALTER FUNCTION pg_catalog.arrayoverlap(anyarray, anyarray) LEAKPROOF;
    END IF;
END $$;

-- Utterances that are new or not as they were, until their chunks are as they are: nobody searches all talk for them.
CREATE TABLE talk_to_embed (
    campaign_id  TEXT NOT NULL,
    utterance_id TEXT NOT NULL,
    place        BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY,
    failures     INT NOT NULL DEFAULT 0,           -- times that the model could do nothing with it
    anew         BOOLEAN NOT NULL DEFAULT FALSE,   -- even if it is embedded as it is
    PRIMARY KEY (campaign_id, utterance_id)
);
CREATE INDEX idx_talk_to_embed_place ON talk_to_embed (campaign_id, place);
INSERT INTO talk_to_embed (campaign_id, utterance_id)
    SELECT campaign_id, utterance_id FROM session_entries ORDER BY id;

CREATE FUNCTION glyphoxa_talk_was_said() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO talk_to_embed (campaign_id, utterance_id)
        SELECT campaign_id, utterance_id FROM said
        ON CONFLICT (campaign_id, utterance_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER talk_was_said AFTER INSERT ON session_entries
    REFERENCING NEW TABLE AS said FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_talk_was_said();

-- A new place tells whoever is embedding the old words that they are not done with it.
CREATE FUNCTION glyphoxa_talk_was_revised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO talk_to_embed (campaign_id, utterance_id) VALUES (NEW.campaign_id, NEW.utterance_id)
        ON CONFLICT (campaign_id, utterance_id) DO UPDATE SET place = DEFAULT, failures = 0;
    RETURN NULL;
END $$;
CREATE TRIGGER talk_was_revised AFTER UPDATE ON session_entries
    FOR EACH ROW WHEN ((OLD.text, OLD.speaker_name, OLD.witnesses, OLD.struck)
                       IS DISTINCT FROM (NEW.text, NEW.speaker_name, NEW.witnesses, NEW.struck))
    EXECUTE FUNCTION glyphoxa_talk_was_revised();
