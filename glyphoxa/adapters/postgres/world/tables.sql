-- all_entities --
SELECT id, type, name, aliases, scope, known_how, origin FROM entities WHERE campaign_id = $1;

-- all_merges --
SELECT gone_id, kept_id FROM entity_merges WHERE campaign_id = $1;

-- merged_names --
-- Reads all events of the campaign, if anything was merged.
SELECT id, type, names FROM merged_names WHERE campaign_id = $1 ORDER BY id;

-- secrets --
-- A page of an import that nobody knows cannot have been told, and has common words.
SELECT value #>> '{}' AS text FROM attribute_facts
 WHERE campaign_id = $1 AND scope IN ('secret', 'hidden') AND jsonb_typeof(value) = 'string'
   AND (knowers <> '{}' OR origin <> 'import')
 ORDER BY fact_id;

-- all_rules --
SELECT predicate, rule FROM slot_rules WHERE campaign_id = $1;

-- all_facts --
SELECT fact_id, subject_id, predicate, object_id, value, nullif(attributes, '{}') AS attributes,
       provenance::text AS provenance, origin, status, scope, nullif(known_how, '[]')::text AS known_how, valid_from,
       valid_to, story_from, story_to, nullif(supports, '{}') AS supports, nullif(disputes, '{}') AS disputes,
       mentions, doubted, seq
  FROM facts WHERE campaign_id = $1;

-- all_ended --
SELECT fact_id, ended_seq, ended_as, superseded_by, subject_id, predicate, object_id, value,
       nullif(attributes, '{}') AS attributes, provenance::text AS provenance, origin, status, scope,
       nullif(known_how, '[]')::text AS known_how, valid_from, valid_to, story_from, story_to,
       nullif(supports, '{}') AS supports, nullif(disputes, '{}') AS disputes, mentions, doubted, seq
  FROM fact_history WHERE campaign_id = $1;

-- all_refused --
-- Facts that the DM refused; $2: the ends that mean a refusal.
SELECT DISTINCT fact_id FROM fact_history WHERE campaign_id = $1 AND ended_as = ANY ($2);

-- put_entities --
INSERT INTO entities (campaign_id, id, type, name, aliases, origin, scope, knowers, known_how)
    SELECT $1, r.id, r.type, r.name, r.aliases, r.origin, r.scope, r.knowers, r.known_how
      FROM jsonb_to_recordset($2::text::jsonb) AS r (id TEXT, type TEXT, name TEXT, aliases TEXT[], origin TEXT,
                                                     scope TEXT, knowers TEXT[], known_how JSONB)
    ON CONFLICT (campaign_id, id) DO UPDATE
    SET type = excluded.type, name = excluded.name, aliases = excluded.aliases, origin = excluded.origin,
        scope = excluded.scope, knowers = excluded.knowers, known_how = excluded.known_how, updated_at = now();

-- remove_entities --
-- Run after their facts are deleted or moved.
DELETE FROM entities WHERE campaign_id = $1 AND id = ANY ($2);

-- put_merges --
INSERT INTO entity_merges (campaign_id, gone_id, kept_id)
    SELECT $1, gone, kept FROM unnest($2::text[], $3::text[]) AS m (gone, kept)
    ON CONFLICT (campaign_id, gone_id) DO UPDATE SET kept_id = excluded.kept_id;

-- remove_merges --
DELETE FROM entity_merges WHERE campaign_id = $1 AND gone_id = ANY ($2);

-- put_rules --
INSERT INTO slot_rules (campaign_id, predicate, rule)
    SELECT $1, predicate, rule FROM unnest($2::text[], $3::text[]) AS r (predicate, rule)
    ON CONFLICT (campaign_id, predicate) DO UPDATE SET rule = excluded.rule;

-- remove_rules --
DELETE FROM slot_rules WHERE campaign_id = $1 AND predicate = ANY ($2);

-- remove_facts --
-- Facts that are deleted or rewritten: a relation's key contains its ends, which a merge changes. Returns the
-- entities that lose an attribute. Served by idx_rel_fact, the key of attribute_facts, idx_fact_supports_fact.
WITH relations AS (DELETE FROM relationships WHERE campaign_id = $1 AND fact_id = ANY ($2)),
     supports AS (DELETE FROM fact_supports WHERE campaign_id = $1 AND fact_id = ANY ($2))
DELETE FROM attribute_facts WHERE campaign_id = $1 AND fact_id = ANY ($2) RETURNING entity_id;

-- put_facts --
-- $2: new facts of either kind. A relation of a type in $3 is symmetric and stored both ways. A fact's
-- creation time is that of the event that stated it.
WITH fact AS (
    SELECT r.*, (SELECT created_at FROM world_events e WHERE e.campaign_id = $1 AND e.seq = r.seq) AS created_at
      FROM jsonb_to_recordset($2::text::jsonb) AS r (
          fact_id TEXT, subject_id TEXT, predicate TEXT, object_id TEXT, value TEXT, attributes JSONB,
          provenance JSONB, origin TEXT, status TEXT, scope TEXT, knowers TEXT[], known_how JSONB,
          valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ, story_from BIGINT, story_to BIGINT, supports TEXT[],
          disputes TEXT[], mentions INT, doubted BOOLEAN, seq BIGINT)
), relation AS (
    INSERT INTO relationships (campaign_id, fact_id, source_id, rel_type, target_id, attributes, provenance, origin,
                               status, scope, knowers, known_how, valid_from, valid_to, story_from, story_to,
                               supports, disputes, mentions, doubted, seq, created_at)
    SELECT $1, fact_id, way.source, predicate, way.target, attributes, provenance, origin, status, scope, knowers,
           known_how, valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq,
           created_at
      FROM fact, LATERAL (SELECT subject_id, object_id
                          UNION SELECT object_id, subject_id WHERE predicate = ANY ($3)) AS way (source, target)
     WHERE object_id IS NOT NULL
), attribute AS (
    INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, attributes, provenance, origin,
                                 status, scope, knowers, known_how, valid_from, valid_to, story_from, story_to,
                                 supports, disputes, mentions, doubted, seq, created_at)
    SELECT $1, fact_id, subject_id, predicate, value::jsonb, attributes, provenance, origin, status, scope, knowers,
           known_how, valid_from, valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq,
           created_at
      FROM fact
     WHERE object_id IS NULL
)
INSERT INTO fact_supports (campaign_id, support_id, fact_id)
    SELECT DISTINCT $1, support, fact_id FROM fact, unnest(supports) AS support;

-- put_ended --
INSERT INTO fact_history (campaign_id, fact_id, ended_seq, ended_as, superseded_by, subject_id, predicate, object_id,
                          value, attributes, provenance, origin, status, scope, knowers, known_how, valid_from,
                          valid_to, story_from, story_to, supports, disputes, mentions, doubted, seq, created_at)
    SELECT $1, r.fact_id, r.ended_seq, r.ended_as, r.superseded_by, r.subject_id, r.predicate, r.object_id,
           r.value::jsonb, r.attributes, r.provenance, r.origin, r.status, r.scope, r.knowers, r.known_how,
           r.valid_from, r.valid_to, r.story_from, r.story_to, r.supports, r.disputes, r.mentions, r.doubted, r.seq,
           (SELECT created_at FROM world_events e WHERE e.campaign_id = $1 AND e.seq = r.seq)
      FROM jsonb_to_recordset($2::text::jsonb) AS r (
          fact_id TEXT, ended_seq BIGINT, ended_as TEXT, superseded_by TEXT, subject_id TEXT, predicate TEXT,
          object_id TEXT, value TEXT, attributes JSONB, provenance JSONB, origin TEXT, status TEXT, scope TEXT,
          knowers TEXT[], known_how JSONB, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ, story_from BIGINT,
          story_to BIGINT, supports TEXT[], disputes TEXT[], mentions INT, doubted BOOLEAN, seq BIGINT)
    ON CONFLICT (campaign_id, fact_id, ended_seq) DO UPDATE
    SET ended_as = excluded.ended_as, superseded_by = excluded.superseded_by, subject_id = excluded.subject_id,
        predicate = excluded.predicate, object_id = excluded.object_id, value = excluded.value,
        attributes = excluded.attributes, provenance = excluded.provenance, origin = excluded.origin,
        status = excluded.status, scope = excluded.scope, knowers = excluded.knowers, known_how = excluded.known_how,
        valid_from = excluded.valid_from, valid_to = excluded.valid_to, story_from = excluded.story_from,
        story_to = excluded.story_to, supports = excluded.supports, disputes = excluded.disputes,
        mentions = excluded.mentions, doubted = excluded.doubted, seq = excluded.seq, created_at = excluded.created_at;

-- remove_ended --
DELETE FROM fact_history h
 USING unnest($2::text[], $3::bigint[]) AS gone (fact_id, ended_seq)
 WHERE h.campaign_id = $1 AND h.fact_id = gone.fact_id AND h.ended_seq = gone.ended_seq;

-- put_attributes --
-- The public attributes of the entities $2 that need no decision by the DM, as one object. Several values of an
-- attribute are a list, in the order in which they were stated. Served by idx_attribute_facts_entity.
UPDATE entities e
   SET attributes = told.attributes, updated_at = now()
  FROM (SELECT wanted.id, coalesce(jsonb_object_agg(a.attribute, a.said) FILTER (WHERE a.attribute IS NOT NULL),
                                   '{}') AS attributes
          FROM unnest($2::text[]) AS wanted (id)
          LEFT JOIN (SELECT entity_id, attribute,
                            CASE count(*) WHEN 1 THEN jsonb_agg(value) -> 0
                                          ELSE jsonb_agg(value ORDER BY seq, fact_id) END AS said
                       FROM attribute_facts
                      WHERE campaign_id = $1 AND entity_id = ANY ($2) AND status = 'accepted' AND scope = 'public'
                      GROUP BY entity_id, attribute) a ON a.entity_id = wanted.id
         GROUP BY wanted.id) told
 WHERE e.campaign_id = $1 AND e.id = told.id AND e.attributes IS DISTINCT FROM told.attributes;
