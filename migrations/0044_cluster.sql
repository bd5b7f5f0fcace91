-- Tables on several machines. One machine alone writes none of this.

-- The machines. Kept in the directory: the database that the settings name.
CREATE TABLE cluster_nodes (
    name TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    capacity INT NOT NULL CHECK (capacity >= 0),
    tables INT NOT NULL DEFAULT 0,
    memory_used REAL NOT NULL DEFAULT 0,
    lag_ms REAL NOT NULL DEFAULT 0,
    is_draining BOOLEAN NOT NULL DEFAULT false,
    seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp());

-- The one live table of a campaign. It names campaigns of other databases, too, so it refers to none of this one, and
-- its column has another name than that of the rows that only their own campaign may see.
CREATE TABLE table_leases (
    campaign TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    node TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    url TEXT NOT NULL DEFAULT '',
    until TIMESTAMPTZ NOT NULL);
CREATE INDEX idx_table_leases_node ON table_leases (node);
CREATE INDEX idx_table_leases_until ON table_leases (until);

-- The database of each campaign, by its name in the settings; a campaign without a row is in the directory itself.
CREATE TABLE campaign_servers (
    campaign TEXT PRIMARY KEY,
    server TEXT NOT NULL);

-- The latest epoch with which a campaign's table was opened. A table of an earlier one may write no more, even if it
-- does not know yet that it has been moved. The second key makes a change of the epoch wait for writes under way.
CREATE TABLE table_epochs (
    campaign_id TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    UNIQUE (campaign_id, epoch));

-- Small files of a table's data directory (links, consents, last session), so that it can be opened elsewhere.
CREATE TABLE table_files (
    campaign_id TEXT NOT NULL,
    name TEXT NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (campaign_id, name));
SELECT glyphoxa_isolate();

-- When each campaign is to be read and embedded next, for the readers of a cluster. One query finds all that are due,
-- because the table has no content and is no campaign's own: see `table_leases`. A campaign is here once a node of a
-- cluster has opened its table.
CREATE TABLE reading_queue (
    campaign TEXT PRIMARY KEY,
    due_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    is_new BOOLEAN NOT NULL DEFAULT true);           -- something was said since a reader took it
CREATE INDEX idx_reading_queue_due ON reading_queue (due_at);

-- The row stays locked until its transaction ends, even if nothing changes: a reader that comes meanwhile would note as
-- read what it does not see yet.
CREATE FUNCTION glyphoxa_queue_reading() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reading_queue SET is_new = true, due_at = least(due_at, clock_timestamp())
     WHERE campaign = current_setting('glyphoxa.campaign', true);
    RETURN NULL;
END $$;
CREATE TRIGGER queue_reading AFTER INSERT OR UPDATE OF place ON talk_to_embed
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_queue_reading();
CREATE TRIGGER queue_reading AFTER INSERT OR UPDATE ON chronicle_rereads
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_queue_reading();

CREATE FUNCTION glyphoxa_hold_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held TEXT := current_setting('glyphoxa.epoch', true);
BEGIN
    IF held <> '' THEN
        PERFORM FROM table_epochs
          WHERE campaign_id = current_setting('glyphoxa.campaign') AND epoch = held::BIGINT FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the table was moved to another machine' USING ERRCODE = 'object_not_in_prerequisite_state';
        END IF;
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    written TEXT;
BEGIN
    FOREACH written IN ARRAY ARRAY['sessions', 'session_entries', 'turns', 'session_states', 'world_events',
                                   'story_days', 'table_controls', 'table_files'] LOOP
        EXECUTE format('CREATE TRIGGER hold_epoch BEFORE INSERT OR UPDATE OR DELETE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_hold_epoch()', written);
    END LOOP;
END $$;

-- Delete all rows of a campaign that was moved to another database. Rows that others refer to are deleted after those.
CREATE FUNCTION glyphoxa_delete_campaign(gone TEXT) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    waiting TEXT[] := ARRAY(
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
           AND a.attname = 'campaign_id' AND c.relname <> 'table_epochs');
    refused TEXT[];
    name TEXT;
BEGIN
    LOOP
        refused := '{}';
        FOREACH name IN ARRAY waiting LOOP
            BEGIN
                EXECUTE format('DELETE FROM %I WHERE campaign_id = $1', name) USING gone;
            EXCEPTION WHEN foreign_key_violation THEN
                refused := refused || name;
            END;
        END LOOP;
        EXIT WHEN refused = '{}';
        IF refused = waiting THEN
            RAISE EXCEPTION 'rows of campaign % in % refer to each other', gone, refused;
        END IF;
        waiting := refused;
    END LOOP;
    DELETE FROM reading_queue WHERE campaign = gone;
    DELETE FROM campaigns WHERE id = gone;
END $$;
