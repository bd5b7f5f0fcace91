-- language --
SELECT coalesce((SELECT language FROM campaigns WHERE id = $1), 'en');

-- changed --
-- What was said or changed behind the mark $2, in the order of marks: one row with a column of each kind, since a row
-- for each utterance is some objects for each. Served by idx_session_entries_mark.
SELECT array_agg(mark) AS marks, array_agg(utterance_id) AS utterance_ids, array_agg(session_id) AS session_ids,
       array_agg(floor) AS floors, array_agg(speaker_id) AS speaker_ids, array_agg(speaker_name) AS speaker_names,
       array_agg(text) AS texts, array_agg((extract(epoch FROM timestamp) * 1000)::bigint) AS at_ms,
       array_agg(to_jsonb(witnesses)::text) AS audiences, array_agg(struck) AS struck
  FROM (SELECT * FROM session_entries WHERE campaign_id = $1 AND mark > $2 ORDER BY mark LIMIT $3) AS page;

-- edition --
-- `glyphoxa reindex` puts another table in the place of this one.
SELECT coalesce((SELECT value FROM schema_settings WHERE name = 'embedding_model'), '') AS model,
       (SELECT value FROM schema_settings WHERE name = 'embedding_dimensions')::int AS dimensions,
       to_regclass('chunks')::oid::bigint AS number;

-- meanings --
-- The vectors of the utterances $2 by model $3, if the table is still the one of number $4 (nobody puts another in its
-- place while this reads it), the pieces of one together, in the form in which PostgreSQL sends them,
-- one behind the other: the driver's own would make an object of each number. Served by idx_chunks_utterance_id.
SELECT array_agg(utterance_id) AS utterance_ids, string_agg(vector_send(embedding), '') AS sent
  FROM (SELECT utterance_id, embedding FROM chunks
         WHERE campaign_id = $1 AND utterance_id = ANY ($2) AND model = $3
           AND to_regclass('chunks')::oid::bigint = $4
         ORDER BY utterance_id, id) AS page;
