-- The utterances that an event was learned from: its source, and those that it sums up. A retraction asks for the events
-- that were learned from an utterance, and used to read all that were learned from talk.

CREATE FUNCTION glyphoxa_sources(source TEXT, payload JSONB) RETURNS TEXT[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array_remove(source || ARRAY(
        SELECT jsonb_array_elements_text(payload #> '{attributes,evidence}')
         WHERE jsonb_typeof(payload #> '{attributes,evidence}') = 'array'), NULL)
$$;

ALTER TABLE world_events ADD COLUMN sources TEXT[] NOT NULL
    GENERATED ALWAYS AS (glyphoxa_sources(CASE by WHEN 'talk' THEN source_turn_id END,
                                          CASE by WHEN 'talk' THEN payload END)) STORED;
CREATE INDEX idx_world_events_sources ON world_events USING gin (sources);
