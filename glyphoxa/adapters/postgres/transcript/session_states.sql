-- state --
SELECT state FROM session_states WHERE campaign_id = $1 AND session_id = $2 AND view = $3;

-- states --
SELECT view, state FROM session_states WHERE campaign_id = $1 AND session_id = $2 ORDER BY view;

-- lock --
-- Before the rows are read: whoever retracts an utterance has done so, or will find the sentences.
SELECT glyphoxa_lock_talk($1);

-- cover --
-- Store the summary $4 of view $3, which covers the session up to the utterance $5, if the stored one reaches the ordinal
-- $6. Sentences that rest on retracted utterances are left out. No row: another writer was first, or the log does not
-- have the utterance yet, or a later version ($7 is this one) of the format wrote it.
WITH reached AS (
    SELECT ordinal FROM session_entries WHERE campaign_id = $1 AND session_id = $2 AND utterance_id = $5
), told AS (
    SELECT coalesce(jsonb_agg(s ORDER BY n), '[]') AS summary
      FROM jsonb_array_elements($4) WITH ORDINALITY AS t (s, n)
     WHERE NOT EXISTS (SELECT FROM session_entries e
                        WHERE e.campaign_id = $1 AND e.retracted
                          AND e.utterance_id IN (SELECT jsonb_array_elements_text(s -> 'evidence')))
)
INSERT INTO session_states AS was (campaign_id, session_id, view, state)
SELECT $1, $2, $3,
       jsonb_build_object('version', $7::int, 'summary', summary, 'flags', '{}'::jsonb, 'last_ordinal', ordinal)
  FROM reached, told
 WHERE ordinal >= $6
   AND ($6 = 0 OR EXISTS (SELECT FROM session_states WHERE campaign_id = $1 AND session_id = $2 AND view = $3))
    ON CONFLICT (campaign_id, session_id, view) DO UPDATE
   SET state = was.state || jsonb_build_object('version', $7::int, 'summary', excluded.state -> 'summary',
                                               'last_ordinal', excluded.state -> 'last_ordinal'),
       updated_at = clock_timestamp()
 WHERE (was.state -> 'last_ordinal')::bigint = $6 AND coalesce((was.state -> 'version')::int, 1) <= $7
RETURNING (state -> 'last_ordinal')::bigint;

-- note --
-- Add the flags $4 to the state of view $3, unless it is of a later version than $5.
INSERT INTO session_states AS was (campaign_id, session_id, view, state)
VALUES ($1, $2, $3, jsonb_build_object('version', $5::int, 'summary', '[]'::jsonb, 'flags', $4::jsonb, 'last_ordinal', 0))
    ON CONFLICT (campaign_id, session_id, view) DO UPDATE
   SET state = was.state || jsonb_build_object('version', $5::int, 'flags', was.state -> 'flags' || $4::jsonb),
       updated_at = clock_timestamp()
 WHERE coalesce((was.state -> 'version')::int, 1) <= $5;
