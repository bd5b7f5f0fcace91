-- What each view of a session (the DM's: 'dm', and each NPC's) keeps of it beside its latest lines.

CREATE TABLE session_states (
    campaign_id TEXT        NOT NULL,
    session_id  TEXT        NOT NULL,
    view        TEXT        NOT NULL,
    state       JSONB       NOT NULL,   -- {"summary": [{"text", "evidence": [utterances]}], "glossary": {}, "flags": {},
                                        --  "last_ordinal": of the last utterance that the summary covers}
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (campaign_id, session_id, view)
);

-- Remove the sentences that rest on one of these utterances, from every view and session.
CREATE FUNCTION glyphoxa_drop_sentences(campaign TEXT, gone TEXT[]) RETURNS void LANGUAGE sql AS $$
    UPDATE session_states
       SET state = jsonb_set(state, '{summary}', (
               SELECT coalesce(jsonb_agg(s ORDER BY n), '[]')
                 FROM jsonb_array_elements(state -> 'summary') WITH ORDINALITY AS t (s, n)
                WHERE NOT s -> 'evidence' ?| gone)),
           updated_at = clock_timestamp()
     WHERE campaign_id = campaign
       AND EXISTS (SELECT FROM jsonb_array_elements(state -> 'summary') AS s WHERE s -> 'evidence' ?| gone)
$$;

-- Whatever retracts, erases or rewords an utterance takes the sentences that rest on it with it.
CREATE FUNCTION glyphoxa_said_otherwise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM glyphoxa_drop_sentences(current_setting('glyphoxa.campaign', true), ARRAY (
        SELECT n.utterance_id FROM after_change n JOIN before_change o USING (id)
         WHERE o.text IS DISTINCT FROM n.text OR (n.retracted AND NOT o.retracted)));
    RETURN NULL;
END $$;
CREATE TRIGGER said_otherwise AFTER UPDATE ON session_entries
    REFERENCING OLD TABLE AS before_change NEW TABLE AS after_change
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_said_otherwise();

SELECT glyphoxa_isolate();
