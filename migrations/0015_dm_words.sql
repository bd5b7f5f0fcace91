-- What the DM strikes or corrects of the talk, one utterance at a time.

-- What an utterance said before the DM put other words for it: for the record. NULL: nobody did.
ALTER TABLE session_entries ADD COLUMN own_text TEXT;

DROP INDEX idx_world_events_undoing;
CREATE INDEX idx_world_events_undoing ON world_events (campaign_id, seq)
    WHERE event_type IN ('undone', 'rolled_back', 'utterance_struck', 'utterance_corrected');

-- Tables that are being played follow: in their NPCs' prompts and on their pages stands what was said this evening. One
-- notice a transaction, however much it changes.
CREATE FUNCTION glyphoxa_talk_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('glyphoxa_talk', CASE WHEN octet_length(NEW.campaign_id) < 4000
                                            THEN jsonb_build_object('campaign', NEW.campaign_id)::text ELSE '{}' END);
    RETURN NULL;
END $$;
CREATE TRIGGER talk_changed AFTER UPDATE ON session_entries
    FOR EACH ROW WHEN ((OLD.struck, OLD.text) IS DISTINCT FROM (NEW.struck, NEW.text))
    EXECUTE FUNCTION glyphoxa_talk_changed();
