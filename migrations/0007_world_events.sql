-- Level 3 again. `world_events` is what happened to a campaign's world and is only added to. All other tables here are
-- projections of it, written in the same transaction: state is what a replay of the remaining events gives.

CREATE TABLE world_events (
    campaign_id    TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    seq            BIGINT NOT NULL,                  -- from 1, without a gap
    event_type     TEXT NOT NULL,
    payload        JSONB NOT NULL,
    at             TIMESTAMPTZ NOT NULL,             -- when it happened: when it was said, or when the DM decided
    by             TEXT NOT NULL,                    -- "campaign_file", "dm", "talk", "import", ...
    session_id     TEXT,
    floor          BIGINT,
    source_turn_id TEXT,                             -- the utterance it was learned from
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, seq)
);

CREATE INDEX idx_world_events_floor ON world_events (campaign_id, session_id, floor) WHERE session_id IS NOT NULL;
-- Events that speak of other events are few, and each undoing asks for all of them.
CREATE INDEX idx_world_events_undoing ON world_events (campaign_id, seq) WHERE event_type IN ('undone', 'rolled_back');

CREATE FUNCTION glyphoxa_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is only added to', TG_TABLE_NAME;
END $$;
CREATE TRIGGER world_events_append_only BEFORE UPDATE ON world_events
    FOR EACH ROW EXECUTE FUNCTION glyphoxa_append_only();

-- What is here came from campaign files, whose documents are kept: they are told anew as events when memory is next
-- opened (`campaign_documents.seq` is NULL until then).
DELETE FROM relationships;
DELETE FROM entities;
ALTER TABLE campaign_documents ADD COLUMN seq BIGINT; -- the last event of its last loading

-- Who may know an entity or a fact. `scope` says how it is known on the whole; `knowers` are the NPCs who know what
-- is not public; `known_how` tells of each how, through whom and since when.
ALTER TABLE entities
    ADD COLUMN scope     TEXT NOT NULL DEFAULT 'public'
        CHECK (scope IN ('public', 'witnessed', 'told', 'secret', 'hidden')),
    ADD COLUMN knowers   TEXT[] NOT NULL DEFAULT '{}',
    ADD COLUMN known_how JSONB NOT NULL DEFAULT '[]';

-- An entity that turned out to be another: what is said of it is said of that one.
CREATE TABLE entity_merges (
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    gone_id     TEXT NOT NULL,
    kept_id     TEXT NOT NULL,
    PRIMARY KEY (campaign_id, gone_id)
);

-- How many facts of a predicate may hold at a time, where a campaign says otherwise than the program.
CREATE TABLE slot_rules (
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    predicate   TEXT NOT NULL,
    rule        TEXT NOT NULL,
    PRIMARY KEY (campaign_id, predicate)
);

-- Current facts between two entities. One that holds both ways is stored both ways, under one fact_id.
-- `status`: accepted (true in the world), pending (waits for the DM), conflict (disagrees with an accepted one),
-- stale (rests on what is no longer so). Only what is accepted reaches an NPC.
ALTER TABLE relationships
    ADD COLUMN fact_id    TEXT NOT NULL,
    ADD COLUMN status     TEXT NOT NULL DEFAULT 'accepted'
        CHECK (status IN ('accepted', 'pending', 'conflict', 'stale')),
    ADD COLUMN scope      TEXT NOT NULL DEFAULT 'public'
        CHECK (scope IN ('public', 'witnessed', 'told', 'secret', 'hidden')),
    ADD COLUMN knowers    TEXT[] NOT NULL DEFAULT '{}',
    ADD COLUMN known_how  JSONB NOT NULL DEFAULT '[]',
    ADD COLUMN valid_from TIMESTAMPTZ,                -- NULL: since ever
    ADD COLUMN valid_to   TIMESTAMPTZ,                -- exclusive; NULL: until now
    ADD COLUMN story_from BIGINT,                     -- the same in days of the story's own calendar
    ADD COLUMN story_to   BIGINT,
    ADD COLUMN supports   TEXT[] NOT NULL DEFAULT '{}', -- facts it was derived from
    ADD COLUMN disputes   TEXT[] NOT NULL DEFAULT '{}', -- accepted facts it disagrees with
    ADD COLUMN mentions   INT NOT NULL DEFAULT 1,
    ADD COLUMN doubted    BOOLEAN NOT NULL DEFAULT FALSE, -- the DM refused this claim before
    ADD COLUMN seq        BIGINT NOT NULL;            -- the event that stated it
CREATE INDEX idx_rel_fact ON relationships (campaign_id, fact_id);
-- A slot is a subject or an object with a predicate.
DROP INDEX idx_rel_source, idx_rel_target;
-- A walk over what is public reads these alone; rows, which are wide, only for what is not.
CREATE INDEX idx_rel_source ON relationships (campaign_id, source_id, rel_type) INCLUDE (target_id, status, scope);
CREATE INDEX idx_rel_target ON relationships (campaign_id, target_id, rel_type) INCLUDE (source_id, status, scope);
CREATE INDEX idx_entities_restricted ON entities (campaign_id) WHERE scope <> 'public';
CREATE INDEX idx_rel_source_restricted ON relationships (campaign_id, source_id) WHERE scope <> 'public';
CREATE INDEX idx_rel_target_restricted ON relationships (campaign_id, target_id) WHERE scope <> 'public';
CREATE INDEX idx_rel_disputes ON relationships (campaign_id) WHERE disputes <> '{}';

-- Current facts of one entity: "Grimjaw, occupation: smith".
CREATE TABLE attribute_facts (
    campaign_id TEXT NOT NULL,
    fact_id     TEXT NOT NULL,
    entity_id   TEXT NOT NULL,
    attribute   TEXT NOT NULL,
    value       JSONB NOT NULL,
    attributes  JSONB NOT NULL DEFAULT '{}',
    provenance  JSONB NOT NULL DEFAULT '{}',
    origin      TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'accepted' CHECK (status IN ('accepted', 'pending', 'conflict', 'stale')),
    scope       TEXT NOT NULL DEFAULT 'public' CHECK (scope IN ('public', 'witnessed', 'told', 'secret', 'hidden')),
    knowers     TEXT[] NOT NULL DEFAULT '{}',
    known_how   JSONB NOT NULL DEFAULT '[]',
    valid_from  TIMESTAMPTZ,
    valid_to    TIMESTAMPTZ,
    story_from  BIGINT,
    story_to    BIGINT,
    supports    TEXT[] NOT NULL DEFAULT '{}',
    disputes    TEXT[] NOT NULL DEFAULT '{}',
    mentions    INT NOT NULL DEFAULT 1,
    doubted     BOOLEAN NOT NULL DEFAULT FALSE,
    seq         BIGINT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, fact_id),
    FOREIGN KEY (campaign_id, entity_id) REFERENCES entities (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX idx_attribute_facts_entity ON attribute_facts (campaign_id, entity_id, attribute);
CREATE INDEX idx_attribute_facts_disputes ON attribute_facts (campaign_id) WHERE disputes <> '{}';
CREATE INDEX idx_attribute_facts_confidence_number
    ON attribute_facts (campaign_id, ((provenance->>'confidence')::float8));

-- What rests on a fact, either kind.
CREATE TABLE fact_supports (
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    support_id  TEXT NOT NULL,
    fact_id     TEXT NOT NULL,
    PRIMARY KEY (campaign_id, support_id, fact_id)
);
CREATE INDEX idx_fact_supports_fact ON fact_supports (campaign_id, fact_id);

-- Facts that ended, either kind, with how: superseded, closed, rejected, edited, retconned, merged, entity_removed.
CREATE TABLE fact_history (
    campaign_id   TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    fact_id       TEXT NOT NULL,
    ended_seq     BIGINT NOT NULL,
    ended_as      TEXT NOT NULL,
    superseded_by TEXT,
    subject_id    TEXT NOT NULL,
    predicate     TEXT NOT NULL,
    object_id     TEXT,
    value         JSONB,
    attributes    JSONB NOT NULL DEFAULT '{}',
    provenance    JSONB NOT NULL DEFAULT '{}',
    origin        TEXT NOT NULL,
    status        TEXT NOT NULL,                     -- that it had at its end
    scope         TEXT NOT NULL,
    knowers       TEXT[] NOT NULL DEFAULT '{}',
    known_how     JSONB NOT NULL DEFAULT '[]',
    valid_from    TIMESTAMPTZ,
    valid_to      TIMESTAMPTZ,
    story_from    BIGINT,
    story_to      BIGINT,
    supports      TEXT[] NOT NULL DEFAULT '{}',
    disputes      TEXT[] NOT NULL DEFAULT '{}',
    mentions      INT NOT NULL DEFAULT 1,
    doubted       BOOLEAN NOT NULL DEFAULT FALSE,
    seq           BIGINT NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, fact_id, ended_seq)
);
CREATE INDEX idx_fact_history_subject ON fact_history (campaign_id, subject_id, predicate);

-- A projection kept for a while, so that looking far back need not replay everything.
CREATE TABLE world_snapshots (
    campaign_id        TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    seq                BIGINT NOT NULL,                -- the last event that is in it
    projection_version INT NOT NULL,
    payload            JSONB NOT NULL,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, seq)
);

-- Which talk each rollback struck, by ranges of floors. What is said after a rollback is not touched by it, though it
-- has higher floors: so that an undoing gives back what the rollback took, and no other one still takes.
CREATE TABLE struck_talk (
    campaign_id TEXT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    seq         BIGINT NOT NULL,                   -- of the rollback
    session_id  TEXT NOT NULL,
    after_floor BIGINT NOT NULL,                   -- exclusive
    last_floor  BIGINT NOT NULL,
    PRIMARY KEY (campaign_id, seq, session_id)
);

-- Give one campaign a copy of what another has in one table. By way of a temporary table, because a connection sees
-- one campaign at a time. What the table computes by itself is not copied; what triggers of other tables have put there
-- gives way.
CREATE FUNCTION glyphoxa_copy_rows(copied REGCLASS, source TEXT, target TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    columns TEXT;
    n       BIGINT;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO columns
      FROM pg_attribute
     WHERE attrelid = copied AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attname <> 'campaign_id';
    PERFORM set_config('glyphoxa.campaign', source, true);
    EXECUTE format('CREATE TEMPORARY TABLE glyphoxa_copied AS SELECT %s FROM %s WHERE campaign_id = %L',
                   columns, copied, source);
    PERFORM set_config('glyphoxa.campaign', target, true);
    EXECUTE format('DELETE FROM %s WHERE campaign_id = %L', copied, target);
    EXECUTE format('INSERT INTO %s (campaign_id, %s) OVERRIDING SYSTEM VALUE SELECT %L, %s FROM glyphoxa_copied',
                   copied, columns, target, columns);
    GET DIAGNOSTICS n = ROW_COUNT;
    DROP TABLE glyphoxa_copied;
    RETURN n;
END $$;
