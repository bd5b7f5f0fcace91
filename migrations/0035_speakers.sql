-- Another speaker of an utterance counts like other words: open tables follow, and it is read again.
DROP TRIGGER talk_changed ON session_entries;
CREATE TRIGGER talk_changed AFTER UPDATE ON session_entries
    FOR EACH ROW WHEN ((OLD.retracted, OLD.text, OLD.speaker_id) IS DISTINCT FROM (NEW.retracted, NEW.text, NEW.speaker_id))
    EXECUTE FUNCTION glyphoxa_talk_changed();

DROP TRIGGER reread ON session_entries;
CREATE TRIGGER reread AFTER UPDATE OF text ON session_entries
    FOR EACH ROW WHEN ((OLD.text, OLD.speaker_id) IS DISTINCT FROM (NEW.text, NEW.speaker_id))
    EXECUTE FUNCTION glyphoxa_reread();

DROP TRIGGER atom_reworded ON session_entries;
CREATE TRIGGER atom_reworded AFTER UPDATE OF text ON session_entries
    FOR EACH ROW WHEN ((OLD.text, OLD.speaker_id) IS DISTINCT FROM (NEW.text, NEW.speaker_id))
    EXECUTE FUNCTION glyphoxa_atom_reworded();

CREATE OR REPLACE FUNCTION glyphoxa_said_otherwise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM glyphoxa_drop_sentences(current_setting('glyphoxa.campaign', true), ARRAY (
        SELECT n.utterance_id FROM after_change n JOIN before_change o USING (id)
         WHERE (o.text, o.speaker_id) IS DISTINCT FROM (n.text, n.speaker_id) OR (n.retracted AND NOT o.retracted)));
    RETURN NULL;
END $$;
