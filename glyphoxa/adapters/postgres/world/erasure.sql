-- allow --
-- Until the end of the transaction, allow the log to lose erased words, and lock the utterances.
SELECT set_config('glyphoxa.erasing', 'on', true), glyphoxa_lock_talk($1);

-- enter --
-- Select the campaign whose rows are visible, until the end of the transaction.
SELECT set_config('glyphoxa.campaign', $1, true);

-- campaigns --
SELECT id FROM campaigns WHERE id <> $1 ORDER BY id;

-- chosen --
-- Selected utterances that are not erased yet: said by player $2, in session $3,
-- before $4; NULL for any. Includes NPCs' answers to a player, which may repeat what the player said.
WITH meant AS (
    SELECT utterance_id FROM session_entries
     WHERE campaign_id = $1 AND NOT is_erased
       AND ($2::text IS NULL OR (speaker_id = $2 AND npc_id = ''))
       AND ($3::text IS NULL OR session_id = $3)
       AND ($4::timestamptz IS NULL OR timestamp < $4)
)
SELECT utterance_id AS utterance, session_id AS session, ordinal, timestamp AS at, md5(raw_text) AS heard,
       npc_id <> '' AS is_npc
  FROM session_entries e
 WHERE campaign_id = $1 AND NOT is_erased
   AND (utterance_id IN (SELECT utterance_id FROM meant)
        OR utterance_id IN (SELECT t.reply_id FROM turns t JOIN meant m ON m.utterance_id = t.utterance_id
                             WHERE t.campaign_id = $1))
 ORDER BY session_id, ordinal;

-- copies --
-- The same utterances in a fork: $2 ids, $3 sessions, $4 times, $5 what was heard.
SELECT e.utterance_id AS utterance, e.session_id AS session, e.ordinal, e.timestamp AS at, md5(e.raw_text) AS heard,
       e.npc_id <> '' AS is_npc
  FROM session_entries e
  JOIN unnest($2::text[], $3::text[], $4::timestamptz[], $5::text[]) AS o (utterance_id, session_id, at, heard)
    ON o.utterance_id = e.utterance_id AND o.session_id = e.session_id AND o.at = e.timestamp
   AND o.heard = md5(e.raw_text)
 WHERE e.campaign_id = $1 AND NOT e.is_erased
 ORDER BY e.session_id, e.ordinal;

-- said_by --
-- Players with a name or an id: those who spoke, and those of the campaign file.
SELECT DISTINCT id, name FROM (
    SELECT speaker_id AS id, speaker_name AS name FROM session_entries
     WHERE campaign_id = $1 AND npc_id = '' AND NOT is_erased
    UNION ALL
    SELECT p ->> 'id', p ->> 'name'
      FROM campaign_documents d, jsonb_array_elements(coalesce(d.document -> 'players', '[]')) AS p
     WHERE d.campaign_id = $1) AS known
 WHERE id <> ''
 ORDER BY id, name;

-- tombstones --
-- What remains of an utterance: its session, ordinal, time and witnesses.
UPDATE session_entries
   SET text = '', raw_text = '', own_text = NULL, speaker_id = '', speaker_name = '', retracted = TRUE, is_erased = TRUE
 WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- corrections --
DELETE FROM corrections WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- chunks --
-- With their vectors. Served by idx_chunks_utterance_id.
DELETE FROM chunks WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- to_embed --
-- Including the entries that the tombstones have just created.
DELETE FROM talk_to_embed WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- interrupt --
-- Workers that read these sessions ($2) have the words in memory: end their leases so that they start over. Before
-- locking the world, because readers take the locks in this order.
UPDATE chronicle_progress SET taken_by = NULL, taken_until = NULL WHERE campaign_id = $1 AND session_id = ANY ($2);

-- rereads --
-- Empty utterances need no rereading, and a reader's error message may quote the words.
WITH places AS (
    DELETE FROM chronicle_rereads r USING unnest($2::text[], $3::bigint[]) AS p (session_id, ordinal)
     WHERE r.campaign_id = $1 AND r.session_id = p.session_id AND r.ordinal = p.ordinal
)
UPDATE chronicle_progress SET error = NULL, refused = NULL WHERE campaign_id = $1 AND session_id = ANY ($2);

-- judgements --
-- Of these utterances. The notes of a model may quote an utterance that was its context.
WITH gone AS (DELETE FROM turn_judgements WHERE campaign_id = $1 AND utterance_id = ANY ($2))
UPDATE turn_judgements SET note = '' WHERE campaign_id = $1 AND session_id = ANY ($3) AND judged_by = 'llm';

-- turns --
-- Turns that begin or end with these utterances, and those of the player $3 or the session $4 (NULL: none);
-- all turns if $5.
DELETE FROM turns
 WHERE campaign_id = $1
   AND (utterance_id = ANY ($2) OR reply_id = ANY ($2) OR speaker_id = $3 OR session_id = $4 OR $5);

-- prompts --
-- Later prompts may quote them or conclusions from them: delete all prompts since the earliest ($2).
UPDATE turns
   SET prompt_text = '', parts = '[]', recalled = '[]', rejected = '[]', looked_up = '[]', unsaid = '[]', omitted = '{}',
       error = ''
 WHERE campaign_id = $1
   AND session_id IN (SELECT id FROM sessions WHERE campaign_id = $1
                         AND started_at >= (SELECT min(started_at) FROM sessions
                                             WHERE campaign_id = $1 AND id = ANY ($2)));

-- form_counts --
-- Counts of forms without a step left, and mentions of other forms in these utterances ($2).
WITH gone AS (
    DELETE FROM form_counts c
     WHERE c.campaign_id = $1
       AND NOT EXISTS (SELECT FROM world_events w WHERE w.campaign_id = $1 AND w.event_type = 'form_heard'
                          AND w.payload ->> 'heard' = c.heard)
)
UPDATE form_counts c
   SET utterances = ARRAY(SELECT u.id FROM unnest(utterances) WITH ORDINALITY AS u (id, n)
                           WHERE NOT u.id = ANY ($2) ORDER BY u.n)
 WHERE campaign_id = $1 AND utterances && $2
   AND EXISTS (SELECT FROM world_events w WHERE w.campaign_id = $1 AND w.event_type = 'form_heard'
                  AND w.payload ->> 'heard' = c.heard);

-- open_at --
SELECT node FROM table_leases WHERE campaign = $1 AND until > clock_timestamp();

-- table_files --
-- Drop the lines about a player from the consents and the log of visits of a table on several machines.
UPDATE table_files SET content = convert_to(coalesce((
           SELECT string_agg(line || E'\n', '' ORDER BY nth)
             FROM regexp_split_to_table(convert_from(content, 'UTF8'), E'\n') WITH ORDINALITY AS l (line, nth)
            WHERE line <> '' AND strpos(line, to_json($2::TEXT)::TEXT) = 0
              AND strpos(line, to_json('player:' || $2)::TEXT) = 0), ''), 'UTF8')
 WHERE campaign_id = $1 AND name LIKE '%.jsonl';

-- commands --
-- Commands to a table: whispers to the player $2, and all of the session $3; all if $4.
DELETE FROM table_commands
 WHERE campaign_id = $1 AND (command ->> 'player' = $2 OR session_id = $3 OR taken_by = $3 OR $4);

-- events --
UPDATE world_events w
   SET event_type = e.event_type, payload = e.payload
  FROM jsonb_to_recordset($2::text::jsonb) AS e (seq BIGINT, event_type TEXT, payload JSONB)
 WHERE w.campaign_id = $1 AND w.seq = e.seq;

-- snapshots --
DELETE FROM world_snapshots WHERE campaign_id = $1;

-- analyze --
-- The planner stores common values of columns, which may include words.
ANALYZE session_entries, chunks, corrections, turns, turn_judgements, form_counts, world_events, entities,
        relationships, attribute_facts, fact_history, state_atoms;

-- erased --
-- All utterances ever erased from a campaign.
SELECT utterance_id FROM session_entries WHERE campaign_id = $1 AND is_erased;

-- export --
-- Stored data of the utterances $2, and the events $3 learned from them. Without prompts, unspoken parts of NPCs'
-- replies and the notes of judgements, which may contain secrets, and without the words of what rests on others'
-- utterances, too, such as a session's summary.
SELECT jsonb_build_object(
    'utterances', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'utterance', utterance_id, 'session', session_id, 'ordinal', ordinal, 'at', timestamp,
                   'duration_ms', duration_ns / 1000000, 'speaker', speaker_id, 'name', speaker_name, 'text', text,
                   'heard', CASE WHEN npc_id = '' THEN raw_text END, 'npc', nullif(npc_id, ''), 'retracted', retracted,
                   'withheld', withheld, 'aside', nullif(aside, ''),
                   'heard_by', witnesses, 'corrections', coalesce(corrections, '[]')) ORDER BY id), '[]')
          FROM utterances WHERE campaign_id = $1 AND utterance_id = ANY ($2)),
    'turns', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'turn', id, 'utterance', utterance_id, 'npc', npc_id, 'outcome', outcome, 'text', text,
                   'heard', raw_text, 'answer_heard', reply_heard, 'at', created_at) ORDER BY created_at, id), '[]')
          FROM turns WHERE campaign_id = $1 AND utterance_id = ANY ($2)),
    'judged', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'utterance', utterance_id, 'mode', mode, 'risk', risk, 'flags', flags, 'kept', extract_memory,
                   'by', judged_by, 'at', at) ORDER BY session_id, ordinal), '[]')
          FROM turn_judgements WHERE campaign_id = $1 AND utterance_id = ANY ($2)),
    'learned', (
        SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'event', seq, 'kind', event_type, 'at', at, 'name', payload -> 'name', 'utterance', source_turn_id,
                   'claim', CASE WHEN coalesce(payload #> '{attributes,evidence}', '[]') <@ to_jsonb($2::text[])
                                 THEN payload -> 'claim' END)) ORDER BY seq), '[]')
          FROM world_events WHERE campaign_id = $1 AND seq = ANY ($3) AND event_type <> 'form_heard'),
    'names', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'heard', payload -> 'as_heard', 'entity', payload -> 'entity', 'kind', payload -> 'kind',
                   'utterance', payload -> 'utterance', 'at', at) ORDER BY seq), '[]')
          FROM world_events
         WHERE campaign_id = $1 AND event_type = 'form_heard' AND payload ->> 'utterance' = ANY ($2)))::text;
