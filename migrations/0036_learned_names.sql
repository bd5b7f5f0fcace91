-- A step in the history of a wrong form of a name is an event of the world: it is undone, taken back with its utterance
-- and erased as events are. The status of a form is derived from its events, so that it needs no table.

CREATE INDEX idx_world_events_forms ON world_events (campaign_id, seq) WHERE event_type = 'form_heard';

-- How often a form was heard again for a name, beyond its events.
CREATE TABLE form_counts (
    campaign_id TEXT   NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
    heard       TEXT   NOT NULL,
    entity_id   TEXT   NOT NULL,
    n           INT    NOT NULL,
    utterances  TEXT[] NOT NULL DEFAULT '{}',        -- the last twenty
    PRIMARY KEY (campaign_id, heard, entity_id)
);
SELECT glyphoxa_isolate();

-- Append steps as they were stored until now (rows of `learned_name_events`) to the log of a campaign, and store the
-- counts (rows of `learned_names`). Evidence from utterances that are retracted or were corrected did not count: it is
-- undone. Also for bundles of earlier releases.
CREATE FUNCTION glyphoxa_forms_as_events(campaign TEXT, steps JSONB, pairs JSONB) RETURNS VOID LANGUAGE sql AS $$
    WITH old AS (
        SELECT s.*, e.session_id, e.ordinal, s.kind IN ('proved', 'disproved') AS is_evidence,
               s.kind IN ('proved', 'disproved') AND (e.retracted OR e.own_text IS NOT NULL) AS is_gone,
               (SELECT coalesce(max(seq), 0) FROM world_events WHERE campaign_id = campaign)
                   + row_number() OVER (ORDER BY s.id) AS seq
          FROM jsonb_to_recordset(steps)
            AS s (id BIGINT, heard TEXT, as_heard TEXT, entity_id TEXT, kind TEXT, witness TEXT, why TEXT,
                  utterance_id TEXT, is_ordinary BOOLEAN, undoes BIGINT, at TIMESTAMPTZ)
          LEFT JOIN session_entries e ON e.campaign_id = campaign AND e.utterance_id = s.utterance_id
    )
    INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by, session_id, ordinal, source_turn_id)
    SELECT campaign, o.seq, 'form_heard',
           jsonb_build_object('heard', o.heard, 'as_heard', o.as_heard, 'entity', o.entity_id, 'kind', o.kind,
                              'by', o.witness, 'why', coalesce(o.why, ''), 'utterance', o.utterance_id,
                              'is_ordinary', coalesce(o.is_ordinary, false)),
           o.at, CASE WHEN o.is_evidence THEN 'talk' ELSE 'dm' END,
           CASE WHEN o.is_evidence THEN o.session_id END, CASE WHEN o.is_evidence THEN o.ordinal END, o.utterance_id
      FROM old o
     WHERE o.kind <> 'undone'
    UNION ALL
    SELECT campaign, o.seq, 'undone', jsonb_build_object('event', undone.seq), o.at, 'dm', NULL, NULL, NULL
      FROM old o
      LEFT JOIN old undone ON undone.id = o.undoes
     WHERE o.kind = 'undone'
    UNION ALL
    SELECT campaign, (SELECT max(seq) FROM old) + row_number() OVER (ORDER BY o.seq), 'undone',
           jsonb_build_object('event', o.seq), o.at, 'talk', NULL, NULL, NULL
      FROM old o
     WHERE o.is_gone;

    INSERT INTO form_counts (campaign_id, heard, entity_id, n, utterances)
    SELECT campaign, p.heard, p.entity_id, (p.provenance ->> 'again')::int,
           ARRAY(SELECT jsonb_array_elements_text(p.provenance -> 'utterances'))
      FROM jsonb_to_recordset(pairs) AS p (heard TEXT, entity_id TEXT, provenance JSONB)
     WHERE p.provenance ? 'again';
$$;

-- An ordinary owner sees one campaign at a time.
DO $$
DECLARE
    before   TEXT := current_setting('glyphoxa.campaign', true);
    campaign TEXT;
BEGIN
    FOR campaign IN SELECT id FROM campaigns LOOP
        PERFORM set_config('glyphoxa.campaign', campaign, true);
        PERFORM glyphoxa_forms_as_events(
            campaign,
            (SELECT coalesce(jsonb_agg(to_jsonb(e)), '[]') FROM learned_name_events e WHERE e.campaign_id = campaign),
            (SELECT coalesce(jsonb_agg(to_jsonb(p)), '[]') FROM learned_names p WHERE p.campaign_id = campaign));
    END LOOP;
    PERFORM set_config('glyphoxa.campaign', coalesce(before, ''), true);
END $$;

DROP TABLE learned_names, learned_name_events;
