-- of_status --
-- Facts of one status, learned in session $3 if it is not NULL, least certain first. Reads all facts of the campaign,
-- of which the DM is shown a page.
SELECT *
  FROM facts
 WHERE campaign_id = $1 AND status = $2 AND ($3::text IS NULL OR provenance ->> 'session_id' = $3)
 ORDER BY (provenance ->> 'confidence')::float8, seq, fact_id
 LIMIT $4;

-- waiting --
-- Number of facts of each status.
SELECT status, count(*) AS n FROM facts WHERE campaign_id = $1 GROUP BY status;

-- current --
-- Current facts that the viewer $2 may know (NULL: the DM), with $3 at one end if it is not NULL. An NPC knows only
-- facts between entities it knows of. Served by idx_rel_source, idx_rel_target and idx_attribute_facts_entity
-- when $3 is given; otherwise this reads all facts of the campaign.
SELECT f.*
  FROM facts f
 WHERE f.campaign_id = $1
   AND ($3::text IS NULL OR f.subject_id = $3 OR f.object_id = $3)
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND NOT EXISTS (SELECT FROM entities e
                    WHERE e.campaign_id = $1 AND e.id IN (f.subject_id, f.object_id)
                      AND NOT glyphoxa_may_know($2, e.scope, e.knowers))
 ORDER BY f.subject_id, f.predicate, f.fact_id
 LIMIT $4;

-- of_subjects --
-- Accepted facts with one of $3 as subject that the viewer $2 may know, as in the query `current`. Served by
-- idx_rel_source or the key of relationships, and by idx_attribute_facts_entity.
SELECT f.*
  FROM facts f
 WHERE f.campaign_id = $1 AND f.subject_id = ANY ($3) AND f.status = 'accepted'
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND NOT EXISTS (SELECT FROM entities e
                    WHERE e.campaign_id = $1 AND e.id IN (f.subject_id, f.object_id)
                      AND NOT glyphoxa_may_know($2, e.scope, e.knowers))
 ORDER BY f.subject_id, f.seq, f.fact_id;

-- facts --
-- Facts by their ids. Served by idx_rel_fact and the primary key of attribute_facts.
SELECT * FROM facts WHERE campaign_id = $1 AND fact_id = ANY ($2) ORDER BY array_position($2, fact_id);

-- resting_on --
-- Facts derived from a fact. Served by the primary key of fact_supports.
SELECT f.*
  FROM fact_supports s
  JOIN facts f ON f.campaign_id = $1 AND f.fact_id = s.fact_id
 WHERE s.campaign_id = $1 AND s.support_id = $2
 ORDER BY f.seq, f.fact_id;

-- beginning_with --
-- Reads all facts of the campaign: a DM types this a few times in an evening.
SELECT * FROM facts WHERE campaign_id = $1 AND starts_with(fact_id, $2) ORDER BY fact_id LIMIT $3;

-- like --
-- Ids that share most digits with $2 at the same positions, for a mistyped id.
SELECT fact_id
  FROM facts
 WHERE campaign_id = $1
 ORDER BY (SELECT count(*) FROM generate_series(1, length($2)) AS place
            WHERE substr(fact_id, place, 1) = substr($2, place, 1)) DESC, fact_id
 LIMIT $3;

-- ended --
-- Ended facts by the beginning of their id, latest first.
SELECT * FROM fact_history WHERE campaign_id = $1 AND starts_with(fact_id, $2) ORDER BY ended_seq DESC, fact_id LIMIT $3;

-- once_held --
-- The last ended version of each fact of $2. Served by the primary key of fact_history.
SELECT DISTINCT ON (fact_id) *
  FROM fact_history WHERE campaign_id = $1 AND fact_id = ANY ($2) ORDER BY fact_id, ended_seq DESC;

-- ended_by --
-- Facts that these events ended.
SELECT * FROM fact_history WHERE campaign_id = $1 AND ended_seq = ANY ($2) ORDER BY ended_seq, fact_id;

-- events_about --
-- Events that may concern the fact $2 with the predicate $3 between the entities $4; the caller filters them. It was
-- stated of these or of entities merged into them; all other events name it. Reads all events of the
-- campaign.
WITH RECURSIVE ends (id) AS (
    SELECT unnest($4::text[])
    UNION
    SELECT m.gone_id FROM entity_merges m JOIN ends ON m.kept_id = ends.id WHERE m.campaign_id = $1
)
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events
 WHERE campaign_id = $1
   AND (event_type IN ('undone', 'rolled_back', 'utterance_retracted', 'utterance_withheld', 'utterance_corrected', 'entities_merged', 'entity_removed')
        OR payload ->> 'fact' = $2
        OR (payload #>> '{claim,predicate}' = $3 AND payload #>> '{claim,subject}' IN (SELECT id FROM ends)))
 ORDER BY seq;

-- said --
-- Served by the key of (campaign_id, utterance_id).
SELECT utterance_id, session_id, ordinal, speaker_name, text, raw_text, timestamp, retracted, withheld, aside
  FROM session_entries WHERE campaign_id = $1 AND utterance_id = $2;

-- said_ending_with --
-- The latest utterances whose id ends with $2, rolled back or not. Reads all utterance ids: a DM types this a few times
-- in an evening.
SELECT utterance_id, session_id, ordinal, speaker_name, text, raw_text, timestamp, retracted, withheld, aside
  FROM session_entries
 WHERE campaign_id = $1 AND right(utterance_id, length($2)) = $2
 ORDER BY timestamp DESC, id DESC
 LIMIT $3;

-- sessions --
-- The time of the last entry is served by idx_session_entries_session_timestamp.
SELECT id, (extract(epoch FROM started_at) * 1000)::bigint AS started_ms, last_ordinal, title,
       (SELECT (extract(epoch FROM max(e.timestamp)) * 1000)::bigint FROM session_entries e
         WHERE e.campaign_id = $1 AND e.session_id = s.id) AS last_at_ms
  FROM sessions s WHERE campaign_id = $1 ORDER BY started_at, id;

-- set_title --
UPDATE sessions SET title = $3 WHERE campaign_id = $1 AND id = $2;

-- talk_after --
-- Number of utterances that a rollback to the ordinal $3 of the session $2 would retract. Served by
-- idx_session_entries_ordinal.
SELECT count(*)
  FROM sessions s
  JOIN sessions of ON of.campaign_id = $1 AND of.id = $2
  JOIN session_entries e ON e.campaign_id = $1 AND e.session_id = s.id
 WHERE s.campaign_id = $1 AND NOT e.retracted
   AND ((s.id = of.id AND e.ordinal > $3) OR (s.started_at, s.id) > (of.started_at, of.id));

-- entries_per_session --
-- Utterance counts of each session. Served by idx_session_entries_session_id.
SELECT s.id, (extract(epoch FROM s.started_at) * 1000)::bigint AS started_ms, count(e.id) AS n_entries,
       count(*) FILTER (WHERE e.retracted) AS n_retracted,
       (extract(epoch FROM max(e.timestamp)) * 1000)::bigint AS last_at_ms, s.title
  FROM sessions s
  LEFT JOIN session_entries e ON e.campaign_id = $1 AND e.session_id = s.id
 WHERE s.campaign_id = $1
 GROUP BY s.campaign_id, s.id
 ORDER BY s.started_at, s.id;

-- recent --
-- The last entries of a session, latest first. Served by idx_session_entries_ordinal.
SELECT utterance_id, session_id, ordinal, speaker_name, text, raw_text, timestamp, retracted, withheld, aside
  FROM session_entries
 WHERE campaign_id = $1 AND session_id = $2
 ORDER BY ordinal DESC
 LIMIT $3;

-- lines --
-- Entries of a session in order, from the ordinal $3. Served by idx_session_entries_ordinal.
SELECT utterance_id, session_id, ordinal, speaker_name, text, raw_text, timestamp, retracted, withheld, aside
  FROM session_entries
 WHERE campaign_id = $1 AND session_id = $2 AND ordinal >= $3
 ORDER BY ordinal
 LIMIT $4;

-- own_lines --
-- What the speaker $2 said, newest first, before the utterance $3 (NULL: the latest). Served by
-- idx_session_entries_speaker.
SELECT e.utterance_id, e.session_id, e.ordinal, e.speaker_name, coalesce(nullif(e.raw_text, ''), e.text) AS text,
       e.timestamp, e.retracted, e.withheld, e.aside
  FROM session_entries e
 WHERE e.campaign_id = $1 AND e.speaker_id = $2 AND e.npc_id = '' AND NOT e.is_erased
   AND ($3::text IS NULL OR (e.timestamp, e.id) < (SELECT b.timestamp, b.id FROM session_entries b
                                                    WHERE b.campaign_id = $1 AND b.utterance_id = $3))
 ORDER BY e.timestamp DESC, e.id DESC
 LIMIT $4;

-- corrected --
-- Players' utterances whose text differs from the raw text. For NPCs, the intended and the heard text
-- differ without a correction. Served by idx_session_entries_ordinal.
SELECT utterance_id, session_id, ordinal, speaker_name, text, raw_text, timestamp, retracted, withheld, aside
  FROM session_entries
 WHERE campaign_id = $1 AND session_id = $2 AND npc_id = '' AND raw_text <> '' AND raw_text <> text
 ORDER BY ordinal
 LIMIT $3;

-- coverage --
-- Embedded utterances and chunks of each session.
-- Served by idx_session_entries_session_id and idx_chunks_utterance_id.
WITH chunked AS (
    SELECT session_id, count(*) AS n_chunks, count(DISTINCT utterance_id) AS n_embedded
      FROM chunks WHERE campaign_id = $1 GROUP BY session_id
), said AS (
    SELECT session_id, count(*) AS n_entries FROM session_entries WHERE campaign_id = $1 GROUP BY session_id
)
SELECT s.id AS session, coalesce(n_entries, 0) AS n_entries, coalesce(n_embedded, 0) AS n_embedded,
       coalesce(n_chunks, 0) AS n_chunks
  FROM sessions s
  LEFT JOIN said ON said.session_id = s.id
  LEFT JOIN chunked ON chunked.session_id = s.id
 WHERE s.campaign_id = $1
 ORDER BY s.started_at, s.id;

-- nearest --
-- The chunks nearest to an embedding, by cosine distance. Exact: it reads all chunks of the campaign that the same model
-- embedded, so that an approximation does not hide why something was not recalled.
SELECT c.session_id, c.content, c.embedding <=> $2 AS distance, c.knowers,
       (extract(epoch FROM c.timestamp) * 1000)::bigint AS at_ms, c.retracted AS is_retracted
  FROM chunks c
 WHERE c.campaign_id = $1 AND c.model = $3
 ORDER BY c.embedding <=> $2, c.id
 LIMIT $4;

-- near_entities --
-- The entities whose name and description are nearest to an embedding. Served by idx_entity_vectors_embedding.
SELECT e.name, e.type, v.embedding <=> $2 AS distance
  FROM entity_vectors v
  JOIN entities e ON e.campaign_id = $1 AND e.id = v.entity_id
 WHERE v.campaign_id = $1 AND v.model = $3
 ORDER BY v.embedding::halfvec({{dimensions}}) <=> $2::vector::halfvec({{dimensions}})
 LIMIT $4;

-- models --
-- Number of the campaign's chunks by embedding model.
SELECT model, count(*) AS n FROM chunks WHERE campaign_id = $1 GROUP BY model ORDER BY n DESC, model;

-- entities --
-- By type (all when $2 is NULL), whoever may know of them. Served by idx_entities_type.
SELECT id, type, name, aliases, attributes, scope, knowers, known_how, origin
  FROM entities
 WHERE campaign_id = $1 AND ($2::text IS NULL OR type = $2)
 ORDER BY type, name, id;

-- relations_among --
-- Accepted relations with both ends in $3 that the viewer $2 may know (NULL: the DM), including their ends.
-- Served by idx_rel_source.
SELECT f.*
  FROM facts f
 WHERE f.campaign_id = $1 AND f.status = 'accepted'
   AND f.subject_id = ANY ($3) AND f.object_id = ANY ($3)
   AND glyphoxa_may_know($2, f.status, f.scope, f.knowers)
   AND NOT EXISTS (SELECT FROM entities e
                    WHERE e.campaign_id = $1 AND e.id IN (f.subject_id, f.object_id)
                      AND NOT glyphoxa_may_know($2, e.scope, e.knowers))
 ORDER BY f.subject_id, f.predicate, f.object_id, f.fact_id
 LIMIT $4;
