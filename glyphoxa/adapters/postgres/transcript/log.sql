-- place_sessions --
-- Lock the sessions of a batch in a fixed order until the transaction ends: others that append to the same session
-- wait, so that ordinals have no gap. A session starts with its earliest utterance.
INSERT INTO sessions (campaign_id, id, started_at)
    SELECT $1, s.id, s.started_at FROM jsonb_to_recordset($2) AS s (id TEXT, started_at TIMESTAMPTZ) ORDER BY s.id
    ON CONFLICT (campaign_id, id) DO UPDATE SET started_at = least(sessions.started_at, excluded.started_at);

-- plan_for_batch --
-- A plan made while the campaign's partition was empty may read all of it for each utterance, and stays in use until
-- the partition is analyzed: 400 turns a second instead of 5,000.
SET LOCAL plan_cache_mode = force_custom_plan;

-- append --
-- Append a batch in order; each new utterance gets the next ordinal of its session. The caller holds the locks of
-- the sessions. Existing ones are found by session_entries_campaign_id_utterance_id_key, one by one: an
-- anti-join would compare them with all utterances of the campaign.
WITH new AS MATERIALIZED (
    SELECT s.*, row_number() OVER (PARTITION BY s.session_id ORDER BY s.place) AS nth
      FROM jsonb_to_recordset($2) AS s (place INT, session_id TEXT, utterance_id TEXT, speaker_id TEXT,
                                        speaker_name TEXT, text TEXT, raw_text TEXT, npc_id TEXT,
                                        at TIMESTAMPTZ, duration_ns BIGINT, witnesses TEXT[], aside TEXT)
      LEFT JOIN LATERAL (SELECT true AS there FROM session_entries e
                          WHERE e.campaign_id = $1 AND e.utterance_id = s.utterance_id LIMIT 1) old ON true
     WHERE old.there IS NULL),
placed AS (
    UPDATE sessions SET last_ordinal = last_ordinal + n.n
      FROM (SELECT session_id, count(*) AS n FROM new GROUP BY session_id) n
     WHERE campaign_id = $1 AND id = n.session_id
    RETURNING id, last_ordinal - n.n AS before)
INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id, speaker_name, text, raw_text,
                             npc_id, timestamp, duration_ns, witnesses, aside, fts_config)
    SELECT $1, n.session_id, p.before + n.nth, n.utterance_id, n.speaker_id, n.speaker_name, n.text, n.raw_text,
           n.npc_id, n.at, n.duration_ns, n.witnesses, n.aside,
           coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns WHERE id = $1), 'english')
      FROM new n JOIN placed p ON p.id = n.session_id
     ORDER BY n.place
RETURNING utterance_id;

-- add_corrections --
-- Corrections of utterances that were just added.
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage, reason)
    SELECT $1, c.utterance_id, c.ordinal, c.start, c."end", c.before, c.after, c.score, c.stage, c.reason
      FROM jsonb_to_recordset($2) AS c (utterance_id TEXT, ordinal INT, start INT, "end" INT, before TEXT,
                                        after TEXT, score FLOAT8, stage TEXT, reason TEXT);

-- lock --
-- Take this lock before locking rows for a change, as every change takes it after its row: two changes of the same
-- utterances would deadlock.
SELECT glyphoxa_lock_talk($1);

-- revise --
-- Revise the text of an utterance if it is still $4. Locks the row until the transaction ends. The
-- columns of its words are generated.
UPDATE session_entries SET text = $3
 WHERE campaign_id = $1 AND utterance_id = $2 AND text = $4
RETURNING true;

-- exists --
SELECT EXISTS (SELECT FROM session_entries WHERE campaign_id = $1 AND utterance_id = $2);

-- add_later_corrections --
-- Add corrections after the existing ones. The caller holds the lock of the utterance.
INSERT INTO corrections (campaign_id, utterance_id, ordinal, start_char, end_char, before, after, score, stage, reason)
    SELECT $1, $2, c.ordinal + (SELECT coalesce(max(ordinal) + 1, 0) FROM corrections
                                 WHERE campaign_id = $1 AND utterance_id = $2),
           c.start, c."end", c.before, c.after, c.score, c.stage, c.reason
      FROM jsonb_to_recordset($3) AS c (ordinal INT, start INT, "end" INT, before TEXT, after TEXT,
                                        score FLOAT8, stage TEXT, reason TEXT);

-- drop_chunks --
-- Drop the chunks of the old text. The utterance is embedded again like a new one. Served by
-- idx_chunks_utterance_id.
DELETE FROM chunks WHERE campaign_id = $1 AND utterance_id = $2;

-- record_turn --
-- Store a finished turn; an existing one is left unchanged.
INSERT INTO turns (campaign_id, id, session_id, speaker_id, speaker_name, raw_text, text, npc_id, address_reason,
                   outcome, reply, reply_heard, recalled, stages, omitted, prompt_text, error, rejected, looked_up,
                   utterance_id, reply_id, parts, tier, tier_reason, unsaid)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
            $24, $25)
    ON CONFLICT (campaign_id, id) DO NOTHING;

-- enter_story --
-- The DM said that the line $2 was meant for the NPC $3: if it was kept apart, the NPCs that heard the answer $4 heard
-- it, too. It is embedded and read again like a new one.
WITH entered AS (
    UPDATE session_entries
       SET aside = '', witnesses = coalesce((SELECT r.witnesses FROM session_entries r
                                              WHERE r.campaign_id = $1 AND r.utterance_id = $4), ARRAY[$3])
     WHERE campaign_id = $1 AND utterance_id = $2 AND aside <> '' AND NOT is_erased
    RETURNING session_id, ordinal, change_seq
), chunk AS (
    DELETE FROM chunks WHERE campaign_id = $1 AND utterance_id = $2 AND EXISTS (SELECT FROM entered)
)
INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq)
    SELECT $1, session_id, ordinal, change_seq FROM entered
    ON CONFLICT (campaign_id, session_id, ordinal) DO UPDATE SET change_seq = excluded.change_seq;

-- recent --
-- A session's last utterances, oldest first, without rolled back ones. Served by
-- idx_session_entries_session_timestamp.
SELECT * FROM (
    SELECT * FROM utterances
     WHERE campaign_id = $1 AND session_id = $2 AND timestamp >= $3 AND NOT retracted
     ORDER BY timestamp DESC, ordinal DESC
     LIMIT $4) latest
 ORDER BY timestamp, ordinal;

-- decided --
-- A session's utterances that the DM retracted or corrected. Served by idx_session_entries_session_id.
SELECT u.*, e.own_text
  FROM session_entries e
  JOIN utterances u ON u.campaign_id = $1 AND u.id = e.id
 WHERE e.campaign_id = $1 AND e.session_id = $2 AND (e.retracted OR e.own_text IS NOT NULL)
 ORDER BY e.ordinal;

-- count --
-- Count the whole campaign, including rolled back utterances. Served by idx_session_entries_session_id alone.
SELECT count(*) FROM session_entries WHERE campaign_id = $1;

-- count_of_session --
SELECT count(*) FROM session_entries WHERE campaign_id = $1 AND session_id = $2;

-- first_has_language --
-- Whether the campaign's first utterance is indexed in the campaign's language; true if there is none. Served by
-- the primary key.
SELECT coalesce((SELECT e.fts_config = glyphoxa_fts_config(c.language)
                   FROM session_entries e JOIN campaigns c ON c.id = e.campaign_id
                  WHERE e.campaign_id = $1 ORDER BY e.id LIMIT 1), true);

-- follow_language --
-- Reindex up to $3 utterances before the id $2 (NULL: the latest) in the campaign's language; `reached` is the
-- first of them, NULL if there were none. Served by the primary key.
WITH batch AS MATERIALIZED (
    SELECT id FROM session_entries WHERE campaign_id = $1 AND id < coalesce($2, 9223372036854775807)
     ORDER BY id DESC LIMIT $3),
changed AS (
    UPDATE session_entries e SET fts_config = glyphoxa_fts_config(c.language)
      FROM batch b, campaigns c
     WHERE e.campaign_id = $1 AND e.id = b.id AND c.id = $1 AND e.fts_config <> glyphoxa_fts_config(c.language)
    RETURNING 1)
SELECT (SELECT count(*) FROM changed) AS changed, (SELECT min(id) FROM batch) AS reached;
