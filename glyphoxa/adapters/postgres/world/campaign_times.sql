-- put_times --
-- The times in the campaign file.
INSERT INTO campaign_times (campaign_id, time_zone, calendar, story_day) VALUES ($1, $2, $3, $4)
    ON CONFLICT (campaign_id) DO UPDATE
    SET time_zone = excluded.time_zone, calendar = excluded.calendar, story_day = excluded.story_day;

-- times --
SELECT time_zone, calendar, story_day FROM campaign_times WHERE campaign_id = $1;

-- told --
-- The recorded story days, in order. Served by story_days_pkey.
SELECT session_id AS session, day, file_day, (extract(epoch FROM told_at) * 1000)::bigint AS told_ms
  FROM story_days WHERE campaign_id = $1 ORDER BY id;

-- tell --
INSERT INTO story_days (campaign_id, session_id, day, file_day) VALUES ($1, $2, $3, $4);

-- put_right --
-- Keep the time of the earlier record: correcting a session's day is not playing it.
INSERT INTO story_days (campaign_id, session_id, day, file_day, told_at)
    VALUES ($1, $2, $3, $4, to_timestamp($5::bigint / 1000.0));

-- forget --
DELETE FROM story_days WHERE campaign_id = $1 AND session_id = $2;

-- last_said --
-- The session with the latest utterance, and its time. Served by idx_session_entries_timestamp.
SELECT session_id, (extract(epoch FROM timestamp) * 1000)::bigint AS at_ms
  FROM session_entries WHERE campaign_id = $1 AND NOT retracted ORDER BY timestamp DESC LIMIT 1;
