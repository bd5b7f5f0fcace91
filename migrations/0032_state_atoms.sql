-- What talk leaves in the graph: a state atom for each utterance worth remembering. Its session, time, witnesses, words
-- and vector are those of the utterance, so that what is retracted or erased needs no care here.

CREATE TABLE state_atoms (
    campaign_id  TEXT   NOT NULL,
    stable_key   TEXT   NOT NULL,
    utterance_id TEXT   NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('relationship_beat', 'world_discovery', 'thread')),
    title        TEXT   NOT NULL,
    summary      TEXT   NOT NULL,
    confidence   FLOAT8 NOT NULL,
    about        TEXT[] NOT NULL DEFAULT '{}',       -- entities
    speaker      TEXT,                               -- an entity; NULL: a player that is none
    heard_by     TEXT[] NOT NULL DEFAULT '{}',       -- entities of the NPCs that heard it
    place        TEXT,                               -- an entity
    status       TEXT   NOT NULL DEFAULT 'session' CHECK (status IN ('session', 'consolidated')),
    PRIMARY KEY (campaign_id, stable_key),
    UNIQUE (campaign_id, utterance_id),
    FOREIGN KEY (campaign_id, utterance_id) REFERENCES session_entries (campaign_id, utterance_id) ON DELETE CASCADE
);

-- What consolidation found, always from an atom to an earlier one. An atom that is the same as another is shown as that
-- one, as long as both are live: nothing is copied, so nothing has to be taken apart again.
CREATE TABLE atom_edges (
    campaign_id TEXT   NOT NULL,
    from_key    TEXT   NOT NULL,
    to_key      TEXT   NOT NULL,
    label       TEXT   NOT NULL CHECK (label IN ('continues_thread', 'same_as')),
    confidence  FLOAT8 NOT NULL,
    PRIMARY KEY (campaign_id, from_key, to_key),
    FOREIGN KEY (campaign_id, from_key) REFERENCES state_atoms (campaign_id, stable_key) ON DELETE CASCADE,
    FOREIGN KEY (campaign_id, to_key) REFERENCES state_atoms (campaign_id, stable_key) ON DELETE CASCADE
);
CREATE INDEX idx_atom_edges_to ON atom_edges (campaign_id, to_key);

-- Other words are another atom, and erased ones none: until the utterance is read again there is no atom.
CREATE FUNCTION glyphoxa_atom_reworded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM state_atoms WHERE campaign_id = NEW.campaign_id AND utterance_id = NEW.utterance_id;
    RETURN NULL;
END $$;
CREATE TRIGGER atom_reworded AFTER UPDATE OF text ON session_entries
    FOR EACH ROW WHEN (OLD.text IS DISTINCT FROM NEW.text) EXECUTE FUNCTION glyphoxa_atom_reworded();

-- What was connected with an atom that is gone is consolidated once more.
CREATE FUNCTION glyphoxa_atom_disconnected() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE state_atoms SET status = 'session' WHERE campaign_id = OLD.campaign_id AND stable_key = OLD.from_key;
    RETURN NULL;
END $$;
CREATE TRIGGER atom_disconnected AFTER DELETE ON atom_edges
    FOR EACH ROW EXECUTE FUNCTION glyphoxa_atom_disconnected();

-- The vector of an entity is that of its name and description. `glyphoxa worker reindex` gives this table, too, the
-- dimensions of another model.
CREATE TABLE entity_vectors (
    campaign_id TEXT NOT NULL,
    entity_id   TEXT NOT NULL,
    content     TEXT NOT NULL,                       -- what was embedded
    model       TEXT NOT NULL,
    embedding   vector({{embedding_dimensions}}) NOT NULL,
    PRIMARY KEY (campaign_id, entity_id),
    FOREIGN KEY (campaign_id, entity_id) REFERENCES entities (campaign_id, id) ON DELETE CASCADE
);
ALTER TABLE entity_vectors ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX idx_entity_vectors_embedding ON entity_vectors
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);

SELECT glyphoxa_isolate();

-- Atoms whose utterance was not retracted, with what is the utterance's.
CREATE VIEW live_atoms WITH (security_invoker = true) AS
    SELECT a.*, e.session_id, e.ordinal, e.timestamp AS at, e.witnesses, e.speaker_id, e.speaker_name,
           coalesce(n.id, e.speaker_id) AS actor,    -- the speaker's entity, or the player
           kept.key AS kept_key,                     -- of the one it is the same as
           ARRAY(SELECT a.utterance_id UNION ALL
                 SELECT s.utterance_id
                   FROM atom_edges x
                   JOIN state_atoms s ON s.campaign_id = a.campaign_id AND s.stable_key = x.from_key
                   JOIN session_entries t ON t.campaign_id = a.campaign_id AND t.utterance_id = s.utterance_id
                  WHERE x.campaign_id = a.campaign_id AND x.to_key = a.stable_key AND x.label = 'same_as'
                    AND NOT t.retracted AND t.witnesses @> e.witnesses AND t.witnesses <@ e.witnesses) AS evidence
      FROM state_atoms a
      JOIN session_entries e ON e.campaign_id = a.campaign_id AND e.utterance_id = a.utterance_id AND NOT e.retracted
      LEFT JOIN entities n ON n.campaign_id = a.campaign_id AND n.id = a.speaker
      LEFT JOIN LATERAL (
           SELECT s.stable_key AS key
             FROM atom_edges x
             JOIN state_atoms s ON s.campaign_id = a.campaign_id AND s.stable_key = x.to_key
             JOIN session_entries t ON t.campaign_id = a.campaign_id AND t.utterance_id = s.utterance_id
            WHERE x.campaign_id = a.campaign_id AND x.from_key = a.stable_key AND x.label = 'same_as'
              AND NOT t.retracted AND t.witnesses @> e.witnesses AND t.witnesses <@ e.witnesses
            LIMIT 1) kept ON TRUE;
COMMENT ON VIEW live_atoms IS 'State atoms whose utterance was not retracted.';

-- Late-bound, so that these tables can be replaced while views need their vectors.
CREATE FUNCTION glyphoxa_vector(campaign TEXT, entity TEXT, utterance TEXT) RETURNS vector LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF entity IS NULL THEN
        RETURN (SELECT c.embedding FROM public.chunks c WHERE c.campaign_id = campaign AND c.id = utterance);
    END IF;
    RETURN (SELECT v.embedding FROM public.entity_vectors v WHERE v.campaign_id = campaign AND v.entity_id = entity);
END $$;

DROP VIEW ontology_nodes, ontology_edges, ontology_snapshots;

CREATE VIEW ontology_nodes WITH (security_invoker = true) AS
    SELECT e.campaign_id AS world_id, learned.session_id, e.id, e.id AS stable_key,
           CASE WHEN e.type IN ('npc', 'player', 'location') THEN 'anchor' ELSE 'entity' END AS node_type,
           e.type AS semantic_kind, e.name AS title, coalesce(e.attributes ->> 'description', '') AS summary,
           glyphoxa_vector(e.campaign_id, e.id, NULL) AS embedding,
           'given'::text AS consent_state,
           CASE e.scope WHEN 'hidden' THEN 'hidden' ELSE 'active' END AS status, 'campaign'::text AS scope,
           coalesce(learned.evidence, '{}') AS evidence, e.created_at, e.updated_at
      FROM entities e
      LEFT JOIN (SELECT w.campaign_id, w.payload ->> 'entity' AS entity, min(w.session_id) AS session_id,
                        array_agg(w.source_turn_id ORDER BY w.seq) AS evidence
                   FROM world_events w
                  WHERE w.event_type = 'entity_added' AND w.source_turn_id IS NOT NULL
                  GROUP BY 1, 2) learned ON learned.campaign_id = e.campaign_id AND learned.entity = e.id
    UNION ALL
    SELECT a.campaign_id, min(a.session_id), a.actor, a.actor, 'anchor', 'player', min(a.speaker_name), '',
           NULL, 'given', 'active', 'campaign', array_agg(a.utterance_id ORDER BY a.at), min(a.at), max(a.at)
      FROM live_atoms a
     WHERE NOT EXISTS (SELECT FROM entities e WHERE e.campaign_id = a.campaign_id AND e.id = a.actor)
     GROUP BY a.campaign_id, a.actor
    UNION ALL
    SELECT a.campaign_id, a.session_id, a.stable_key, a.stable_key, 'state_atom', a.kind, a.title, a.summary,
           glyphoxa_vector(a.campaign_id, NULL, a.utterance_id), 'given', a.status,
           CASE a.status WHEN 'session' THEN 'session' ELSE 'campaign' END, a.evidence, a.at, a.at
      FROM live_atoms a
     WHERE a.kept_key IS NULL
    UNION ALL
    -- What is withheld is there without its words.
    SELECT a.campaign_id, e.session_id, a.stable_key, a.stable_key, 'state_atom', a.kind, '', '', NULL, 'withheld',
           a.status, 'session', ARRAY[a.utterance_id], e.timestamp, e.timestamp
      FROM state_atoms a
      JOIN session_entries e ON e.campaign_id = a.campaign_id AND e.utterance_id = a.utterance_id AND e.withheld
    UNION ALL
    SELECT k.campaign_id, min(k.session_id), k.node_id, k.node_id,
           CASE WHEN min(k.node_type) IN ('npc', 'player', 'location') THEN 'anchor' ELSE 'entity' END,
           min(k.node_type), '', '', NULL, 'withheld', 'hidden', 'campaign', array_agg(k.utterance_id),
           min(k.created_at), max(k.created_at)
      FROM withheld_knowledge k
     WHERE k.kind = 'entity'
     GROUP BY k.campaign_id, k.node_id;
COMMENT ON VIEW ontology_nodes IS
    'Anchors (people, places), other entities, and state atoms; world_id is the campaign. Scope says where a node holds.';

CREATE VIEW ontology_edges WITH (security_invoker = true) AS
    SELECT r.campaign_id AS world_id, r.provenance ->> 'session_id' AS session_id, r.fact_id AS id,
           r.source_id AS from_node_id, r.target_id AS to_node_id, r.rel_type AS relation_label,
           coalesce(r.attributes ->> 'description',
                    s.name || ' ' || lower(replace(r.rel_type, '_', ' ')) || ' ' || t.name) AS relation_description,
           r.provenance AS evidence, (r.provenance ->> 'confidence')::float8 AS confidence, r.status, r.created_at
      FROM relationships r
      JOIN entities s ON s.campaign_id = r.campaign_id AND s.id = r.source_id
      JOIN entities t ON t.campaign_id = r.campaign_id AND t.id = r.target_id
    UNION ALL
    SELECT x.campaign_id, min(x.session_id), x.source || ' ' || x.label || ' ' || x.target, x.source, x.target, x.label,
           left(string_agg(DISTINCT x.title, '; '), 240),
           jsonb_build_object('utterances', jsonb_agg(x.utterance_id ORDER BY x.at)),
           max(x.confidence), min(x.status), min(x.at)
      FROM (SELECT a.campaign_id, a.session_id, a.title, a.utterance_id, a.status, a.at, e.label, e.confidence,
                   coalesce(e.source, a.kept_key, a.stable_key) AS source,
                   coalesce(e.target, a.kept_key, a.stable_key) AS target
              FROM (SELECT l.*,
                           CASE WHEN l.kept_key IS NULL
                                THEN lag(l.stable_key) OVER (PARTITION BY l.campaign_id, l.session_id, l.kept_key IS NULL
                                                                 ORDER BY l.ordinal) END AS previous
                      FROM live_atoms l) a
             CROSS JOIN LATERAL (
                   SELECT 'shared_scene_with' AS label, a.actor AS source, h AS target, 1.0::float8 AS confidence
                     FROM unnest(a.heard_by) h WHERE h <> a.actor
                   UNION ALL
                   SELECT 'discovered', a.actor, NULL, a.confidence WHERE a.kind = 'world_discovery'
                   UNION ALL
                   SELECT 'at_location', NULL, a.place, 1.0 WHERE a.place IS NOT NULL
                   UNION ALL
                   SELECT 'temporal_follows', NULL, a.previous, 1.0 WHERE a.previous IS NOT NULL
                   UNION ALL
                   SELECT c.label, NULL, coalesce(k.kept_key, c.to_key), c.confidence
                     FROM atom_edges c
                     JOIN live_atoms k ON k.campaign_id = a.campaign_id AND k.stable_key = c.to_key
                    WHERE c.campaign_id = a.campaign_id AND c.from_key = a.stable_key AND c.label = 'continues_thread'
                   ) e) x
     WHERE x.source <> x.target
       AND (x.label NOT IN ('shared_scene_with', 'at_location')
            OR EXISTS (SELECT FROM entities n WHERE n.campaign_id = x.campaign_id AND n.id = x.target))
     GROUP BY x.campaign_id, x.source, x.label, x.target;
COMMENT ON VIEW ontology_edges IS
    'Relations (one that holds both ways is an edge each way), and what connects state atoms with anchors and each other.';

CREATE VIEW ontology_snapshots WITH (security_invoker = true) AS
    SELECT s.campaign_id AS world_id,
           (SELECT e.session_id FROM world_events e
             WHERE e.campaign_id = s.campaign_id AND e.seq <= s.seq AND e.session_id IS NOT NULL
             ORDER BY e.seq DESC LIMIT 1) AS session_id,                          -- the last one that is in it
           s.seq AS id, s.projection_version, s.payload,
           ARRAY(SELECT e.seq FROM world_events e
                  WHERE e.campaign_id = s.campaign_id AND e.seq <= s.seq ORDER BY e.seq) AS source_event_ids,
           s.created_at
      FROM world_snapshots s;
COMMENT ON VIEW ontology_snapshots IS 'Kept projections of the log, each with the events that are in it.';
