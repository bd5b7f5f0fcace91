-- How the graph is read. The views have the rules of who asks them (`security_invoker`), so that one campaign never
-- sees another through them. They know of no viewer: what an NPC may see is decided by the queries over them.

-- A relation that holds both ways is stored both ways: see BIDIRECTIONAL_RELATIONS in glyphoxa/domain/campaign.py.
CREATE FUNCTION glyphoxa_holds_both_ways(predicate TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT predicate IN ('ALLIED_WITH', 'HOSTILE_TO')
$$;

-- Who may know of an entity, and of a fact; the viewer is NULL for the DM, who sees everything. Everywhere the same:
-- `Visibility.is_visible_to` in glyphoxa/domain/knowledge.py. A fact is known only where both of its ends are.
CREATE FUNCTION glyphoxa_may_know(viewer TEXT, scope TEXT, knowers TEXT[]) RETURNS BOOLEAN
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT viewer IS NULL OR scope = 'public' OR (scope <> 'hidden' AND viewer = ANY (knowers))
$$;
CREATE FUNCTION glyphoxa_may_know(viewer TEXT, status TEXT, scope TEXT, knowers TEXT[]) RETURNS BOOLEAN
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT viewer IS NULL
           OR (status = 'accepted' AND (scope = 'public' OR (scope <> 'hidden' AND viewer = ANY (knowers))))
$$;

-- An entity's id, or that of the one it was merged into.
CREATE FUNCTION glyphoxa_entity(campaign TEXT, entity TEXT) RETURNS TEXT LANGUAGE sql STABLE PARALLEL SAFE AS $$
    WITH RECURSIVE followed (id, steps) AS (
        SELECT entity, 0
        UNION ALL
        SELECT m.kept_id, f.steps + 1 FROM followed f JOIN entity_merges m ON m.campaign_id = campaign AND m.gone_id = f.id
         WHERE f.steps < 100)
    SELECT id FROM followed ORDER BY steps DESC LIMIT 1
$$;

-- The language in which the words of a new fact are found: that of the connection's campaign.
CREATE FUNCTION glyphoxa_campaign_fts_config() RETURNS REGCONFIG LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns
                      WHERE id = current_setting('glyphoxa.campaign', true)), 'simple'::regconfig)
$$;

-- Immutable, as a generated column must be: array_to_string is not only because of types whose text depends on
-- settings.
CREATE FUNCTION glyphoxa_name_words(name TEXT, aliases TEXT[]) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('simple'::regconfig, name || ' ' || array_to_string(aliases, ' '))
$$;

-- Unstemmed and with stop words: a name may be The Tide.
ALTER TABLE entities ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (glyphoxa_name_words(name, aliases)) STORED;
CREATE INDEX idx_entities_words ON entities USING gin (words);

-- What a fact says besides the names of its entities: stemmed, and as it stands.
ALTER TABLE relationships
    ADD COLUMN fts_config REGCONFIG NOT NULL DEFAULT glyphoxa_campaign_fts_config(),
    ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (
        to_tsvector('simple'::regconfig, replace(rel_type, '_', ' '))
        || to_tsvector(fts_config, replace(rel_type, '_', ' '))
        || jsonb_to_tsvector('simple'::regconfig, attributes, '["string", "numeric"]')
        || jsonb_to_tsvector(fts_config, attributes, '["string", "numeric"]')) STORED;
CREATE INDEX idx_rel_words ON relationships USING gin (words);
ALTER TABLE attribute_facts
    ADD COLUMN fts_config REGCONFIG NOT NULL DEFAULT glyphoxa_campaign_fts_config(),
    ADD COLUMN words TSVECTOR GENERATED ALWAYS AS (
        to_tsvector('simple'::regconfig, replace(attribute, '_', ' '))
        || to_tsvector(fts_config, replace(attribute, '_', ' '))
        || jsonb_to_tsvector('simple'::regconfig, value, '["string", "numeric"]')
        || jsonb_to_tsvector(fts_config, value, '["string", "numeric"]')) STORED;
CREATE INDEX idx_attribute_facts_words ON attribute_facts USING gin (words);

-- Few facts are secret, and an NPC's own are asked for in every turn.
CREATE INDEX idx_rel_secret ON relationships USING gin (knowers) WHERE scope = 'secret';
CREATE INDEX idx_attribute_facts_secret ON attribute_facts USING gin (knowers) WHERE scope = 'secret';

-- Current facts of both kinds, one row each (C-14), with when they were stated.
CREATE VIEW facts WITH (security_invoker = true) AS
    SELECT campaign_id, fact_id, source_id AS subject_id, rel_type AS predicate, target_id AS object_id,
           NULL::jsonb AS value, attributes, provenance, origin, status, scope, knowers, known_how,
           valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq, words, created_at,
           coalesce((provenance ->> 'timestamp')::timestamptz, created_at) AS stated_at
      FROM relationships
     WHERE NOT glyphoxa_holds_both_ways(rel_type) OR source_id COLLATE "C" <= target_id COLLATE "C"
    UNION ALL
    SELECT campaign_id, fact_id, entity_id, attribute, NULL::text,
           value, attributes, provenance, origin, status, scope, knowers, known_how,
           valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq, words, created_at,
           coalesce((provenance ->> 'timestamp')::timestamptz, created_at)
      FROM attribute_facts;
COMMENT ON VIEW facts IS
    'Current facts: relations (object_id) and attributes (value). One that holds both ways is one row.';

-- Relations that ended (C-16).
CREATE VIEW relationship_history WITH (security_invoker = true) AS
    SELECT campaign_id, fact_id, subject_id AS source_id, object_id AS target_id, predicate AS rel_type, attributes,
           provenance, origin, scope, knowers, valid_from, valid_to, story_from, story_to, status, ended_as, ended_seq,
           superseded_by, seq, created_at
      FROM fact_history
     WHERE object_id IS NOT NULL;
COMMENT ON VIEW relationship_history IS 'Relations that are no longer held, and how each ended.';

-- The same graph under the names that ontology tools ask for (C-39). Their `world_events` is the table of that name.
CREATE VIEW ontology_nodes WITH (security_invoker = true) AS
    SELECT campaign_id AS world_id, NULL::text AS session_id, id, id AS stable_key, type AS node_type,
           'entity'::text AS semantic_kind, name AS title, coalesce(attributes ->> 'description', '') AS summary,
           NULL::vector AS embedding, attributes ->> 'consent_state' AS consent_state,
           CASE scope WHEN 'hidden' THEN 'hidden' ELSE 'active' END AS status, created_at, updated_at
      FROM entities;
COMMENT ON VIEW ontology_nodes IS 'Entities; world_id is the campaign. Entities have no embedding of their own.';

CREATE VIEW ontology_edges WITH (security_invoker = true) AS
    SELECT campaign_id AS world_id, provenance ->> 'session_id' AS session_id, fact_id AS id,
           source_id AS from_node_id, target_id AS to_node_id, rel_type AS relation_label,
           coalesce(attributes ->> 'description', '') AS relation_description, provenance AS evidence,
           (provenance ->> 'confidence')::float8 AS confidence, status, created_at
      FROM relationships;
COMMENT ON VIEW ontology_edges IS 'Relations; one that holds both ways is an edge each way.';

CREATE VIEW ontology_snapshots WITH (security_invoker = true) AS
    SELECT s.campaign_id AS world_id, NULL::text AS session_id, s.seq AS id, s.projection_version, s.payload,
           ARRAY(SELECT e.seq FROM world_events e
                  WHERE e.campaign_id = s.campaign_id AND e.seq <= s.seq ORDER BY e.seq) AS source_event_ids,
           s.created_at
      FROM world_snapshots s;
COMMENT ON VIEW ontology_snapshots IS 'Kept projections of the log, each with the events that are in it.';
