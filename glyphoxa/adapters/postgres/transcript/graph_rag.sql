-- Chunks that match a question and mention an entity in a neighbourhood: at most $4 relations from $3, along
-- what $2 (NULL: the DM) may know, and heard by $2. The neighbourhood is found first (`scope`), then the chunks that
-- mention it (served by idx_chunks_entity_ids).

-- by_meaning --
-- $5: the embedding, $6: its model, $7: limit. The score is the cosine. Strategies, in order:
-- `little`: so few chunks mention the neighbourhood that all of them are compared. (Not
--   where row rules forbid the index, see 0006_chunks_by_campaign.sql. A campaign that is small beside the others of
--   its partition never uses the vector index, which covers them all.)
-- `nearest`: the hundred nearest of all chunks; many of them mention a wide neighbourhood, which may suffice.
-- `much`: the share of matches estimates their total: if small, all are compared, up to the point where the index
--   takes as long. (Comparing a chunk costs 7 µs, one visited by the index 20 to 40.)
-- The rest: the nearest of all chunks until there are enough. Fetches a few more than needed, because the order
--   of idx_chunks_embedding is approximate.
-- Planning takes a sixth of the total time, and the strategy does not depend on the plan: it is
-- planned once, for any values.
WITH scope AS MATERIALIZED (
    SELECT l.id, w.depth FROM glyphoxa_walk($1, $2, $3, $4) w CROSS JOIN LATERAL unnest(w.level) AS l (id)),
talk AS MATERIALIZED (
    SELECT t.size,
           CASE WHEN NOT (SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.arraycontains'::regproc) THEN 0
                WHEN t.size <= 16 * sqrt(greatest((SELECT p.reltuples FROM pg_class p
                                                    WHERE p.oid = (SELECT c.tableoid FROM chunks c
                                                                    WHERE c.campaign_id = $1
                                                                    ORDER BY c.utterance_id LIMIT 1)), 0))
                THEN 1000000000
                ELSE 200
           END AS little
      FROM (SELECT coalesce(sum(last_ordinal), 0) AS size FROM sessions WHERE campaign_id = $1) t),
little AS MATERIALIZED (
    SELECT c.utterance_id, c.distance
      FROM scope s
     CROSS JOIN LATERAL (
           SELECT k.utterance_id, k.embedding <=> $5 AS distance
             FROM chunks k
            WHERE $2::text IS NOT NULL AND k.campaign_id = $1
              AND k.entity_ids @> ARRAY[s.id] AND k.knowers @> ARRAY[$2] AND NOT k.retracted AND k.model = $6
           UNION ALL
           SELECT k.utterance_id, k.embedding <=> $5
             FROM chunks k
            WHERE $2::text IS NULL AND k.campaign_id = $1
              AND k.entity_ids @> ARRAY[s.id] AND NOT k.retracted AND k.model = $6) c
     LIMIT (SELECT little FROM talk)),
is_little AS MATERIALIZED (SELECT (SELECT count(*) FROM little) < (SELECT little FROM talk) AS it_is),
nearest AS MATERIALIZED (
    SELECT c.utterance_id, c.embedding <=> $5 AS distance, c.was_heard,
           c.was_heard AND (SELECT bool_or(m.id IN (SELECT id FROM scope)) FROM unnest(c.entity_ids) AS m (id))
           AS is_in_scope
      FROM (SELECT c.utterance_id, c.entity_ids, c.embedding, $2::text IS NULL OR $2 = ANY (c.knowers) AS was_heard
              FROM chunks c
             WHERE NOT (SELECT it_is FROM is_little) AND c.campaign_id = $1 AND NOT c.retracted AND c.model = $6
             ORDER BY c.embedding::halfvec({{dimensions}}) <=> $5::vector::halfvec({{dimensions}})
             LIMIT 100) c),
way AS MATERIALIZED (
    SELECT CASE WHEN l.it_is OR n.in_scope >= $7 + 5 THEN 'none'
                WHEN t.little = 0 THEN 'far'
                WHEN $2::text IS NOT NULL AND n.heard * t.size < 100 * t.much THEN 'heard'
                WHEN n.in_scope * t.size < 100 * t.much THEN 'spoken'
                ELSE 'far' END AS goes_by,
           (2 * t.much)::int AS much
      FROM is_little l,
           (SELECT size, little, 6.4 * sqrt(size) AS much FROM talk) t,
           (SELECT count(*) FILTER (WHERE was_heard) AS heard, count(*) FILTER (WHERE is_in_scope) AS in_scope
              FROM nearest) n),
much AS MATERIALIZED (
    (SELECT k.utterance_id, k.entity_ids, k.embedding <=> $5 AS distance
       FROM chunks k
      WHERE (SELECT goes_by = 'heard' FROM way)
        AND k.campaign_id = $1 AND k.knowers @> ARRAY[$2::text] AND NOT k.retracted AND k.model = $6
      LIMIT (SELECT much FROM way))
    UNION ALL
    (SELECT c.utterance_id, ARRAY[c.id], c.distance
       FROM (SELECT id FROM scope WHERE (SELECT goes_by = 'spoken' FROM way)) s
      CROSS JOIN LATERAL (
           SELECT s.id, k.utterance_id, k.embedding <=> $5 AS distance
             FROM chunks k
            WHERE $2::text IS NOT NULL AND k.campaign_id = $1
              AND k.entity_ids @> ARRAY[s.id] AND k.knowers @> ARRAY[$2] AND NOT k.retracted AND k.model = $6
           UNION ALL
           SELECT s.id, k.utterance_id, k.embedding <=> $5
             FROM chunks k
            WHERE $2::text IS NULL AND k.campaign_id = $1
              AND k.entity_ids @> ARRAY[s.id] AND NOT k.retracted AND k.model = $6) c
      LIMIT (SELECT much FROM way))),
is_all AS MATERIALIZED (SELECT (SELECT count(*) FROM much) < way.much AND goes_by <> 'far' AS it_is FROM way),
near AS MATERIALIZED (
    SELECT utterance_id, distance FROM little WHERE (SELECT it_is FROM is_little)
    UNION ALL
    SELECT utterance_id, distance FROM nearest WHERE is_in_scope
    UNION ALL
    SELECT utterance_id, distance
      FROM much
     WHERE (SELECT it_is FROM is_all)
       AND (SELECT bool_or(m.id IN (SELECT id FROM scope)) FROM unnest(entity_ids) AS m (id))
    UNION ALL
    SELECT a.utterance_id, a.distance
      FROM (SELECT c.utterance_id, c.embedding <=> $5 AS distance
              FROM chunks c
             WHERE NOT (SELECT it_is FROM is_all)
               AND c.campaign_id = $1 AND NOT c.retracted AND c.model = $6 AND ($2::text IS NULL OR $2 = ANY (c.knowers))
               AND (SELECT bool_or(m.id IN (SELECT id FROM scope)) FROM unnest(c.entity_ids) AS m (id))
             ORDER BY c.embedding::halfvec({{dimensions}}) <=> $5::vector::halfvec({{dimensions}})
             LIMIT $7 + 5) a),
best AS MATERIALIZED (
    SELECT utterance_id, 1 - min(distance) AS score FROM near GROUP BY utterance_id ORDER BY 2 DESC, 1 LIMIT $7),
about AS MATERIALIZED (
    SELECT b.utterance_id, array_agg(DISTINCT s.id) AS entity_ids, min(s.depth) AS depth
      FROM best b
      JOIN chunks c ON c.campaign_id = $1 AND c.utterance_id = b.utterance_id
     CROSS JOIN LATERAL unnest(c.entity_ids) AS m (id)
      JOIN scope s ON s.id = m.id
     GROUP BY b.utterance_id)
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, b.score::float8,
       m.entity_ids, m.depth
  FROM best b
  JOIN about m ON m.utterance_id = b.utterance_id
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = b.utterance_id
 -- A chunk that was being embedded during a rollback is not marked for a moment.
 WHERE NOT e.retracted
 ORDER BY b.score DESC, e.timestamp DESC, e.utterance_id;

-- by_words --
-- $5: the question, any word of which is enough; $6: words of it that are certainly names, matched unstemmed;
-- $7: limit. Matches are collected first, up to the bound: served by idx_session_entries_fts and
-- idx_session_entries_names. For words that are everywhere in a wide neighbourhood, only some matches are ranked, but
-- always those with all words.
-- At the bound, word and list look-ups take equally long; for lists it is 0 where row rules forbid their index.
WITH scope AS MATERIALIZED (
    SELECT l.id, w.depth FROM glyphoxa_walk($1, $2, $3, $4) w CROSS JOIN LATERAL unnest(w.level) AS l (id)),
bound AS MATERIALIZED (
    SELECT m.n AS hits,
           CASE WHEN (SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.arraycontains'::regproc)
                THEN m.n ELSE 0 END AS n
      FROM (SELECT greatest(500, 2.5 * sqrt(coalesce(sum(last_ordinal), 0)))::int AS n
              FROM sessions WHERE campaign_id = $1) m),
language AS MATERIALIZED (
    SELECT coalesce((SELECT glyphoxa_fts_config(c.language) FROM campaigns c WHERE c.id = $1), 'english') AS config),
asked AS MATERIALIZED (
    SELECT plainto_tsquery(config, $5) AS all_words,
           replace(plainto_tsquery(config, $5)::text, ' & ', ' | ')::tsquery AS words,
           replace(plainto_tsquery('simple', $6)::text, ' & ', ' | ')::tsquery AS names
      FROM language),
any_hits AS MATERIALIZED (
    SELECT e.id
      FROM session_entries e
     WHERE e.campaign_id = $1 AND NOT e.retracted AND ($2::text IS NULL OR $2 = ANY (e.witnesses))
       AND (e.fts @@ (SELECT words FROM asked) OR e.names @@ (SELECT names FROM asked))
     LIMIT (SELECT hits FROM bound)),
hits AS MATERIALIZED (SELECT (SELECT count(*) FROM any_hits) < (SELECT hits FROM bound) AS are_all),
spoken AS MATERIALIZED (
    SELECT c.utterance_id
      FROM scope s
     CROSS JOIN LATERAL (
           SELECT k.utterance_id
             FROM chunks k
            WHERE $2::text IS NOT NULL AND k.campaign_id = $1
              AND k.entity_ids @> ARRAY[s.id] AND k.knowers @> ARRAY[$2] AND NOT k.retracted
           UNION ALL
           SELECT k.utterance_id
             FROM chunks k
            WHERE $2::text IS NULL AND k.campaign_id = $1 AND k.entity_ids @> ARRAY[s.id] AND NOT k.retracted) c
     LIMIT (SELECT CASE WHEN h.are_all THEN 0 ELSE b.n END FROM bound b, hits h)),
few AS MATERIALIZED (
    SELECT NOT h.are_all AND (SELECT count(*) FROM spoken) < b.n AS are_all FROM bound b, hits h),
some_hits AS MATERIALIZED (
    SELECT id FROM any_hits WHERE NOT (SELECT are_all FROM few)
    UNION
    (SELECT e.id
       FROM session_entries e
      WHERE NOT (SELECT are_all FROM few) AND NOT (SELECT are_all FROM hits)
        AND e.campaign_id = $1 AND NOT e.retracted AND ($2::text IS NULL OR $2 = ANY (e.witnesses))
        AND e.fts @@ (SELECT all_words FROM asked)
      LIMIT (SELECT hits FROM bound))),
best AS MATERIALIZED (
    (SELECT e.utterance_id, ts_rank(e.fts, a.words) + ts_rank(e.names, a.names) AS score
       FROM asked a
      CROSS JOIN (SELECT DISTINCT utterance_id FROM spoken WHERE (SELECT are_all FROM few)) s
       JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = s.utterance_id
      WHERE NOT e.retracted AND ($2::text IS NULL OR $2 = ANY (e.witnesses))
        AND (e.fts @@ a.words OR e.names @@ a.names)
      ORDER BY 2 DESC, e.timestamp DESC
      LIMIT $7)
    UNION ALL
    (SELECT h.utterance_id, h.score
       FROM (SELECT e.utterance_id, e.timestamp, ts_rank(e.fts, a.words) + ts_rank(e.names, a.names) AS score
               FROM asked a
              CROSS JOIN (SELECT id FROM some_hits) s
               JOIN session_entries e ON e.campaign_id = $1 AND e.id = s.id
              ORDER BY 3 DESC, e.timestamp DESC) h
      WHERE (SELECT bool_or(m.id IN (SELECT id FROM scope))
               FROM chunks c CROSS JOIN LATERAL unnest(c.entity_ids) AS m (id)
              WHERE c.campaign_id = $1 AND c.utterance_id = h.utterance_id)
      ORDER BY h.score DESC, h.timestamp DESC
      LIMIT $7))
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, b.score::float8,
       m.entity_ids, m.depth
  FROM best b
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = b.utterance_id
 CROSS JOIN LATERAL (
       SELECT array_agg(DISTINCT s.id) AS entity_ids, min(s.depth) AS depth
         FROM chunks c JOIN scope s ON s.id = ANY (c.entity_ids)
        WHERE c.campaign_id = $1 AND c.utterance_id = b.utterance_id) m
 ORDER BY b.score DESC, e.timestamp DESC, e.utterance_id;
