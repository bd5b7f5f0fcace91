-- forget --
-- The atoms of the utterances $2. Their edges go with them.
DELETE FROM state_atoms WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- graft --
-- The atoms $2, each in place of an earlier one of its key.
INSERT INTO state_atoms (campaign_id, stable_key, utterance_id, kind, title, summary, confidence, about, speaker,
                         heard_by, place)
    SELECT $1, a.stable_key, a.utterance_id, a.kind, a.title, a.summary, a.confidence, a.about, a.speaker, a.heard_by,
           a.place
      FROM jsonb_populate_recordset(NULL::state_atoms, $2) a
      JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = a.utterance_id AND NOT e.is_erased
    ON CONFLICT (campaign_id, stable_key) DO UPDATE
       SET (kind, title, summary, confidence, about, speaker, heard_by, place, status)
         = (excluded.kind, excluded.title, excluded.summary, excluded.confidence, excluded.about, excluded.speaker,
            excluded.heard_by, excluded.place, excluded.status);

-- topics --
-- The topics of the utterances $2, after a change of their atoms.
UPDATE chunks SET topic = glyphoxa_topic($1, utterance_id)
 WHERE campaign_id = $1 AND utterance_id = ANY ($2) AND topic <> glyphoxa_topic($1, utterance_id);

-- lease --
-- One pass over a campaign at a time; the lease ends with the transaction.
SELECT pg_try_advisory_xact_lock(hashtext('glyphoxa atoms'), hashtext($1));

-- pending --
-- Up to $3 atoms to consolidate, oldest first, if there are at least $2 or the oldest is 15 minutes old. They wait as
-- long for their vectors.
WITH waiting AS (
    SELECT a.stable_key, a.kind, a.summary, a.at,
           count(*) OVER () >= $2 OR min(a.at) OVER () < clock_timestamp() - interval '15 minutes' AS is_due
      FROM live_atoms a
     WHERE a.campaign_id = $1 AND a.status = 'session'
       AND (a.at < clock_timestamp() - interval '15 minutes'
            OR NOT EXISTS (SELECT FROM talk_to_embed q WHERE q.campaign_id = $1 AND q.utterance_id = a.utterance_id)))
SELECT stable_key, kind, summary, (SELECT language FROM campaigns WHERE id = $1) AS language
  FROM waiting WHERE is_due ORDER BY at, stable_key LIMIT $3;

-- earlier --
-- For each of the atoms $2, the $3 earlier ones that share its speaker or an entity and are nearest in meaning; without
-- vectors, the latest. One that was merged stands for the one it is the same as.
WITH live AS MATERIALIZED (
    SELECT a.*, c.embedding
      FROM live_atoms a
      LEFT JOIN chunks c ON c.campaign_id = $1 AND c.id = a.utterance_id
     WHERE a.campaign_id = $1)
SELECT n.stable_key AS new_key, o.*
  FROM live n
 CROSS JOIN LATERAL (
       SELECT coalesce(e.kept_key, e.stable_key) AS stable_key, e.kind, e.summary, 1 - (e.embedding <=> n.embedding) AS cosine,
              e.speaker_id = n.speaker_id AND e.witnesses @> n.witnesses AND e.witnesses <@ n.witnesses AS is_by_same
         FROM live e
        WHERE (e.at, e.stable_key) < (n.at, n.stable_key)
          AND (e.speaker_id = n.speaker_id OR e.about && n.about)
        ORDER BY e.embedding <=> n.embedding, e.at DESC, e.stable_key
        LIMIT $3) o
 WHERE n.stable_key = ANY ($2);

-- connect --
INSERT INTO atom_edges (campaign_id, from_key, to_key, label, confidence)
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;

-- consolidated --
UPDATE state_atoms SET status = 'consolidated' WHERE campaign_id = $1 AND stable_key = ANY ($2);

-- links --
-- Edges of the memory graph that start at atoms of utterances that the NPC $2 heard, and those from a fact to the
-- utterance of the one that it replaced, if the NPC knew that one.
WITH heard AS MATERIALIZED (
    SELECT a.stable_key, a.utterance_id, a.about, a.place
      FROM state_atoms a
      JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = a.utterance_id
     WHERE a.campaign_id = $1 AND NOT e.retracted AND $2 = ANY (e.witnesses))
SELECT 'involved_in' AS kind, utterance_id AS source, entity AS target
  FROM heard CROSS JOIN LATERAL unnest(about) entity
UNION ALL
SELECT 'occurred_at', utterance_id, place FROM heard WHERE place IS NOT NULL
UNION ALL
SELECT CASE x.label WHEN 'continues_thread' THEN 'advances' ELSE 'related' END, s.utterance_id, t.utterance_id
  FROM atom_edges x
  JOIN heard s ON s.stable_key = x.from_key
  JOIN heard t ON t.stable_key = x.to_key
 WHERE x.campaign_id = $1
UNION ALL
SELECT 'updates', h.superseded_by, e.utterance_id
  FROM fact_history h
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = h.provenance ->> 'utterance_id'
 WHERE h.campaign_id = $1 AND h.superseded_by IS NOT NULL AND h.status = 'accepted'
   AND (h.scope = 'public' OR h.scope <> 'hidden' AND $2 = ANY (h.knowers))
   AND NOT e.retracted AND $2 = ANY (e.witnesses)
 ORDER BY 1, 2, 3;

-- open_threads --
-- Threads that no later atom continues, latest first: of the session $2, and that the NPC $3 heard, unless NULL. What it
-- did not hear does not close a thread for it. Served by idx_atom_edges_to.
SELECT a.stable_key AS key, a.session_id AS session, (extract(epoch FROM a.at) * 1000)::bigint AS at_ms, a.title, a.summary,
       a.evidence
  FROM live_atoms a
 WHERE a.campaign_id = $1 AND a.kind = 'thread' AND a.kept_key IS NULL
   AND ($2::text IS NULL OR a.session_id = $2) AND ($3::text IS NULL OR $3 = ANY (a.witnesses))
   AND NOT EXISTS (SELECT FROM atom_edges x
                     JOIN live_atoms l ON l.campaign_id = $1 AND l.stable_key = x.from_key
                    WHERE x.campaign_id = $1 AND x.to_key = a.stable_key AND x.label = 'continues_thread'
                      AND ($3::text IS NULL OR $3 = ANY (l.witnesses)))
 ORDER BY a.at DESC, a.stable_key
 LIMIT $4;

-- closed_threads --
-- Threads that an atom of the session $2 continues, latest first.
SELECT DISTINCT a.at, a.stable_key, a.summary
  FROM live_atoms l
  JOIN atom_edges x ON x.campaign_id = $1 AND x.from_key = l.stable_key AND x.label = 'continues_thread'
  JOIN live_atoms a ON a.campaign_id = $1 AND a.stable_key = x.to_key AND a.kind = 'thread' AND a.kept_key IS NULL
 WHERE l.campaign_id = $1 AND l.session_id = $2
 ORDER BY a.at DESC, a.stable_key
 LIMIT $3;
