-- head --
SELECT coalesce(max(seq), 0) FROM world_events WHERE campaign_id = $1;

-- add_events --
INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by, session_id, ordinal, source_turn_id)
    SELECT $1, e.seq, e.event_type, e.payload, $3, $4, $5, $6, $7
      FROM jsonb_to_recordset($2::text::jsonb) AS e (seq BIGINT, event_type TEXT, payload JSONB);

-- events --
-- Events after $2 up to $3, in order; $4 not null: only those up to that time.
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events
 WHERE campaign_id = $1 AND seq > $2 AND seq <= $3 AND ($4::timestamptz IS NULL OR at <= $4)
 ORDER BY seq;

-- events_first --
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events WHERE campaign_id = $1 AND seq > $2 ORDER BY seq LIMIT $3;

-- events_last --
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events WHERE campaign_id = $1 AND seq > $2 ORDER BY seq DESC LIMIT $3;

-- undoing_events --
-- Events that undo others. Served by idx_world_events_undoing.
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events WHERE campaign_id = $1 AND event_type IN ('undone', 'rolled_back', 'utterance_retracted', 'utterance_withheld',
                                                       'utterance_corrected')
 ORDER BY seq;

-- stated_from --
-- Facts stated by the utterances $2. Served by idx_world_events_sources.
SELECT seq, event_type, payload::text AS payload, at, by, session_id, ordinal, source_turn_id
  FROM world_events WHERE campaign_id = $1 AND by = 'talk' AND event_type = 'fact_stated' AND sources && $2
 ORDER BY seq;

-- first_after --
-- The first event later than $2.
SELECT min(seq) FROM world_events WHERE campaign_id = $1 AND at > $2;

-- snapshots --
-- Snapshots up to the event $2, latest first.
SELECT seq FROM world_snapshots WHERE campaign_id = $1 AND seq <= $2 AND projection_version = $3 ORDER BY seq DESC;

-- snapshot --
-- The parts of a snapshot.
SELECT part::text AS part FROM world_snapshots, jsonb_array_elements(payload) AS part
 WHERE campaign_id = $1 AND seq = $2;

-- put_snapshot --
-- Deletes snapshots of other projection versions ($4), which are unusable.
WITH outdated AS (DELETE FROM world_snapshots WHERE campaign_id = $1 AND seq <> $2 AND projection_version <> $4)
INSERT INTO world_snapshots (campaign_id, seq, payload, projection_version) VALUES ($1, $2, $3::text::jsonb, $4)
    ON CONFLICT (campaign_id, seq) DO UPDATE
    SET payload = excluded.payload, projection_version = excluded.projection_version, created_at = now();

-- campaign --
-- Its language, and the NPCs' names in its file.
SELECT c.language,
       (SELECT jsonb_agg(jsonb_build_object('entity', npc -> 'entity_id', 'name', npc -> 'name',
                                            'aliases', npc -> 'aliases'))
          FROM campaign_documents d, jsonb_array_elements(d.document -> 'npcs') AS npc
         WHERE d.campaign_id = $1) AS npcs
  FROM campaigns c
 WHERE c.id = $1;

-- names_changed --
-- Tell open tables of the entities whose names' wrong forms the events $2 are steps of. A payload may not exceed 8000
-- bytes: without an entity, any name may have changed.
SELECT pg_notify('glyphoxa_names', CASE WHEN octet_length(told) < 8000 THEN told ELSE '{}' END)
  FROM (SELECT DISTINCT jsonb_build_object('campaign', campaign_id, 'entity', payload -> 'entity')::text AS told
          FROM world_events WHERE campaign_id = $1 AND seq = ANY ($2) AND event_type = 'form_heard') changed;
