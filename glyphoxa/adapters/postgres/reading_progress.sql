-- progress --
-- Progress of all sessions, in the order in which they began.
SELECT s.id AS session, s.last_ordinal, coalesce(p.read_ordinal, 0) AS read_ordinal, coalesce(p.attempts, 0) AS attempts, p.error,
       (extract(epoch FROM p.retry_at) * 1000)::bigint AS retry_at_ms, coalesce(p.is_dead, false) AS is_dead, coalesce(p.n_refused, 0) AS n_refused, p.refused,
       (SELECT count(*) FROM chronicle_rereads r
         WHERE r.campaign_id = $1 AND r.session_id = s.id AND r.ordinal <= coalesce(p.read_ordinal, 0)) AS n_rereads,
       CASE WHEN e.is_over THEN coalesce(p.read_ordinal - p.checked_ordinal, 0) ELSE 0 END AS n_unchecked,
       (SELECT count(*) FROM session_entries r
         WHERE r.campaign_id = $1 AND r.session_id = s.id AND r.ordinal > coalesce(p.read_ordinal, 0)
           AND r.npc_id <> '' AND NOT r.retracted) AS n_replies,
       coalesce(p.attempts > 0 OR NOT p.taken_until BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 hour', false)
           AS is_unfinished
  FROM sessions s
  LEFT JOIN chronicle_progress p ON p.campaign_id = $1 AND p.session_id = s.id
  LEFT JOIN LATERAL (
       SELECT e.timestamp < clock_timestamp() - $2 * interval '1 millisecond' AS is_over FROM session_entries e
        WHERE e.campaign_id = $1 AND e.session_id = s.id AND e.ordinal = s.last_ordinal) e ON true
 WHERE s.campaign_id = $1
 ORDER BY s.started_at, s.id;

-- take --
-- Lease the session to worker $3 for $4 milliseconds; no row if another worker holds it. A lease of more than an hour is
-- from before the clock was set back.
INSERT INTO chronicle_progress AS p (campaign_id, session_id, taken_by, taken_until)
    VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
    ON CONFLICT (campaign_id, session_id) DO UPDATE SET taken_by = excluded.taken_by, taken_until = excluded.taken_until
    WHERE p.taken_by IS NULL OR p.taken_by = $3
       OR NOT p.taken_until BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 hour'
RETURNING read_ordinal;

-- release --
UPDATE chronicle_progress
   SET taken_by = NULL, taken_until = NULL, attempts = 0, error = NULL, retry_at = NULL, is_dead = false
 WHERE campaign_id = $1 AND session_id = $2 AND taken_by = $3;

-- rereads --
-- Rereads of utterances after the ordinal $3, up to $4.
SELECT ordinal, change_seq FROM chronicle_rereads
 WHERE campaign_id = $1 AND session_id = $2 AND ordinal > $3 AND ordinal <= $4
 ORDER BY ordinal;

-- first_rereads --
-- The first $4 rereads.
SELECT ordinal, change_seq FROM chronicle_rereads
 WHERE campaign_id = $1 AND session_id = $2 AND ordinal <= $3
 ORDER BY ordinal LIMIT $4;

-- read_again --
-- Mark everything read in a session for rereading.
INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq)
SELECT e.campaign_id, e.session_id, e.ordinal, e.change_seq
  FROM session_entries e
  JOIN chronicle_progress p ON p.campaign_id = $1 AND p.session_id = $2 AND e.ordinal <= p.read_ordinal
 WHERE e.campaign_id = $1 AND e.session_id = $2
    ON CONFLICT (campaign_id, session_id, ordinal) DO NOTHING;

-- forget_refused --
UPDATE chronicle_progress SET n_refused = 0, refused = NULL WHERE campaign_id = $1 AND session_id = $2;

-- said --
-- Up to $4 utterances after the ordinal $3, in order, including retracted ones. Served by
-- idx_session_entries_session_id.
SELECT u.*
  FROM session_entries e
  JOIN utterances u ON u.campaign_id = $1 AND u.id = e.id
 WHERE e.campaign_id = $1 AND e.session_id = $2 AND e.ordinal > $3
 ORDER BY e.ordinal
 LIMIT $4;

-- before --
-- Of the last $4 utterances before the ordinal $3, latest first, without retracted ones, those that may be read.
SELECT u.*
  FROM (SELECT id, utterance_id, ordinal FROM session_entries
         WHERE campaign_id = $1 AND session_id = $2 AND ordinal < $3 AND NOT retracted
         ORDER BY ordinal DESC LIMIT $4) e
  JOIN utterances u ON u.campaign_id = $1 AND u.id = e.id
 WHERE NOT EXISTS (SELECT FROM turn_judgements j WHERE j.campaign_id = $1 AND j.utterance_id = e.utterance_id
                      AND j.mode <> 'in_world_answer')
 ORDER BY e.ordinal DESC;

-- checked --
-- How far a session was judged twice, up to the ordinal $3, and whether nobody has spoken for $4 milliseconds.
SELECT p.checked_ordinal,
       (SELECT e.timestamp < clock_timestamp() - $4 * interval '1 millisecond' FROM session_entries e
         WHERE e.campaign_id = $1 AND e.session_id = $2 AND e.ordinal = $3) AS is_over
  FROM chronicle_progress p
 WHERE p.campaign_id = $1 AND p.session_id = $2;

-- judgements --
-- Of the utterances after the ordinal $3, up to $4. Served by idx_turn_judgements_ordinal.
SELECT ordinal, mode, risk, flags, note, extract_memory, judged_by, reason FROM turn_judgements
 WHERE campaign_id = $1 AND session_id = $2 AND ordinal > $3 AND ordinal <= $4;

-- judge --
INSERT INTO turn_judgements AS j
       (campaign_id, session_id, utterance_id, ordinal, mode, risk, flags, note, extract_memory, judged_by, reason)
SELECT $1, $2, utterance_id, ordinal, mode, risk, flags, note, extract_memory, judged_by, reason
  FROM jsonb_to_recordset($3::text::jsonb)
    AS r (utterance_id TEXT, ordinal BIGINT, mode TEXT, risk TEXT, flags TEXT[], note TEXT, extract_memory BOOLEAN,
          judged_by TEXT, reason TEXT)
    ON CONFLICT (campaign_id, utterance_id) DO UPDATE
   SET mode = excluded.mode, risk = excluded.risk, flags = excluded.flags, note = excluded.note,
       extract_memory = excluded.extract_memory, judged_by = excluded.judged_by, reason = excluded.reason,
       at = excluded.at;

-- head --
-- The last event that may change an entity or fact; 0 if there is none. Served by its primary key.
SELECT coalesce(max(seq), 0) FROM world_events WHERE campaign_id = $1 AND event_type <> 'form_heard';

-- known --
-- The attribute $2 is the meaning of a coined term; the DM may have rejected it. $3 are attributes for an occupation.
-- Without the nodes of the timeline, which nobody names.
SELECT id, type, name, aliases, scope, known_how, origin,
       id IN (SELECT entity_id FROM attribute_facts WHERE campaign_id = $1 AND attribute = $2
              UNION ALL
              SELECT subject_id FROM fact_history WHERE campaign_id = $1 AND predicate = $2) AS is_defined,
       ARRAY(SELECT a.value #>> '{}' FROM attribute_facts AS a
              WHERE a.campaign_id = $1 AND a.entity_id = entities.id AND a.attribute = ANY ($3)
                AND a.status = 'accepted') AS occupations
  FROM entities
 WHERE campaign_id = $1 AND NOT (type = 'event' AND id LIKE 'episode-%#%')
 ORDER BY id;

-- advance --
-- Advance from the ordinal $4 to $5 if worker $3 still holds the lease at the same position. $6 as in `take`;
-- $7 more findings were rejected, the last one for the reason $8. The second judgement has reached $9; NULL: it is at
-- most at $10.
UPDATE chronicle_progress
   SET read_ordinal = $5, attempts = 0, error = NULL, retry_at = NULL, is_dead = false,
       taken_until = clock_timestamp() + $6 * interval '1 millisecond',
       n_refused = n_refused + $7, refused = coalesce(left($8, 2000), refused),
       checked_ordinal = coalesce($9, least(checked_ordinal, $10))
 WHERE campaign_id = $1 AND session_id = $2 AND taken_by = $3 AND read_ordinal = $4
RETURNING true;

-- reread_done --
DELETE FROM chronicle_rereads r
 USING unnest($3::bigint[], $4::bigint[]) AS d (ordinal, change_seq)
 WHERE r.campaign_id = $1 AND r.session_id = $2 AND r.ordinal = d.ordinal AND r.change_seq = d.change_seq;

-- failed --
-- Record a failure of worker $5: attempt $4 is the last; until then retry after 1 s, doubled each time, up to an hour.
UPDATE chronicle_progress
   SET attempts = attempts + 1, error = left($3, 2000), is_dead = attempts + 1 >= $4,
       retry_at = clock_timestamp() + least(2 ^ attempts, 3600) * interval '1 second', taken_by = NULL, taken_until = NULL
 WHERE campaign_id = $1 AND session_id = $2 AND taken_by = $5;

-- revive --
UPDATE chronicle_progress SET attempts = 0, error = NULL, retry_at = NULL, is_dead = false
 WHERE campaign_id = $1 AND ($2::text IS NULL OR session_id = $2) AND attempts > 0
RETURNING session_id;

-- requests --
-- The utterances $3 of the session $2, and the last one of each one's speaker before it, retracted or not. In order.
-- Served by idx_session_entries_session_id.
SELECT u.*
  FROM utterances u
 WHERE u.campaign_id = $1 AND u.id IN (
       SELECT own.id
         FROM session_entries r
        CROSS JOIN LATERAL (SELECT e.id FROM session_entries e
                             WHERE e.campaign_id = $1 AND e.session_id = $2 AND e.ordinal <= r.ordinal
                               AND e.speaker_id = r.speaker_id AND e.npc_id = ''
                             ORDER BY e.ordinal DESC LIMIT 2) AS own
        WHERE r.campaign_id = $1 AND r.session_id = $2 AND r.utterance_id = ANY ($3))
 ORDER BY u.ordinal;
