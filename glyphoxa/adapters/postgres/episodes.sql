-- written --
-- Events about the session $2 as a whole. Served by idx_world_events_ordinal.
SELECT seq FROM world_events
 WHERE campaign_id = $1 AND by = 'talk' AND session_id = $2 AND ordinal IS NULL AND event_type <> 'undone'
 ORDER BY seq;

-- outdated --
-- What states sums with a line that the DM has rejected, reworded, removed or hidden since, in a node of a lower tier.
WITH told AS (
    SELECT seq, NULL::bigint AS ended_seq, scope = 'hidden' AS is_hidden, attributes -> 'evidence' AS lines,
           coalesce(substring(subject_id FROM '\+(\d+)$')::int, 0) AS tier,
           (provenance ->> 'dm_confirmed')::boolean AS is_by_dm
      FROM facts WHERE campaign_id = $1 AND subject_id LIKE $2 || '-%#%' AND predicate = 'summary'
     UNION ALL
    SELECT seq, ended_seq, FALSE, attributes -> 'evidence', coalesce(substring(subject_id FROM '\+(\d+)$')::int, 0), FALSE
      FROM fact_history WHERE campaign_id = $1 AND subject_id LIKE $2 || '-%#%' AND predicate = 'summary'
)
SELECT DISTINCT sum.seq
  FROM told sum
 CROSS JOIN LATERAL jsonb_array_elements_text(sum.lines) AS said (line)
  JOIN told node ON (node.ended_seq IS NOT NULL OR node.is_hidden) AND node.tier < sum.tier AND node.lines ? line
 WHERE sum.ended_seq IS NULL AND sum.is_by_dm IS NOT TRUE
   AND (node.ended_seq > sum.seq
        OR (node.is_hidden AND NOT EXISTS (SELECT FROM told other
                                            WHERE other.tier < sum.tier AND other.lines ? line
                                              AND other.ended_seq IS NULL AND NOT other.is_hidden)));

-- rests_on_changed --
-- Whether one of the utterances $2 has been retracted, withheld or erased, or has another text or speaker by now.
SELECT EXISTS (SELECT FROM jsonb_to_recordset($2) AS said (id TEXT, text TEXT, speaker TEXT)
                 JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = said.id
                WHERE e.retracted OR e.text <> said.text OR e.speaker_name <> said.speaker);

-- nodes --
-- The entities of sessions and of the timeline's nodes, whose ids begin with $2. Served by the entities' primary key.
SELECT id, scope, knowers, known_how FROM entities WHERE campaign_id = $1 AND id LIKE $2 || '-%';

-- decided --
-- Those on which the DM has decided: on the words, on who may know them, or that there are none. A summary that ended
-- was rejected, reworded, removed or merged. With the number of the DM's event for what lost its words since, because
-- one of their lines was taken back: it stays removed and hidden unless that event was undone.
SELECT gone_id AS id, NULL::bigint AS seq FROM entity_merges WHERE campaign_id = $1 AND gone_id LIKE $2 || '-%'
 UNION
SELECT subject_id, NULL FROM fact_history
 WHERE campaign_id = $1 AND subject_id LIKE $2 || '-%' AND predicate = 'summary'
 UNION
SELECT id, NULL FROM entities WHERE campaign_id = $1 AND id LIKE $2 || '-%' AND scope IN ('hidden', 'secret')
 UNION
SELECT f.subject_id, NULL
  FROM facts f
  JOIN entities e ON e.campaign_id = $1 AND e.id = f.subject_id
 WHERE f.campaign_id = $1 AND f.subject_id LIKE $2 || '-%' AND f.predicate = 'summary'
   AND (f.origin <> 'talk' OR (f.provenance ->> 'dm_confirmed')::boolean OR f.scope <> 'witnessed'
        OR e.scope <> 'witnessed')
 UNION
SELECT payload ->> 'entity', seq FROM world_events
 WHERE campaign_id = $1 AND by = 'dm' AND event_type = 'entity_removed' AND payload ->> 'entity' LIKE $2 || '-%'
 UNION
SELECT said.node, hid.seq
  FROM world_events hid
  JOIN (SELECT payload #>> '{claim,subject}' AS node, payload #>> '{claim,value}' AS words FROM world_events
         WHERE campaign_id = $1 AND by = 'talk' AND event_type = 'fact_stated'
           AND payload #>> '{claim,subject}' LIKE $2 || '-%' AND payload #>> '{claim,predicate}' = 'summary') AS said
    -- `Claim.fact_id` of a summary.
    ON hid.payload ->> 'fact'
       = left(encode(sha256(convert_to(concat_ws(E'\x1f', node, 'summary', '', words), 'UTF8')), 'hex'), 16)
 WHERE hid.campaign_id = $1 AND hid.by = 'dm' AND hid.event_type = 'fact_scoped'
   AND hid.payload #>> '{visibility,scope}' IN ('hidden', 'secret');

-- timeline --
-- What sessions and nodes tell the viewer $4, and which node sums them up, which is the relation $3.
SELECT * FROM facts
 WHERE campaign_id = $1 AND subject_id LIKE $2 || '-%' AND predicate IN ('summary', 'floor', $3)
   AND glyphoxa_may_know($4, status, scope, knowers)
 ORDER BY seq;
