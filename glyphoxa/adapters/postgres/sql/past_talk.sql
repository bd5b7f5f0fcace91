-- lexical --
-- What $2 witnessed and shares a word with the question $3 (or a name of $4, unstemmed), best first; not what was
-- rolled back. Words are joined by OR: with AND, 97 of 100 natural questions find nothing. Stemmed in the campaign's
-- language. Served by idx_session_entries_fts and idx_session_entries_names.
-- $5: utterances to leave out; $6: how many.
WITH language AS MATERIALIZED (
    SELECT coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns WHERE id = $1), 'english') AS config),
asked AS MATERIALIZED (
    SELECT replace(plainto_tsquery(config, $3)::text, ' & ', ' | ')::tsquery AS words,
           replace(plainto_tsquery('simple', $4)::text, ' & ', ' | ')::tsquery AS names
      FROM language)
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp,
       ts_rank(e.fts, asked.words)::float8 + ts_rank(e.names, asked.names)::float8 AS score
  FROM asked, session_entries e
 WHERE e.campaign_id = $1
   AND $2 = ANY (e.witnesses)
   AND NOT e.struck
   AND (e.fts @@ asked.words OR e.names @@ asked.names)
   AND NOT e.utterance_id = ANY ($5)
 ORDER BY score DESC, e.timestamp DESC
 LIMIT $6;

-- said --
-- The words of the utterances $3, with their scores $4, best first, as far as $2 may still be reminded of them.
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, n.score
  FROM unnest($3::text[], $4::float8[]) AS n (utterance_id, score)
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = n.utterance_id
 WHERE $2 = ANY (e.witnesses) AND NOT e.struck
 ORDER BY n.score DESC;
