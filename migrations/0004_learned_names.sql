-- Wrong forms of names ("Blue Crabin") and what they were found to stand for.
-- `learned_name_events` is what happened and is only added to; `learned_names` is where each pair stands and follows
-- from it. Neither refers to entities: a name that leaves a campaign file and comes back is still known.

CREATE TABLE learned_name_events (
    campaign_id  TEXT NOT NULL,
    id           BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY,
    heard        TEXT NOT NULL,                 -- folded: letters and digits only
    as_heard     TEXT NOT NULL,
    entity_id    TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('proved', 'disproved', 'confirmed', 'rejected', 'undone')),
    witness      TEXT NOT NULL,
    why          TEXT NOT NULL DEFAULT '',
    utterance_id TEXT,
    is_ordinary  BOOLEAN NOT NULL DEFAULT FALSE,
    undoes       BIGINT,
    at           TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (campaign_id, id),
    UNIQUE (campaign_id, undoes)                -- nothing is taken back twice
);

CREATE INDEX idx_learned_name_events_heard ON learned_name_events (campaign_id, heard, id);
CREATE INDEX idx_learned_name_events_decisions ON learned_name_events (campaign_id, id)
    WHERE kind IN ('confirmed', 'rejected');

CREATE TABLE learned_names (
    campaign_id TEXT NOT NULL,
    heard       TEXT NOT NULL,
    entity_id   TEXT NOT NULL,
    as_heard    TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('suggested', 'active', 'rejected', 'undone')),
    count       INT NOT NULL,
    provenance  JSONB NOT NULL,                 -- utterances: the last twenty in which it was heard so
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (campaign_id, heard, entity_id)
);

-- A form stands for one name at a time.
CREATE UNIQUE INDEX idx_learned_names_active ON learned_names (campaign_id, heard) WHERE state = 'active';

-- Tables that are being played follow what a DM changes elsewhere. The payload is an object with `campaign` and
-- `entity`; a payload may not exceed 8000 bytes, so that ids of absurd length are left out: anything may have changed.
CREATE FUNCTION glyphoxa_names_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed RECORD;
    entity  TEXT;
    payload TEXT;
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    entity := to_jsonb(changed) ->> TG_ARGV[0];
    payload := jsonb_build_object('campaign', changed.campaign_id, 'entity', entity)::text;
    PERFORM pg_notify('glyphoxa_names', CASE WHEN octet_length(payload) < 8000 THEN payload ELSE '{}' END);
    RETURN NULL;
END $$;

CREATE TRIGGER entities_added_or_removed AFTER INSERT OR DELETE ON entities
    FOR EACH ROW EXECUTE FUNCTION glyphoxa_names_changed('id');
CREATE TRIGGER entities_renamed AFTER UPDATE ON entities
    FOR EACH ROW WHEN ((OLD.name, OLD.aliases, OLD.type) IS DISTINCT FROM (NEW.name, NEW.aliases, NEW.type))
    EXECUTE FUNCTION glyphoxa_names_changed('id');

-- A suggestion changes nothing for those who play; only what becomes active or ceases to be.
CREATE TRIGGER learned_names_added AFTER INSERT ON learned_names
    FOR EACH ROW WHEN (NEW.state = 'active')
    EXECUTE FUNCTION glyphoxa_names_changed('entity_id');
CREATE TRIGGER learned_names_removed AFTER DELETE ON learned_names
    FOR EACH ROW WHEN (OLD.state = 'active')
    EXECUTE FUNCTION glyphoxa_names_changed('entity_id');
CREATE TRIGGER learned_names_decided AFTER UPDATE ON learned_names
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state AND 'active' IN (OLD.state, NEW.state))
    EXECUTE FUNCTION glyphoxa_names_changed('entity_id');
