-- What players do not want to be remembered. A withheld utterance is retracted, too, so that nobody recalls it; but only
-- its player gives consent again, whatever the game master retracts or restores.

ALTER TABLE session_entries ADD COLUMN withheld BOOLEAN NOT NULL DEFAULT FALSE;

CREATE OR REPLACE VIEW utterances WITH (security_invoker = true) AS
    SELECT e.campaign_id, e.id, e.session_id, e.ordinal, e.utterance_id, e.speaker_id, e.speaker_name, e.text, e.raw_text,
           e.npc_id, e.timestamp, e.duration_ns, e.witnesses, e.retracted, e.fts, e.names,
           (SELECT jsonb_agg(jsonb_build_object('start', c.start_char, 'end', c.end_char, 'before', c.before,
                                                'after', c.after, 'score', c.score, 'stage', c.stage,
                                                'reason', c.reason) ORDER BY c.start_char, c.ordinal)
              FROM corrections c
             WHERE c.campaign_id = e.campaign_id AND c.utterance_id = e.utterance_id) AS corrections, e.withheld
      FROM session_entries e;

DROP INDEX idx_world_events_undoing;
CREATE INDEX idx_world_events_undoing ON world_events (campaign_id, seq)
    WHERE event_type IN ('undone', 'rolled_back', 'utterance_retracted', 'utterance_withheld', 'utterance_corrected');

-- An NPC's answer may repeat what it answers. It belongs to the withheld utterance just before it, also if it comes
-- later, and returns with it.
CREATE FUNCTION glyphoxa_withhold_answer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM session_entries e
                WHERE e.campaign_id = NEW.campaign_id AND e.session_id = NEW.session_id
                  AND e.ordinal = NEW.ordinal - 1 AND e.withheld) THEN
        UPDATE retracted_talk r SET last_ordinal = NEW.ordinal
          FROM world_events w
         WHERE r.campaign_id = NEW.campaign_id AND r.session_id = NEW.session_id AND r.last_ordinal = NEW.ordinal - 1
           AND w.campaign_id = NEW.campaign_id AND w.seq = r.seq AND w.event_type = 'utterance_withheld';
        NEW.withheld := TRUE;
        NEW.retracted := TRUE;
        PERFORM pg_notify('glyphoxa_talk', CASE WHEN octet_length(NEW.campaign_id) < 4000
                                                THEN jsonb_build_object('campaign', NEW.campaign_id)::text
                                                ELSE '{}' END);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER withhold_answer BEFORE INSERT ON session_entries
    FOR EACH ROW WHEN (NEW.npc_id <> '' AND NOT NEW.withheld) EXECUTE FUNCTION glyphoxa_withhold_answer();

-- Entities and facts that are gone because what they rest on is withheld. They return with consent. For the game master:
-- nobody else may see them. `node_id` is that of the entity, or of the fact's subject.
CREATE VIEW withheld_knowledge WITH (security_invoker = true) AS
    SELECT DISTINCT ON (w.campaign_id, w.seq)
           w.campaign_id, w.session_id, w.seq, w.at AS created_at, e.utterance_id,
           CASE w.event_type WHEN 'entity_added' THEN 'entity' ELSE 'fact' END AS kind,
           coalesce(w.payload ->> 'entity', w.payload #>> '{claim,subject}') AS node_id,
           w.payload ->> 'type' AS node_type, w.payload ->> 'name' AS name,
           w.payload #>> '{claim,predicate}' AS predicate, w.payload #>> '{claim,object}' AS object_id,
           w.payload #>> '{claim,value}' AS value, 'withheld'::text AS consent_state
      FROM session_entries e
      JOIN world_events t ON t.campaign_id = e.campaign_id AND t.event_type = 'utterance_withheld'
                         AND t.payload ->> 'utterance' = e.utterance_id
     CROSS JOIN LATERAL jsonb_array_elements_text(t.payload -> 'events') AS d (seq)
      JOIN world_events w ON w.campaign_id = e.campaign_id AND w.seq = d.seq::bigint
                         AND w.event_type IN ('entity_added', 'fact_stated')
     WHERE e.withheld
       AND NOT EXISTS (SELECT FROM entities n
                        WHERE n.campaign_id = w.campaign_id AND n.id = w.payload ->> 'entity')
       AND NOT EXISTS (SELECT FROM facts f
                        WHERE f.campaign_id = w.campaign_id AND f.subject_id = w.payload #>> '{claim,subject}'
                          AND f.predicate = w.payload #>> '{claim,predicate}'
                          AND f.object_id IS NOT DISTINCT FROM w.payload #>> '{claim,object}'
                          AND f.value IS NOT DISTINCT FROM (w.payload #>> '{claim,value}')::jsonb);
COMMENT ON VIEW withheld_knowledge IS 'Entities and facts that rest only on utterances whose player does not want them remembered.';

SELECT glyphoxa_isolate();
