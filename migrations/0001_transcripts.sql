-- Memory level 1: what was said. Append-only; `campaign_id` leads every key.

CREATE TABLE campaigns (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    language    TEXT NOT NULL,
    document    JSONB NOT NULL DEFAULT '{}',    -- the whole campaign as its file described it
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- No reference to campaigns: talk is kept even when its campaign was never loaded here.
CREATE TABLE sessions (
    campaign_id TEXT NOT NULL,
    id          TEXT NOT NULL,
    started_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (campaign_id, id)
);

CREATE TABLE session_entries (
    campaign_id  TEXT NOT NULL DEFAULT '',
    id           BIGSERIAL NOT NULL,
    session_id   TEXT NOT NULL,
    utterance_id TEXT NOT NULL,
    speaker_id   TEXT NOT NULL DEFAULT '',
    speaker_name TEXT NOT NULL DEFAULT '',
    text         TEXT NOT NULL,
    raw_text     TEXT NOT NULL DEFAULT '',
    npc_id       TEXT NOT NULL DEFAULT '',
    timestamp    TIMESTAMPTZ NOT NULL DEFAULT now(),
    duration_ns  BIGINT NOT NULL DEFAULT 0,
    witnesses    TEXT[] NOT NULL DEFAULT '{}',  -- the NPCs that were there
    -- Stored: computing it in each query takes three times as long. The speaker's name is part of what is found.
    fts          TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', speaker_name || ' ' || text)) STORED,
    -- Unstemmed and with stop words: an NPC may be called Will.
    names        TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', speaker_name || ' ' || text)) STORED,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, utterance_id),
    FOREIGN KEY (campaign_id, session_id) REFERENCES sessions (campaign_id, id)
);

CREATE INDEX idx_session_entries_session_id ON session_entries (campaign_id, session_id);
CREATE INDEX idx_session_entries_timestamp ON session_entries (campaign_id, timestamp);
CREATE INDEX idx_session_entries_session_timestamp ON session_entries (campaign_id, session_id, timestamp);
CREATE INDEX idx_session_entries_fts ON session_entries USING gin (fts);
CREATE INDEX idx_session_entries_names ON session_entries USING gin (names);

CREATE TABLE corrections (
    campaign_id  TEXT NOT NULL,
    utterance_id TEXT NOT NULL,
    ordinal      INT NOT NULL,
    start_char   INT NOT NULL,
    end_char     INT NOT NULL,
    before       TEXT NOT NULL,
    after        TEXT NOT NULL,
    score        FLOAT8 NOT NULL,
    stage        TEXT NOT NULL,
    reason       TEXT NOT NULL DEFAULT '',
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, utterance_id, ordinal),
    FOREIGN KEY (campaign_id, utterance_id) REFERENCES session_entries (campaign_id, utterance_id)
);

CREATE TABLE turns (
    campaign_id    TEXT NOT NULL,
    id             TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    speaker_id     TEXT NOT NULL,
    speaker_name   TEXT NOT NULL,
    raw_text       TEXT NOT NULL,
    text           TEXT NOT NULL,
    npc_id         TEXT NOT NULL DEFAULT '',
    address_reason TEXT NOT NULL DEFAULT '',
    outcome        TEXT NOT NULL,
    reply          TEXT NOT NULL DEFAULT '',
    reply_heard    TEXT NOT NULL DEFAULT '',
    recalled       JSONB NOT NULL DEFAULT '[]',
    stages         JSONB NOT NULL DEFAULT '{}',  -- milliseconds since the Unix epoch, by stage
    omitted        TEXT[] NOT NULL DEFAULT '{}',
    prompt_text    TEXT NOT NULL DEFAULT '',
    error          TEXT NOT NULL DEFAULT '',
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, id)
);

CREATE INDEX idx_turns_session_id ON turns (campaign_id, session_id);
