-- summaries --
-- The stored summary of the session whose entity is $2. Served by idx_attribute_facts_entity.
SELECT * FROM facts WHERE campaign_id = $1 AND subject_id = $2 AND predicate = 'summary' AND object_id IS NULL;

-- is_decided --
-- Whether the DM has decided on the summary of the session whose entity is $2: on its words, on who may know it, or that
-- there is none. Served by idx_attribute_facts_entity and idx_fact_history_subject.
SELECT EXISTS (SELECT FROM facts f
                 JOIN entities e ON e.campaign_id = $1 AND e.id = $2
                WHERE f.campaign_id = $1 AND f.subject_id = $2 AND f.predicate = 'summary'
                  AND (f.origin <> 'talk' OR (f.provenance ->> 'dm_confirmed')::boolean
                       OR f.scope <> 'witnessed' OR e.scope <> 'witnessed'))
    OR EXISTS (SELECT FROM fact_history
                WHERE campaign_id = $1 AND subject_id = $2 AND predicate = 'summary' AND ended_as = 'entity_removed');

-- written --
-- Events about the session $2 as a whole. Served by idx_world_events_ordinal.
SELECT seq FROM world_events
 WHERE campaign_id = $1 AND by = 'talk' AND session_id = $2 AND ordinal IS NULL AND event_type <> 'undone'
 ORDER BY seq;

-- rests_on_retracted --
-- Whether one of the utterances $2 has been retracted, withheld or erased.
SELECT EXISTS (SELECT FROM session_entries WHERE campaign_id = $1 AND utterance_id = ANY ($2) AND retracted);

-- nodes --
-- The entities of the timeline's nodes: of ids that begin with $2 and contain '#'. Served by the entities' primary key.
SELECT id, scope, knowers, known_how FROM entities WHERE campaign_id = $1 AND id LIKE $2 || '-%#%';

-- gone --
-- The nodes that were removed or merged into other entities. Served by the key of entity_merges and
-- idx_fact_history_subject.
SELECT gone_id AS id FROM entity_merges WHERE campaign_id = $1 AND gone_id LIKE $2 || '-%#%'
 UNION
SELECT h.subject_id FROM fact_history h
 WHERE h.campaign_id = $1 AND h.subject_id LIKE $2 || '-%#%' AND h.predicate = 'summary' AND h.ended_as = 'entity_removed'
   AND NOT EXISTS (SELECT FROM entities e WHERE e.campaign_id = $1 AND e.id = h.subject_id);

-- timeline --
-- What the nodes tell the viewer $4, and which node sums them up, which is the relation $3.
SELECT * FROM facts
 WHERE campaign_id = $1 AND subject_id LIKE $2 || '-%#%' AND predicate IN ('summary', 'floor', $3)
   AND status = 'accepted' AND glyphoxa_may_know($4, status, scope, knowers)
 ORDER BY seq;
