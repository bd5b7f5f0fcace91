-- language --
SELECT coalesce((SELECT language FROM campaigns WHERE id = $1), 'en');

-- changed --
-- What was said or changed behind the mark $2, in the order of marks. Served by idx_session_entries_mark.
SELECT mark, utterance_id, session_id, floor, speaker_id, speaker_name, text,
       (extract(epoch FROM timestamp) * 1000)::bigint AS at_ms, witnesses, struck
  FROM session_entries
 WHERE campaign_id = $1 AND mark > $2
 ORDER BY mark
 LIMIT $3;

-- meanings --
-- The vectors of the utterances $2 by model $3, the pieces of one together, in the form in which PostgreSQL sends them:
-- the driver's own would make an object of each. Served by idx_chunks_utterance_id.
SELECT utterance_id, vector_send(embedding) AS sent
  FROM chunks
 WHERE campaign_id = $1 AND utterance_id = ANY ($2) AND model = $3
 ORDER BY utterance_id, id;
