-- Level 1 again: one partition for a campaign and those that share its hash, so that a search never reads another's
-- talk; the place of each utterance in its session (`floor`); the language in which its words are found.

-- The text search configuration of a language ("de", "pt-BR"); `simple` for those PostgreSQL has none for.
CREATE FUNCTION glyphoxa_fts_config(language TEXT) RETURNS REGCONFIG LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (CASE lower(split_part(replace(language, '_', '-'), '-', 1))
        WHEN 'ar' THEN 'arabic' WHEN 'da' THEN 'danish' WHEN 'de' THEN 'german' WHEN 'en' THEN 'english'
        WHEN 'es' THEN 'spanish' WHEN 'fi' THEN 'finnish' WHEN 'fr' THEN 'french' WHEN 'hu' THEN 'hungarian'
        WHEN 'it' THEN 'italian' WHEN 'nb' THEN 'norwegian' WHEN 'nl' THEN 'dutch' WHEN 'nn' THEN 'norwegian'
        WHEN 'no' THEN 'norwegian' WHEN 'pt' THEN 'portuguese' WHEN 'ro' THEN 'romanian' WHEN 'ru' THEN 'russian'
        WHEN 'sv' THEN 'swedish' WHEN 'tr' THEN 'turkish' ELSE 'simple' END)::regconfig
$$;

-- What may be listed without knowing which campaign is asked for stays in `campaigns`; the rest, secrets among it,
-- is the campaign's own.
CREATE TABLE campaign_documents (
    campaign_id TEXT PRIMARY KEY REFERENCES campaigns (id) ON DELETE CASCADE,
    document    JSONB NOT NULL,                  -- the whole campaign as its file described it when it was last loaded
    loaded_at   TIMESTAMPTZ NOT NULL DEFAULT now()
);
INSERT INTO campaign_documents (campaign_id, document, loaded_at) SELECT id, document, updated_at FROM campaigns;
ALTER TABLE campaigns DROP COLUMN document;

-- The last floor that was given to an utterance of the session.
ALTER TABLE sessions ADD COLUMN last_floor BIGINT NOT NULL DEFAULT 0;

ALTER TABLE corrections DROP CONSTRAINT corrections_campaign_id_utterance_id_fkey;
ALTER TABLE chunks DROP CONSTRAINT chunks_campaign_id_id_fkey;
ALTER SEQUENCE session_entries_id_seq OWNED BY NONE;
ALTER TABLE session_entries RENAME TO session_entries_in_one;
ALTER TABLE session_entries_in_one DROP CONSTRAINT session_entries_pkey,
    DROP CONSTRAINT session_entries_campaign_id_utterance_id_key;
DROP INDEX idx_session_entries_session_id, idx_session_entries_timestamp, idx_session_entries_session_timestamp,
    idx_session_entries_fts, idx_session_entries_names;

CREATE TABLE session_entries (
    campaign_id  TEXT NOT NULL DEFAULT '',
    id           BIGINT NOT NULL DEFAULT nextval('session_entries_id_seq'),
    session_id   TEXT NOT NULL,
    floor        BIGINT NOT NULL,                -- its number in the session, from 1, in the order of arrival
    utterance_id TEXT NOT NULL,
    speaker_id   TEXT NOT NULL DEFAULT '',
    speaker_name TEXT NOT NULL DEFAULT '',
    text         TEXT NOT NULL,
    raw_text     TEXT NOT NULL DEFAULT '',
    npc_id       TEXT NOT NULL DEFAULT '',
    timestamp    TIMESTAMPTZ NOT NULL DEFAULT now(),
    duration_ns  BIGINT NOT NULL DEFAULT 0,
    witnesses    TEXT[] NOT NULL DEFAULT '{}',   -- the NPCs that were there
    struck       BOOLEAN NOT NULL DEFAULT FALSE, -- rolled back: kept, but nobody is reminded of it
    fts_config   REGCONFIG NOT NULL DEFAULT 'english',
    -- Stored: computing it in each query takes three times as long. The speaker's name is part of what is found.
    fts          TSVECTOR GENERATED ALWAYS AS (to_tsvector(fts_config, speaker_name || ' ' || text)) STORED,
    -- Unstemmed and with stop words: an NPC may be called Will.
    names        TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', speaker_name || ' ' || text)) STORED,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, utterance_id),
    FOREIGN KEY (campaign_id, session_id) REFERENCES sessions (campaign_id, id)
) PARTITION BY HASH (campaign_id);

DO $$ BEGIN
    FOR i IN 0..31 LOOP
        EXECUTE format('CREATE TABLE session_entries_%s PARTITION OF session_entries '
                       'FOR VALUES WITH (MODULUS 32, REMAINDER %s)', lpad(i::text, 2, '0'), i);
    END LOOP;
END $$;

INSERT INTO session_entries (campaign_id, id, session_id, floor, utterance_id, speaker_id, speaker_name, text,
                             raw_text, npc_id, timestamp, duration_ns, witnesses, fts_config)
    SELECT e.campaign_id, e.id, e.session_id,
           row_number() OVER (PARTITION BY e.campaign_id, e.session_id ORDER BY e.id),
           e.utterance_id, e.speaker_id, e.speaker_name, e.text, e.raw_text, e.npc_id, e.timestamp, e.duration_ns,
           e.witnesses, coalesce(glyphoxa_fts_config(c.language), 'english')
      FROM session_entries_in_one e LEFT JOIN campaigns c ON c.id = e.campaign_id;
DROP TABLE session_entries_in_one;
ALTER SEQUENCE session_entries_id_seq OWNED BY session_entries.id;
UPDATE sessions s SET last_floor = (SELECT count(*) FROM session_entries e
                                     WHERE e.campaign_id = s.campaign_id AND e.session_id = s.id);

CREATE INDEX idx_session_entries_session_id ON session_entries (campaign_id, session_id);
CREATE UNIQUE INDEX idx_session_entries_floor ON session_entries (campaign_id, session_id, floor);
CREATE INDEX idx_session_entries_timestamp ON session_entries (campaign_id, timestamp);
CREATE INDEX idx_session_entries_session_timestamp ON session_entries (campaign_id, session_id, timestamp);
CREATE INDEX idx_session_entries_speaker ON session_entries (campaign_id, speaker_id, timestamp);
CREATE INDEX idx_session_entries_fts ON session_entries USING gin (fts);
CREATE INDEX idx_session_entries_names ON session_entries USING gin (names);

ALTER TABLE corrections ADD FOREIGN KEY (campaign_id, utterance_id)
    REFERENCES session_entries (campaign_id, utterance_id);

-- An utterance with the corrections that led to its words, as the program reads it.
CREATE VIEW utterances WITH (security_invoker = true) AS
    SELECT e.campaign_id, e.id, e.session_id, e.floor, e.utterance_id, e.speaker_id, e.speaker_name, e.text, e.raw_text,
           e.npc_id, e.timestamp, e.duration_ns, e.witnesses, e.struck, e.fts, e.names,
           (SELECT jsonb_agg(jsonb_build_object('start', c.start_char, 'end', c.end_char, 'before', c.before,
                                                'after', c.after, 'score', c.score, 'stage', c.stage,
                                                'reason', c.reason) ORDER BY c.start_char, c.ordinal)
              FROM corrections c
             WHERE c.campaign_id = e.campaign_id AND c.utterance_id = e.utterance_id) AS corrections
      FROM session_entries e;
