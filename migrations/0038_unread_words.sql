-- Facts and entities are found by their words in memory, and so are an NPC's secrets. Nothing reads these columns and
-- indexes any more, and each write paid for them. `fts_config` stays, because bundles contain it. The views are the same
-- but for `words` in `facts`.
DROP VIEW ontology_nodes, withheld_knowledge, facts;

ALTER TABLE entities DROP COLUMN words;
ALTER TABLE relationships DROP COLUMN words;
ALTER TABLE attribute_facts DROP COLUMN words;
DROP FUNCTION glyphoxa_name_words(TEXT, TEXT[]);
DROP INDEX idx_rel_secret, idx_attribute_facts_secret;

CREATE VIEW facts WITH (security_invoker = true) AS
    SELECT campaign_id, fact_id, source_id AS subject_id, rel_type AS predicate, target_id AS object_id,
           NULL::jsonb AS value, attributes, provenance, origin, status, scope, knowers, known_how,
           valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq, created_at,
           coalesce((provenance ->> 'timestamp')::timestamptz, created_at) AS stated_at
      FROM relationships
     WHERE NOT glyphoxa_holds_both_ways(rel_type) OR source_id COLLATE "C" <= target_id COLLATE "C"
    UNION ALL
    SELECT campaign_id, fact_id, entity_id, attribute, NULL::text,
           value, attributes, provenance, origin, status, scope, knowers, known_how,
           valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq, created_at,
           coalesce((provenance ->> 'timestamp')::timestamptz, created_at)
      FROM attribute_facts;
COMMENT ON VIEW facts IS
    'Current facts: relations (object_id) and attributes (value). One that holds both ways is one row.';

CREATE VIEW withheld_knowledge WITH (security_invoker = true) AS
    SELECT DISTINCT ON (w.campaign_id, w.seq)
           w.campaign_id, w.session_id, w.seq, w.at AS created_at, e.utterance_id,
           CASE w.event_type WHEN 'entity_added' THEN 'entity' ELSE 'fact' END AS kind,
           coalesce(w.payload ->> 'entity', w.payload #>> '{claim,subject}') AS node_id,
           w.payload ->> 'type' AS node_type, w.payload ->> 'name' AS name,
           w.payload #>> '{claim,predicate}' AS predicate, w.payload #>> '{claim,object}' AS object_id,
           w.payload #>> '{claim,value}' AS value, 'withheld'::text AS consent_state
      FROM session_entries e
      JOIN world_events t ON t.campaign_id = e.campaign_id AND t.event_type = 'utterance_withheld'
                         AND t.payload ->> 'utterance' = e.utterance_id
     CROSS JOIN LATERAL jsonb_array_elements_text(t.payload -> 'events') AS d (seq)
      JOIN world_events w ON w.campaign_id = e.campaign_id AND w.seq = d.seq::bigint
                         AND w.event_type IN ('entity_added', 'fact_stated')
     WHERE e.withheld
       AND NOT EXISTS (SELECT FROM entities n
                        WHERE n.campaign_id = w.campaign_id AND n.id = w.payload ->> 'entity')
       AND NOT EXISTS (SELECT FROM facts f
                        WHERE f.campaign_id = w.campaign_id AND f.subject_id = w.payload #>> '{claim,subject}'
                          AND f.predicate = w.payload #>> '{claim,predicate}'
                          AND f.object_id IS NOT DISTINCT FROM w.payload #>> '{claim,object}'
                          AND f.value IS NOT DISTINCT FROM (w.payload #>> '{claim,value}')::jsonb);
COMMENT ON VIEW withheld_knowledge IS 'Entities and facts that rest only on utterances whose player does not want them remembered.';

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
