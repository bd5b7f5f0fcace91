-- lexical --
-- What $2 witnessed and shares a word with the question $3 (or a name of $4, unstemmed), best first.
-- Words are joined by OR: with AND, 97 of 100 natural questions find nothing. Served by idx_session_entries_fts.
-- $5: utterances to leave out; $6: how many.
WITH asked AS MATERIALIZED (
    SELECT replace(plainto_tsquery('english', $3)::text, ' & ', ' | ')::tsquery AS words,
           replace(plainto_tsquery('simple', $4)::text, ' & ', ' | ')::tsquery AS names)
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp,
       ts_rank(e.fts, asked.words)::float8 + ts_rank(e.names, asked.names)::float8 AS score
  FROM asked, session_entries e
 WHERE e.campaign_id = $1
   AND $2 = ANY (e.witnesses)
   AND (e.fts @@ asked.words OR e.names @@ asked.names)
   AND NOT e.utterance_id = ANY ($5)
 ORDER BY score DESC, e.timestamp DESC
 LIMIT $6;

-- dense --
-- What $2 witnessed and is near in meaning to the question's embedding $3, nearest first. Exact within that set:
-- the distance is computed for every visible utterance. Score is the cosine, at least $6.
-- Only ids and distances are carried through the sort, and each distance is computed once.
WITH near AS MATERIALIZED (
    SELECT e.id, c.embedding <=> $3 AS distance
      FROM session_entries e
      JOIN chunks c ON c.campaign_id = e.campaign_id AND c.id = e.utterance_id
     WHERE e.campaign_id = $1
       AND $2 = ANY (e.witnesses)
       AND NOT e.utterance_id = ANY ($4)),
nearest AS MATERIALIZED (SELECT id, distance FROM near WHERE distance <= 1 - $6::float8 ORDER BY distance LIMIT $5)
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, 1 - n.distance AS score
  FROM nearest n JOIN session_entries e ON e.campaign_id = $1 AND e.id = n.id
 ORDER BY n.distance;

-- missing --
-- The oldest utterances that have no embedding yet.
SELECT e.utterance_id, e.session_id, e.speaker_id, e.timestamp, e.speaker_name || ': ' || e.text AS content
  FROM session_entries e
 WHERE e.campaign_id = $1
   AND e.text <> ''
   AND NOT EXISTS (SELECT FROM chunks c WHERE c.campaign_id = e.campaign_id AND c.id = e.utterance_id)
 ORDER BY e.id
 LIMIT $2;

-- add_chunk --
-- Only if the utterance still has the words that were embedded: it may be revised meanwhile. The lock waits for such
-- a revision, and looks again.
INSERT INTO chunks (campaign_id, id, session_id, content, embedding, speaker_id, timestamp)
    SELECT $1, $2, $3, $4, $5, $6, $7
      FROM session_entries
     WHERE campaign_id = $1 AND utterance_id = $2 AND speaker_name || ': ' || text = $4
       FOR SHARE
    ON CONFLICT (campaign_id, id) DO NOTHING;
