-- Queries on level 3, each for a viewer, NULL for the DM: see glyphoxa_may_know. What the viewer
-- may not know is excluded before anything is counted, limited or traversed.

-- entities --
-- All entities of a campaign, or those of one type ($3 not null). Served by idx_entities_type.
SELECT id, type, name, aliases, attributes AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND glyphoxa_may_know($2, scope, knowers) AND ($3::text IS NULL OR type = $3)
 ORDER BY type, name, id;

-- entities_if_few --
-- The same, at most $4 + 1 in any order, so that a large campaign is not read completely.
SELECT id, type, name, nullif(aliases, '{}') AS aliases, nullif(attributes, '{}') AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND glyphoxa_may_know($2, scope, knowers) AND ($3::text IS NULL OR type = $3)
 LIMIT $4 + 1;

-- entities_like --
-- Entities with a word in a name that begins as in $4, of type $3 (NULL: any). Served by idx_entities_words.
SELECT id, type, name, nullif(aliases, '{}') AS aliases, nullif(attributes, '{}') AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND words @@ to_tsquery('simple', $4) AND glyphoxa_may_know($2, scope, knowers)
   AND ($3::text IS NULL OR type = $3)
 ORDER BY type, name, id;

-- entities_called --
-- Entities whose names contain all words of $3. Served by idx_entities_words.
SELECT id, type, name, aliases, attributes AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND words @@ plainto_tsquery('simple', $3) AND glyphoxa_may_know($2, scope, knowers)
 ORDER BY type, name, id;

-- entities_of --
-- Entities with the ids $3. Served by the table's key.
SELECT id, type, name, aliases, attributes AS entity_attributes
  FROM entities
 WHERE campaign_id = $1 AND id = ANY ($3::text[]) AND glyphoxa_may_know($2, scope, knowers)
 ORDER BY type, name, id;

-- known --
-- Part 0: the entity $3. Part 1: facts about it, each with its other end without that end's attributes. Part 2, if $4:
-- the viewer's secrets about other entities. Reads only what is needed, since an NPC's identity may be hundreds of
-- facts: no words, no empty JSON and lists, provenance as text. A symmetric relation is found from its own
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

-- path --
-- A shortest chain of relations from $3 to $4, at most $5 long: a row for each relation with the entity it leads to,
-- in order, and one without a relation for the start (so that no row means no path). The walk finds the levels up to
-- the target; the way back picks a relation to the previous level. The length of the chain is unknown when this is
-- planned: each of its facts is looked up separately, or all of them would be read.
WITH RECURSIVE ends AS MATERIALIZED (SELECT glyphoxa_entity($1, $3) AS source, glyphoxa_entity($1, $4) AS target),
walk AS MATERIALIZED (SELECT * FROM glyphoxa_walk($1, $2, $3, $5, target => (SELECT target FROM ends))),
back (depth, id, fact_id, leads_to) AS (
    SELECT w.depth, ends.target, NULL::text, NULL::text FROM walk w, ends WHERE ends.target = ANY (w.level)
    UNION ALL
    SELECT b.depth - 1, s.id, s.fact_id, b.id
      FROM back b
      JOIN walk w ON w.depth = b.depth - 1
     CROSS JOIN LATERAL (
           SELECT step.id, step.fact_id
             FROM (SELECT r.source_id AS id, r.fact_id, r.rel_type
                     FROM relationships r
                    WHERE r.campaign_id = $1 AND r.target_id = b.id
                      AND glyphoxa_may_know($2, r.status, r.scope, r.knowers)
                   UNION ALL
                   SELECT r.target_id, r.fact_id, r.rel_type
                     FROM relationships r
                    WHERE r.campaign_id = $1 AND r.source_id = b.id
                      AND glyphoxa_may_know($2, r.status, r.scope, r.knowers)) step
            WHERE step.id = ANY (w.level)
            ORDER BY step.id, step.rel_type, step.fact_id
            LIMIT 1) s)
SELECT f.*, e.id, e.type, e.name, e.aliases, e.attributes AS entity_attributes
  FROM back b
  LEFT JOIN LATERAL (SELECT * FROM facts f WHERE f.campaign_id = $1 AND f.fact_id = b.fact_id LIMIT 1) f ON true
  LEFT JOIN LATERAL (SELECT * FROM entities e WHERE e.campaign_id = $1 AND e.id = b.leads_to LIMIT 1) e ON true
 ORDER BY b.depth;

-- facts_by_words --
-- Facts that share a word with $3, in their own words or in the names of their ends, best first. $4: words of $3 that
-- are certainly names; stop words count only as such, or if there are no others. $5: an end; $6, $7: when stated.
-- $8: limit. $9 (NULL: no limit): the number of facts that makes a word too common ("know" is in each relation KNOWS).
-- Such a word finds a fact only if there is no name and every other word is as common; and of all names with a word,
-- the 16 with the most matching words count. Only facts that $2 may know make a word common.
-- Served by idx_rel_words, idx_attribute_facts_words, idx_entities_words and idx_entities_restricted.
WITH language AS MATERIALIZED (
    SELECT coalesce((SELECT glyphoxa_fts_config(c.language) FROM campaigns c WHERE c.id = $1), 'simple') AS config),
said AS MATERIALIZED (
    SELECT coalesce(string_agg(w.word, ' ') FILTER (WHERE to_tsvector(l.config, w.word) <> ''),
                    string_agg(w.word, ' '), '') AS words
      FROM language l, unnest(tsvector_to_array(to_tsvector('simple', $3))) AS w (word)),
asked AS MATERIALIZED (
    SELECT replace(plainto_tsquery('simple', s.words || ' ' || $4)::text, ' & ', ' | ')::tsquery AS names,
           replace(plainto_tsquery('simple', s.words)::text, ' & ', ' | ')::tsquery
           || replace(plainto_tsquery(l.config, $3)::text, ' & ', ' | ')::tsquery AS words
      FROM language l, said s),
named AS MATERIALIZED (
    SELECT e.id, ts_rank(e.words, (SELECT names FROM asked)) AS rank
      FROM entities e
     WHERE e.campaign_id = $1 AND e.words @@ (SELECT names FROM asked) AND glyphoxa_may_know($2, e.scope, e.knowers)
     ORDER BY rank DESC, e.id
     LIMIT CASE WHEN $9::int IS NOT NULL THEN 16 END),
named_ids AS MATERIALIZED (SELECT coalesce(array_agg(id), '{}') AS ids FROM named),
-- Looked up once, not for the ends of each fact.
not_known AS MATERIALIZED (
    SELECT e.id
      FROM entities e
     WHERE e.campaign_id = $1 AND e.scope <> 'public' AND NOT glyphoxa_may_know($2, e.scope, e.knowers)),
word AS MATERIALIZED (
    SELECT plainto_tsquery('simple', w.word) AS word
      FROM language l, said s,
           unnest(tsvector_to_array(to_tsvector('simple', s.words) || to_tsvector(l.config, $3))) AS w (word)),
telling AS MATERIALIZED (
    SELECT CASE WHEN count(*) > 0 THEN string_agg(w.word::text, ' | ')::tsquery
                WHEN NOT EXISTS (SELECT FROM named) THEN (SELECT words FROM asked)
           END AS words
      FROM word w
     WHERE $9 IS NULL
        OR (SELECT count(*)
              FROM (SELECT
                      FROM facts f
                     WHERE f.campaign_id = $1 AND f.words @@ w.word
                       AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
                       AND f.subject_id NOT IN (SELECT id FROM not_known)
                       AND (f.object_id IS NULL OR f.object_id NOT IN (SELECT id FROM not_known))
                     LIMIT $9) AS having_it) < $9)
SELECT f.fact_id, f.subject_id, f.predicate, f.object_id, f.value, nullif(f.attributes, '{}') AS attributes,
       f.provenance::text AS provenance, f.origin, f.status, f.scope, nullif(f.known_how, '[]')::text AS known_how,
       f.valid_from, f.valid_to, f.story_from, f.story_to, nullif(f.supports, '{}') AS supports,
       nullif(f.disputes, '{}') AS disputes, f.mentions, f.doubted, f.seq
  FROM facts f
  LEFT JOIN named s ON s.id = f.subject_id
  LEFT JOIN named o ON o.id = f.object_id
 WHERE f.campaign_id = $1
   AND (f.words @@ (SELECT words FROM telling)
        OR f.subject_id = ANY ((SELECT ids FROM named_ids)::text[])
        -- With attributes here as well, an arm that is never true would prevent the others from using their indexes.
        OR (f.object_id IS NOT NULL AND f.object_id = ANY ((SELECT ids FROM named_ids)::text[])))
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND f.subject_id NOT IN (SELECT id FROM not_known)
   AND (f.object_id IS NULL OR f.object_id NOT IN (SELECT id FROM not_known))
   AND ($5::text IS NULL OR glyphoxa_entity($1, $5) IN (f.subject_id, f.object_id))
   AND ($6::timestamptz IS NULL OR f.stated_at >= $6)
   AND ($7::timestamptz IS NULL OR f.stated_at < $7)
 ORDER BY ts_rank(f.words, (SELECT words FROM asked)) + coalesce(s.rank, 0) + coalesce(o.rank, 0) DESC,
          f.stated_at DESC, f.fact_id
 LIMIT $8;

-- facts_about --
-- Facts with $3 at one end, latest first; $4, $5: when stated. Served by idx_rel_source, idx_rel_target and
-- idx_attribute_facts_entity.
WITH about AS MATERIALIZED (
    SELECT e.id
      FROM entities e
     WHERE e.campaign_id = $1 AND e.id = glyphoxa_entity($1, $3) AND glyphoxa_may_know($2, e.scope, e.knowers))
SELECT f.*
  FROM facts f
  LEFT JOIN entities o ON o.campaign_id = $1
                      AND o.id = CASE WHEN f.subject_id = (SELECT id FROM about) THEN f.object_id ELSE f.subject_id END
 WHERE f.campaign_id = $1
   AND (f.subject_id = (SELECT id FROM about) OR f.object_id = (SELECT id FROM about))
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND (f.object_id IS NULL OR glyphoxa_may_know($2, o.scope, o.knowers))
   AND ($4::timestamptz IS NULL OR f.stated_at >= $4)
   AND ($5::timestamptz IS NULL OR f.stated_at < $5)
 ORDER BY f.stated_at DESC, f.seq DESC, f.fact_id
 LIMIT $6;

-- facts_latest --
-- All facts, latest first; $3, $4: when stated.
SELECT f.*
  FROM facts f
  JOIN entities s ON s.campaign_id = $1 AND s.id = f.subject_id AND glyphoxa_may_know($2, s.scope, s.knowers)
  LEFT JOIN entities o ON o.campaign_id = $1 AND o.id = f.object_id
 WHERE f.campaign_id = $1
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND (f.object_id IS NULL OR glyphoxa_may_know($2, o.scope, o.knowers))
   AND ($3::timestamptz IS NULL OR f.stated_at >= $3)
   AND ($4::timestamptz IS NULL OR f.stated_at < $4)
 ORDER BY f.stated_at DESC, f.seq DESC, f.fact_id
 LIMIT $5;
