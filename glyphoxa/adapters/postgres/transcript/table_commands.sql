-- ask --
-- The notification is sent when the row is visible to others.
WITH asked AS (
    INSERT INTO table_commands (campaign_id, id, session_id, command) VALUES ($1, $2, $3, $4) RETURNING campaign_id
)
SELECT pg_notify('glyphoxa_table', json_build_object('campaign', campaign_id)::text) FROM asked;

-- take --
-- One table takes a command; an expired command is taken by none.
UPDATE table_commands SET taken_by = $2
 WHERE campaign_id = $1
   AND id = (SELECT id FROM table_commands
              WHERE campaign_id = $1 AND taken_by IS NULL AND (session_id IS NULL OR session_id = $2)
                AND asked_at > clock_timestamp() - interval '10 seconds'
              ORDER BY asked_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, command;

-- answer --
WITH answered AS (
    UPDATE table_commands SET answer = $3, is_done = $4 WHERE campaign_id = $1 AND id = $2 RETURNING campaign_id
)
SELECT pg_notify('glyphoxa_table', json_build_object('campaign', campaign_id)::text) FROM answered;

-- answered --
SELECT answer, is_done, taken_by FROM table_commands WHERE campaign_id = $1 AND id = $2;

-- withdraw --
-- Withdraw a command, unless a table has taken it.
DELETE FROM table_commands WHERE campaign_id = $1 AND id = $2 AND taken_by IS NULL RETURNING id;

-- latest --
-- The commands in a campaign (and session), newest first.
SELECT (extract(epoch FROM asked_at) * 1000)::bigint AS at_ms, taken_by AS session, command AS told,
       coalesce(answer, '') AS answer, coalesce(is_done, false) AS is_done
  FROM table_commands
 WHERE campaign_id = $1 AND taken_by IS NOT NULL AND ($2::text IS NULL OR taken_by = $2) AND command ->> 'do' <> 'show'
 ORDER BY asked_at DESC, id LIMIT $3;

-- controls --
SELECT controls FROM table_controls WHERE campaign_id = $1 AND session_id = $2;

-- keep_controls --
INSERT INTO table_controls (campaign_id, session_id, controls) VALUES ($1, $2, $3)
    ON CONFLICT (campaign_id, session_id) DO UPDATE SET controls = EXCLUDED.controls;
