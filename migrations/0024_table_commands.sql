-- What the DM commands at a table that is being played, from another process. What was obeyed stays: who was told what.

CREATE TABLE table_commands (
    campaign_id TEXT        NOT NULL,
    id          TEXT        NOT NULL,
    session_id  TEXT,                                            -- for the table of this session; NULL: for any
    asked_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    command     JSONB       NOT NULL,
    taken_by    TEXT,                                            -- the session whose table took it; NULL: none yet
    answer      TEXT,                                            -- what was done, or why nothing was; NULL: not yet
    is_done     BOOLEAN,
    PRIMARY KEY (campaign_id, id)
);

-- Who is muted, directed or bound in a session now: it goes on so when it is opened again.
CREATE TABLE table_controls (
    campaign_id TEXT  NOT NULL,
    session_id  TEXT  NOT NULL,
    controls    JSONB NOT NULL,
    PRIMARY KEY (campaign_id, session_id)
);

SELECT glyphoxa_isolate();
