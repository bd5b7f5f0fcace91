-- add_session --
-- The session of an utterance, unless it is known. Its start is the first utterance that arrives.
INSERT INTO sessions (campaign_id, id, started_at) VALUES ($1, $2, $3)
    ON CONFLICT (campaign_id, id) DO UPDATE SET started_at = excluded.started_at
    WHERE sessions.started_at > excluded.started_at;

-- append --
-- One utterance, with the next floor of its session; one that is already there is left as it is.
WITH placed AS (
    UPDATE sessions SET last_floor = last_floor + 1
     WHERE campaign_id = $1 AND id = $2
       AND NOT EXISTS (SELECT FROM session_entries WHERE campaign_id = $1 AND utterance_id = $3)
    RETURNING last_floor)
INSERT INTO session_entries (campaign_id, session_id, utterance_id, speaker_id, speaker_name, text, raw_text,
                             npc_id, timestamp, duration_ns, witnesses, floor, fts_config)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, placed.last_floor,
           coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns WHERE id = $1), 'english')
      FROM placed
    ON CONFLICT (campaign_id, utterance_id) DO NOTHING;

-- add_correction --
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage, reason)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (campaign_id, utterance_id, ordinal) DO NOTHING;

-- revise --
-- A better text for an utterance, if it still has the text $4. Locks the row until the transaction ends. The
-- columns of its words follow by themselves.
UPDATE session_entries SET text = $3
 WHERE campaign_id = $1 AND utterance_id = $2 AND text = $4
RETURNING true;

-- exists --
SELECT EXISTS (SELECT FROM session_entries WHERE campaign_id = $1 AND utterance_id = $2);

-- add_later_correction --
-- Behind those that are there. The caller holds the lock of the utterance.
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage, reason)
    SELECT $1, $2, coalesce(max(ordinal) + 1, 0), $3, $4, $5, $6, $7, $8, $9
      FROM corrections WHERE campaign_id = $1 AND utterance_id = $2;

-- drop_chunk --
-- The meaning of the old words. The utterance is embedded anew like one that never was.
DELETE FROM chunks WHERE campaign_id = $1 AND id = $2;

-- record_turn --
-- A finished turn; one that is already there is left as it is.
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, npc_id, address_reason,
                   outcome, reply, reply_heard, recalled, stages, omitted, prompt_text, error)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
    ON CONFLICT (campaign_id, id) DO NOTHING;

-- recent --
-- A session's last utterances, oldest first, with their corrections. Served by idx_session_entries_session_timestamp.
SELECT * FROM (
    SELECT e.campaign_id, e.session_id, e.utterance_id, e.speaker_id, e.speaker_name, e.text, e.raw_text, e.npc_id,
           e.timestamp, e.duration_ns, e.witnesses, e.id,
           (SELECT jsonb_agg(jsonb_build_object('start', c.start_char, 'end', c.end_char, 'before', c.before,
                                                'after', c.after, 'score', c.score, 'stage', c.stage,
                                                'reason', c.reason) ORDER BY c.start_char, c.ordinal)
              FROM corrections c
             WHERE c.campaign_id = e.campaign_id AND c.utterance_id = e.utterance_id) AS corrections
      FROM session_entries e
     WHERE e.campaign_id = $1 AND e.session_id = $2 AND e.timestamp >= $3
     ORDER BY e.timestamp DESC, e.id DESC
     LIMIT $4) latest
 ORDER BY timestamp, id;

-- count --
-- Of the whole campaign when $2 is NULL.
SELECT count(*) FROM session_entries WHERE campaign_id = $1 AND ($2::text IS NULL OR session_id = $2);
