-- How far the talk of each session has become knowledge. There is no queue beside the talk: a session has news as long
-- as its last utterance is behind `read_ordinal`, or as some of what was read says something else now.

CREATE TABLE chronicle_progress (
    campaign_id  TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    read_ordinal BIGINT  NOT NULL DEFAULT 0,        -- all up to it was read, and what it told is known
    attempts     INT     NOT NULL DEFAULT 0,        -- failures in a row
    error        TEXT,                              -- why the last one failed; NULL: it did not
    retry_at     TIMESTAMPTZ,                       -- not before; NULL: at once
    is_dead      BOOLEAN NOT NULL DEFAULT false,    -- it failed too often: until somebody says otherwise
    taken_by     TEXT,                              -- the worker that reads it
    taken_until  TIMESTAMPTZ,                       -- by then it has gone on, or is dead itself
    PRIMARY KEY (campaign_id, session_id)
);

CREATE TABLE chronicle_rereads (
    campaign_id TEXT   NOT NULL,
    session_id  TEXT   NOT NULL,
    ordinal     BIGINT NOT NULL,
    change_seq  BIGINT NOT NULL,                    -- of the change: a later one is read again
    PRIMARY KEY (campaign_id, session_id, ordinal)
);

CREATE FUNCTION glyphoxa_reread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq)
        VALUES (NEW.campaign_id, NEW.session_id, NEW.ordinal, NEW.change_seq)
        ON CONFLICT (campaign_id, session_id, ordinal) DO UPDATE SET change_seq = excluded.change_seq;
    RETURN NULL;
END $$;
CREATE TRIGGER reread AFTER UPDATE OF text ON session_entries
    FOR EACH ROW WHEN (OLD.text IS DISTINCT FROM NEW.text) EXECUTE FUNCTION glyphoxa_reread();

-- Whoever waits for talk is told of it when it is there.
CREATE FUNCTION glyphoxa_said() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('glyphoxa_said', json_build_object('campaign', current_setting('glyphoxa.campaign', true))::text);
    RETURN NULL;
END $$;
CREATE TRIGGER said AFTER INSERT OR UPDATE OF text ON session_entries
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_said();

SELECT glyphoxa_isolate();
