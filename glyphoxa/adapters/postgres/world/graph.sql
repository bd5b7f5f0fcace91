-- Queries on level 3, each for a viewer, NULL for the DM: see glyphoxa_may_know. What the viewer
-- may not know is excluded before anything is counted, limited or traversed.

-- entities --
-- All entities of a campaign, or those of one type ($3 not null). Served by idx_entities_type.
SELECT id, type, name, aliases, attributes AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND glyphoxa_may_know($2, scope, knowers) AND ($3::text IS NULL OR type = $3)
 ORDER BY type, name, id;

-- known --
-- Part 0: the entity $3. Part 1: facts about it, each with its other end without that end's attributes. Part 2, if $4:
-- the viewer's secrets about other entities. Reads only what is needed, since an NPC's identity may be hundreds of
-- facts: no empty JSON and lists, provenance as text. A symmetric relation is found from its own
-- side. Served by idx_rel_source (or the table's key), idx_rel_target, idx_attribute_facts_entity, idx_rel_secret and
-- idx_attribute_facts_secret.
WITH node AS MATERIALIZED (
    SELECT id, type, name, aliases, attributes
      FROM entities
     WHERE campaign_id = $1 AND id = glyphoxa_entity($1, $3) AND glyphoxa_may_know($2, scope, knowers))
SELECT 0 AS part, NULL AS fact_id, NULL AS subject_id, NULL AS predicate, NULL AS object_id, NULL::jsonb AS value,
       NULL::jsonb AS attributes, NULL AS provenance, NULL AS origin, NULL AS status, NULL AS scope, NULL AS known_how,
       NULL::timestamptz AS valid_from, NULL::timestamptz AS valid_to, NULL::bigint AS story_from,
       NULL::bigint AS story_to, NULL::text[] AS supports, NULL::text[] AS disputes, NULL::int AS mentions,
       NULL::boolean AS doubted, NULL::bigint AS seq,
       n.id, n.type, n.name, n.aliases, n.attributes AS entity_attributes
  FROM node n
UNION ALL
SELECT 1, r.fact_id, r.source_id, r.rel_type, r.target_id, NULL, nullif(r.attributes, '{}'), r.provenance::text,
       r.origin, r.status, r.scope, nullif(r.known_how, '[]')::text, r.valid_from, r.valid_to, r.story_from,
       r.story_to, nullif(r.supports, '{}'), nullif(r.disputes, '{}'), r.mentions, r.doubted, r.seq,
       o.id, o.type, o.name, nullif(o.aliases, '{}'), NULL
  FROM relationships r JOIN entities o ON o.campaign_id = $1 AND o.id = r.target_id
 WHERE r.campaign_id = $1 AND r.source_id = (SELECT id FROM node)
   AND glyphoxa_may_know($2, r.status, r.scope, r.knowers) AND glyphoxa_may_know($2, o.scope, o.knowers)
UNION ALL
SELECT 1, r.fact_id, r.source_id, r.rel_type, r.target_id, NULL, nullif(r.attributes, '{}'), r.provenance::text,
       r.origin, r.status, r.scope, nullif(r.known_how, '[]')::text, r.valid_from, r.valid_to, r.story_from,
       r.story_to, nullif(r.supports, '{}'), nullif(r.disputes, '{}'), r.mentions, r.doubted, r.seq,
       o.id, o.type, o.name, nullif(o.aliases, '{}'), NULL
  FROM relationships r JOIN entities o ON o.campaign_id = $1 AND o.id = r.source_id
 WHERE r.campaign_id = $1 AND r.target_id = (SELECT id FROM node)
   AND r.source_id <> r.target_id AND NOT glyphoxa_holds_both_ways(r.rel_type)
   AND glyphoxa_may_know($2, r.status, r.scope, r.knowers) AND glyphoxa_may_know($2, o.scope, o.knowers)
UNION ALL
SELECT 1, a.fact_id, a.entity_id, a.attribute, NULL, a.value, nullif(a.attributes, '{}'), a.provenance::text,
       a.origin, a.status, a.scope, nullif(a.known_how, '[]')::text, a.valid_from, a.valid_to, a.story_from,
       a.story_to, nullif(a.supports, '{}'), nullif(a.disputes, '{}'), a.mentions, a.doubted, a.seq,
       NULL, NULL, NULL, NULL, NULL
  FROM attribute_facts a
 WHERE a.campaign_id = $1 AND a.entity_id = (SELECT id FROM node)
   AND glyphoxa_may_know($2, a.status, a.scope, a.knowers)
UNION ALL
SELECT 2, r.fact_id, r.source_id, r.rel_type, r.target_id, NULL, nullif(r.attributes, '{}'), r.provenance::text,
       r.origin, r.status, r.scope, nullif(r.known_how, '[]')::text, r.valid_from, r.valid_to, r.story_from,
       r.story_to, nullif(r.supports, '{}'), nullif(r.disputes, '{}'), r.mentions, r.doubted, r.seq,
       NULL, NULL, NULL, NULL, NULL
  FROM relationships r
  JOIN entities s ON s.campaign_id = $1 AND s.id = r.source_id
  JOIN entities o ON o.campaign_id = $1 AND o.id = r.target_id
 WHERE $4 AND r.campaign_id = $1 AND r.scope = 'secret' AND r.knowers @> ARRAY[$2]
   AND r.source_id <> (SELECT id FROM node) AND r.target_id <> (SELECT id FROM node)
   AND (NOT glyphoxa_holds_both_ways(r.rel_type) OR r.source_id COLLATE "C" <= r.target_id COLLATE "C")
   AND glyphoxa_may_know($2, r.status, r.scope, r.knowers)
   AND glyphoxa_may_know($2, s.scope, s.knowers) AND glyphoxa_may_know($2, o.scope, o.knowers)
UNION ALL
SELECT 2, a.fact_id, a.entity_id, a.attribute, NULL, a.value, nullif(a.attributes, '{}'), a.provenance::text,
       a.origin, a.status, a.scope, nullif(a.known_how, '[]')::text, a.valid_from, a.valid_to, a.story_from,
       a.story_to, nullif(a.supports, '{}'), nullif(a.disputes, '{}'), a.mentions, a.doubted, a.seq,
       NULL, NULL, NULL, NULL, NULL
  FROM attribute_facts a
  JOIN entities s ON s.campaign_id = $1 AND s.id = a.entity_id
 WHERE $4 AND a.campaign_id = $1 AND a.scope = 'secret' AND a.knowers @> ARRAY[$2]
   AND a.entity_id <> (SELECT id FROM node)
   AND glyphoxa_may_know($2, a.status, a.scope, a.knowers) AND glyphoxa_may_know($2, s.scope, s.knowers);

-- visible_subgraph --
-- Entities at most $4 relations away from $3: the first of any type, later ones of the types $5. Part 0: entities with
-- their depth. Part 1: relations between them.
WITH walk AS MATERIALIZED (SELECT * FROM glyphoxa_walk($1, $2, $3, $4, types => $5, first_of_any => true)),
reached AS MATERIALIZED (SELECT l.id FROM walk w CROSS JOIN LATERAL unnest(w.level) AS l (id))
SELECT 0 AS part, NULL AS fact_id, NULL AS subject_id, NULL AS predicate, NULL AS object_id, NULL::jsonb AS value,
       NULL::jsonb AS attributes, NULL AS provenance, NULL AS origin, NULL AS status, NULL AS scope, NULL AS known_how,
       NULL::timestamptz AS valid_from, NULL::timestamptz AS valid_to, NULL::bigint AS story_from,
       NULL::bigint AS story_to, NULL::text[] AS supports, NULL::text[] AS disputes, NULL::int AS mentions,
       NULL::boolean AS doubted, NULL::bigint AS seq,
       e.id, e.type, e.name, nullif(e.aliases, '{}') AS aliases, nullif(e.attributes, '{}') AS entity_attributes,
       w.depth
  FROM walk w CROSS JOIN LATERAL (SELECT * FROM entities e WHERE e.campaign_id = $1 AND e.id = ANY (w.level)) e
UNION ALL
SELECT 1, r.fact_id, r.source_id, r.rel_type, r.target_id, NULL, nullif(r.attributes, '{}'), r.provenance::text,
       r.origin, r.status, r.scope, nullif(r.known_how, '[]')::text, r.valid_from, r.valid_to, r.story_from,
       r.story_to, nullif(r.supports, '{}'), nullif(r.disputes, '{}'), r.mentions, r.doubted, r.seq,
       NULL, NULL, NULL, NULL, NULL, NULL
  FROM relationships r
 WHERE r.campaign_id = $1
   AND r.source_id = ANY ((SELECT array_agg(id) FROM reached)::text[])
   AND r.target_id IN (SELECT id FROM reached)
   AND (NOT glyphoxa_holds_both_ways(r.rel_type) OR r.source_id COLLATE "C" <= r.target_id COLLATE "C")
   AND glyphoxa_may_know($2, r.status, r.scope, r.knowers);

-- traverse --
-- Everything at most $4 relations away from $3, along relations of the types $6 (NULL: all) in the direction $5,
-- nearest first, at most $7. A level is not expanded if the previous ones suffice.
SELECT e.id, e.type, e.name, e.aliases, e.attributes AS entity_attributes, w.depth
  FROM glyphoxa_walk($1, $2, $3, $4, direction => $5, types => $6, enough => $7) w
 CROSS JOIN LATERAL (SELECT * FROM entities e WHERE e.campaign_id = $1 AND e.id = ANY (w.level)) e
 ORDER BY w.depth, e.name, e.id
 LIMIT $7;
