-- session_and_later --
-- A session and those that began after it, in order.
SELECT s.id
  FROM sessions s
  JOIN sessions of ON of.campaign_id = $1 AND of.id = $2
 WHERE s.campaign_id = $1 AND (s.started_at, s.id) >= (of.started_at, of.id)
 ORDER BY s.started_at, s.id;

-- end_of_session --
-- The time of the last utterance of a session or event learned from it. NULL: there is no such session.
SELECT greatest((SELECT started_at FROM sessions WHERE campaign_id = $1 AND id = $2),
                (SELECT max(timestamp + duration_ns / 1000 * interval '1 microsecond')
                   FROM session_entries WHERE campaign_id = $1 AND session_id = $2),
                (SELECT max(at) FROM world_events WHERE campaign_id = $1 AND session_id = $2));

-- learned_behind --
-- Events learned from utterances of the session $2 after the ordinal $3 or from the whole session (a summary), or from
-- the sessions $4. Undoings are decisions, not learned. Served by idx_world_events_ordinal.
SELECT seq
  FROM world_events
 WHERE campaign_id = $1 AND by = 'talk' AND ((session_id = $2 AND (ordinal > $3 OR ordinal IS NULL)) OR session_id = ANY ($4))
   AND event_type NOT IN ('undone', 'rolled_back')
 ORDER BY seq;

-- learned_from --
-- Events learned from one utterance, the ordinal $4 of the session $3, alone or together with others, also of other
-- sessions: an event node sums up several. Served by idx_world_events_ordinal and idx_world_events_sources.
SELECT seq
  FROM world_events
 WHERE campaign_id = $1 AND by = 'talk'
   AND ((session_id = $3 AND ordinal = $4) OR sources @> ARRAY[$2])
 ORDER BY seq;

-- learned_from_any --
-- The same for the utterances $2, without steps of wrong forms of names: these do not come from reading an utterance.
-- Also without facts on which the DM has decided, and the entities that these are about: reading a line again takes no
-- decision back. Served by idx_world_events_sources.
WITH learned AS (
    SELECT seq, payload #>> '{provenance,origin}' AS origin, payload #>> '{claim,predicate}' AS predicate,
           payload #>> '{claim,subject}' AS subject, payload #>> '{claim,object}' AS object,
           CASE event_type WHEN 'entity_added' THEN payload ->> 'entity' END AS entity,
           coalesce((SELECT kept_id FROM entity_merges m
                      WHERE m.campaign_id = $1 AND m.gone_id = payload #>> '{claim,subject}'),
                    payload #>> '{claim,subject}') AS owner
      FROM world_events
     WHERE campaign_id = $1 AND by = 'talk' AND event_type NOT IN ('undone', 'form_heard') AND sources && $2
), decided AS (
    SELECT seq, subject, object
      FROM learned l
     WHERE origin = 'dm'
        OR EXISTS (SELECT FROM relationships f
                    WHERE f.campaign_id = $1 AND f.source_id = l.owner AND f.rel_type = l.predicate AND f.seq = l.seq
                      AND (f.scope IN ('secret', 'hidden') OR f.provenance @> '{"dm_confirmed": true}'))
        OR EXISTS (SELECT FROM attribute_facts f
                    WHERE f.campaign_id = $1 AND f.entity_id = l.owner AND f.attribute = l.predicate AND f.seq = l.seq
                      AND (f.scope IN ('secret', 'hidden') OR f.provenance @> '{"dm_confirmed": true}'))
        OR EXISTS (SELECT FROM fact_history f
                    WHERE f.campaign_id = $1 AND f.subject_id = l.owner AND f.predicate = l.predicate
                      AND f.seq = l.seq AND f.ended_as IN ('rejected', 'edited', 'retconned', 'closed'))
)
SELECT seq
  FROM learned l
 WHERE NOT EXISTS (SELECT FROM decided d WHERE d.seq = l.seq OR l.entity IN (d.subject, d.object))
   AND NOT EXISTS (SELECT FROM relationships f
                    WHERE f.campaign_id = $1 AND (f.source_id = l.entity OR f.target_id = l.entity)
                      AND (f.scope IN ('secret', 'hidden') OR f.provenance @> '{"dm_confirmed": true}'))
   AND NOT EXISTS (SELECT FROM attribute_facts f
                    WHERE f.campaign_id = $1 AND f.entity_id = l.entity
                      AND (f.scope IN ('secret', 'hidden') OR f.provenance @> '{"dm_confirmed": true}'))
   AND NOT EXISTS (SELECT FROM entities e
                    WHERE e.campaign_id = $1 AND e.id = l.entity AND e.scope IN ('secret', 'hidden'))
 ORDER BY seq;

-- utterance --
-- An utterance, and whether one of the events $3 retracted it.
SELECT session_id, ordinal, text, speaker_id, speaker_name, npc_id,
       is_erased OR EXISTS (SELECT FROM retracted_talk r
                             WHERE r.campaign_id = $1 AND r.seq = ANY ($3) AND r.session_id = e.session_id
                               AND e.ordinal > r.after_ordinal AND e.ordinal <= r.last_ordinal) AS retracted
  FROM session_entries e WHERE campaign_id = $1 AND utterance_id = $2;

-- own_lines --
-- Utterances of the speaker $2: the ids $3, or all of the session $4. Each with the answers of NPCs that follow it, up to
-- `last_ordinal`, and with the events learned from them, alone or together with others, also of other sessions.
SELECT e.utterance_id, e.session_id, e.ordinal, answers.last_ordinal,
       ARRAY(SELECT DISTINCT w.seq
               FROM session_entries l
               JOIN world_events w ON w.campaign_id = $1 AND w.by = 'talk' AND w.event_type <> 'undone'
                                  AND ((w.session_id = l.session_id AND w.ordinal = l.ordinal)
                                       OR w.sources @> ARRAY[l.utterance_id])
              WHERE l.campaign_id = $1 AND l.session_id = e.session_id
                AND l.ordinal BETWEEN e.ordinal AND answers.last_ordinal) AS learned
  FROM session_entries e
  JOIN sessions s ON s.campaign_id = $1 AND s.id = e.session_id
 CROSS JOIN LATERAL (SELECT coalesce(min(n.ordinal) - 1, s.last_ordinal) AS last_ordinal
                       FROM session_entries n
                      WHERE n.campaign_id = $1 AND n.session_id = e.session_id AND n.ordinal > e.ordinal
                        AND n.npc_id = '') AS answers
 WHERE e.campaign_id = $1 AND e.speaker_id = $2 AND e.npc_id = '' AND NOT e.is_erased
   AND (e.utterance_id = ANY ($3) OR e.session_id = $4)
 ORDER BY e.timestamp, e.session_id, e.ordinal;

-- read_others --
-- Read utterances again that mention entities which only the dropped events $2 named: they name them, too.
INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq)
SELECT DISTINCT e.campaign_id, e.session_id, e.ordinal, e.change_seq
  FROM world_events a
  JOIN world_events w ON w.campaign_id = $1 AND w.by = 'talk' AND w.event_type = 'fact_stated' AND NOT w.seq = ANY ($2)
                     AND a.payload ->> 'entity' IN (w.payload #>> '{claim,subject}', w.payload #>> '{claim,object}')
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = w.source_turn_id AND NOT e.retracted
 WHERE a.campaign_id = $1 AND a.seq = ANY ($2) AND a.event_type = 'entity_added'
    ON CONFLICT (campaign_id, session_id, ordinal) DO NOTHING;

-- read_restored --
-- Read the restored utterances $2 from which nothing was learned: they may have been withheld before they were read.
INSERT INTO chronicle_rereads (campaign_id, session_id, ordinal, change_seq)
SELECT e.campaign_id, e.session_id, e.ordinal, e.change_seq
  FROM session_entries e
  JOIN chronicle_progress p ON p.campaign_id = $1 AND p.session_id = e.session_id AND e.ordinal <= p.read_ordinal
 WHERE e.campaign_id = $1 AND e.utterance_id = ANY ($2) AND NOT e.retracted
   AND NOT EXISTS (SELECT FROM world_events w
                    WHERE w.campaign_id = $1 AND w.by = 'talk' AND w.session_id = e.session_id AND w.event_type <> 'form_heard'
                      AND (w.ordinal = e.ordinal OR w.sources @> ARRAY[e.utterance_id]))
    ON CONFLICT (campaign_id, session_id, ordinal) DO NOTHING;

-- talk_behind --
-- Ranges after $3 in the session $2, and all of the sessions $4, with the number of utterances not yet retracted.
SELECT session_id AS session, CASE session_id WHEN $2 THEN $3::bigint ELSE 0 END AS after_ordinal, max(ordinal) AS last_ordinal,
       count(*) FILTER (WHERE NOT retracted) AS n_heard
  FROM session_entries
 WHERE campaign_id = $1 AND ((session_id = $2 AND ordinal > $3) OR session_id = ANY ($4))
 GROUP BY session_id;

-- retract --
INSERT INTO retracted_talk (campaign_id, seq, session_id, after_ordinal, last_ordinal)
    SELECT $1, $2, r.session_id, r.after_ordinal, r.last_ordinal
      FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS r (session_id, after_ordinal, last_ordinal);

-- lock_talk --
-- See `lock` of transcripts.sql.
SELECT glyphoxa_lock_talk($1);

-- settle_retracted --
-- For all utterances that the events $2 retracted: retracted if one of the events in effect ($3) did, withheld if one of
-- the players' ($4) did. Returns the changes. Erased utterances stay retracted.
WITH settled AS (
    SELECT DISTINCT e.id, e.utterance_id,
           EXISTS (SELECT FROM retracted_talk by
                    WHERE by.campaign_id = $1 AND by.seq = ANY ($3) AND by.session_id = e.session_id
                      AND e.ordinal > by.after_ordinal AND e.ordinal <= by.last_ordinal) OR e.is_erased AS retracted,
           EXISTS (SELECT FROM retracted_talk by
                    WHERE by.campaign_id = $1 AND by.seq = ANY ($4) AND by.session_id = e.session_id
                      AND e.ordinal > by.after_ordinal AND e.ordinal <= by.last_ordinal) AS withheld
      FROM retracted_talk s
      JOIN session_entries e ON e.campaign_id = $1 AND e.session_id = s.session_id
                            AND e.ordinal > s.after_ordinal AND e.ordinal <= s.last_ordinal
     WHERE s.campaign_id = $1 AND s.seq = ANY ($2)
), chunk AS (
    UPDATE chunks c SET retracted = settled.retracted
      FROM settled
     WHERE c.campaign_id = $1 AND c.utterance_id = settled.utterance_id AND c.retracted <> settled.retracted
)
UPDATE session_entries e SET retracted = settled.retracted, withheld = settled.withheld
  FROM settled
 WHERE e.campaign_id = $1 AND e.id = settled.id
   AND (e.retracted, e.withheld) IS DISTINCT FROM (settled.retracted, settled.withheld)
RETURNING e.utterance_id;

-- settle_words --
-- Set the texts $3 of the utterances $2; NULL restores the original. Set the speakers with the ids $4 and names $5; NULL
-- keeps the present one. Their chunks are deleted and embedded again like new ones.
WITH wanted AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
                  AS w (utterance_id, words, speaker_id, speaker_name)
), chunk AS (
    DELETE FROM chunks c USING wanted w WHERE c.campaign_id = $1 AND c.utterance_id = w.utterance_id
)
UPDATE session_entries e
   SET text = coalesce(w.words, e.own_text, e.text),
       own_text = CASE WHEN w.words IS NULL THEN NULL ELSE coalesce(e.own_text, e.text) END,
       speaker_id = coalesce(w.speaker_id, e.speaker_id),
       speaker_name = coalesce(w.speaker_name, e.speaker_name)
  FROM wanted w
 WHERE e.campaign_id = $1 AND e.utterance_id = w.utterance_id AND NOT e.is_erased
RETURNING e.utterance_id;
