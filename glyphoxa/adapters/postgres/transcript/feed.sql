-- changes --
-- Utterances that are new or changed from the change_seq $2 on, in that order. One row with an array per column,
-- because a row per utterance creates several objects each. From the same snapshot: the campaign's language; the
-- model of the vectors (`glyphoxa worker reindex` sets another one); the embedding position, whose queue changes with
-- each batch; and a digest of the campaign's time settings.
-- Served by idx_session_entries_change_seq and idx_talk_to_embed_place.
SELECT array_agg(change_seq) AS change_seqs, array_agg(utterance_id) AS utterance_ids, array_agg(session_id) AS session_ids,
       array_agg(ordinal) AS ordinals, array_agg(speaker_id) AS speaker_ids, array_agg(speaker_name) AS speaker_names,
       array_agg(text) AS texts, array_agg((extract(epoch FROM timestamp) * 1000)::bigint) AS at_ms,
       array_agg(to_jsonb(witnesses)::text) AS audiences, array_agg(retracted) AS retracted,
       coalesce((SELECT language FROM campaigns WHERE id = $1), 'en') AS language,
       (SELECT value FROM schema_settings WHERE name = 'embedding_model') AS model,
       (SELECT value FROM schema_settings WHERE name = 'embedding_dimensions')::int AS dimensions,
       concat_ws(' ', (SELECT min(place) FROM talk_to_embed WHERE campaign_id = $1),
                      (SELECT max(place) FROM talk_to_embed WHERE campaign_id = $1)) AS embedded,
       coalesce((SELECT md5(concat_ws(E'\n', t.time_zone, t.calendar, t.story_day,
                                      (SELECT string_agg(d::text, E'\n' ORDER BY d.id)
                                         FROM story_days d WHERE d.campaign_id = $1)))
                   FROM campaign_times t WHERE t.campaign_id = $1), '') AS times
  FROM (SELECT * FROM session_entries WHERE campaign_id = $1 AND change_seq >= $2 ORDER BY change_seq LIMIT $3) AS page;

-- embeddings --
-- The vectors of the utterances $2 by model $3, with the pieces of one utterance adjacent, as the concatenated binary
-- values of PostgreSQL: the driver would create an object per number. Served by idx_chunks_utterance_id.
SELECT array_agg(utterance_id) AS utterance_ids, string_agg(vector_send(embedding), '') AS sent
  FROM (SELECT utterance_id, embedding FROM chunks
         WHERE campaign_id = $1 AND utterance_id = ANY ($2) AND model = $3
         ORDER BY utterance_id, id) AS page;
