-- session_and_later --
-- A session and those that began after it, in order.
SELECT s.id
  FROM sessions s
  JOIN sessions of ON of.campaign_id = $1 AND of.id = $2
 WHERE s.campaign_id = $1 AND (s.started_at, s.id) >= (of.started_at, of.id)
 ORDER BY s.started_at, s.id;

-- end_of_session --
-- The last moment of which anything is known: of what was said, or learned from it. NULL: there is no such session.
SELECT greatest((SELECT started_at FROM sessions WHERE campaign_id = $1 AND id = $2),
                (SELECT max(timestamp + duration_ns / 1000 * interval '1 microsecond')
                   FROM session_entries WHERE campaign_id = $1 AND session_id = $2),
                (SELECT max(at) FROM world_events WHERE campaign_id = $1 AND session_id = $2));

-- learned_behind --
-- What was learned from talk of the session $2 behind the floor $3 or from all of it (a summary), or of the sessions $4.
-- Undoing is nothing learned: somebody decided it. Served by idx_world_events_floor.
SELECT seq
  FROM world_events
 WHERE campaign_id = $1 AND by = 'talk' AND ((session_id = $2 AND (floor > $3 OR floor IS NULL)) OR session_id = ANY ($4))
   AND event_type NOT IN ('undone', 'rolled_back')
 ORDER BY seq;

-- learned_from --
-- What was learned from one utterance: the floor $4 of the session $3. Served by idx_world_events_floor.
SELECT seq
  FROM world_events
 WHERE campaign_id = $1 AND by = 'talk' AND session_id = $3 AND (floor = $4 OR source_turn_id = $2)
 ORDER BY seq;

-- utterance --
SELECT session_id, floor, text, struck FROM session_entries WHERE campaign_id = $1 AND utterance_id = $2;

-- talk_behind --
-- Floors behind $3 in the session $2, and all those of the sessions $4, with how many of them are not struck.
SELECT session_id, CASE session_id WHEN $2 THEN $3::bigint ELSE 0 END AS after_floor, max(floor) AS last_floor,
       count(*) FILTER (WHERE NOT struck) AS heard
  FROM session_entries
 WHERE campaign_id = $1 AND ((session_id = $2 AND floor > $3) OR session_id = ANY ($4))
 GROUP BY session_id;

-- strike --
INSERT INTO struck_talk (campaign_id, seq, session_id, after_floor, last_floor)
    SELECT $1, $2, r.session_id, r.after_floor, r.last_floor
      FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS r (session_id, after_floor, last_floor);

-- lock_talk --
-- See `lock` of transcripts.sql.
SELECT glyphoxa_lock_talk($1);

-- settle_struck --
-- Of all talk that the events $2 struck: it stays so if one of those that count ($3) struck it. Returns what is
-- otherwise now.
WITH settled AS (
    SELECT DISTINCT e.id, e.utterance_id,
           EXISTS (SELECT FROM struck_talk by
                    WHERE by.campaign_id = $1 AND by.seq = ANY ($3) AND by.session_id = e.session_id
                      AND e.floor > by.after_floor AND e.floor <= by.last_floor) AS struck
      FROM struck_talk s
      JOIN session_entries e ON e.campaign_id = $1 AND e.session_id = s.session_id
                            AND e.floor > s.after_floor AND e.floor <= s.last_floor
     WHERE s.campaign_id = $1 AND s.seq = ANY ($2)
), chunk AS (
    UPDATE chunks c SET struck = settled.struck
      FROM settled
     WHERE c.campaign_id = $1 AND c.utterance_id = settled.utterance_id AND c.struck <> settled.struck
)
UPDATE session_entries e SET struck = settled.struck
  FROM settled
 WHERE e.campaign_id = $1 AND e.id = settled.id AND e.struck <> settled.struck
RETURNING e.utterance_id;

-- settle_words --
-- The words $3 for those of the utterances $2; NULL gives one its own back. What was embedded of the others goes: it is
-- embedded anew like one that never was.
WITH wanted AS (
    SELECT utterance_id, words FROM unnest($2::text[], $3::text[]) AS w (utterance_id, words)
), chunk AS (
    DELETE FROM chunks c USING wanted w WHERE c.campaign_id = $1 AND c.utterance_id = w.utterance_id
)
UPDATE session_entries e
   SET text = coalesce(w.words, e.own_text, e.text),
       own_text = CASE WHEN w.words IS NULL THEN NULL ELSE coalesce(e.own_text, e.text) END
  FROM wanted w
 WHERE e.campaign_id = $1 AND e.utterance_id = w.utterance_id
RETURNING e.utterance_id;
