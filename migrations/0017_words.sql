-- One word a thing: an utterance has an ordinal in its session (the floor is the right to speak), what was taken out of
-- the talk is retracted, and each change of talk has a number in the sequence of changes.

ALTER TABLE session_entries RENAME COLUMN floor TO ordinal;
ALTER TABLE session_entries RENAME COLUMN struck TO retracted;
ALTER TABLE session_entries RENAME COLUMN mark TO change_seq;
ALTER TABLE sessions RENAME COLUMN last_floor TO last_ordinal;
ALTER TABLE chunks RENAME COLUMN struck TO retracted;
ALTER TABLE world_events RENAME COLUMN floor TO ordinal;
ALTER TABLE struck_talk RENAME TO retracted_talk;
ALTER TABLE retracted_talk RENAME COLUMN after_floor TO after_ordinal;
ALTER TABLE retracted_talk RENAME COLUMN last_floor TO last_ordinal;
ALTER TABLE retracted_talk RENAME CONSTRAINT struck_talk_pkey TO retracted_talk_pkey;
ALTER TABLE retracted_talk RENAME CONSTRAINT struck_talk_campaign_id_fkey TO retracted_talk_campaign_id_fkey;
ALTER VIEW utterances RENAME COLUMN floor TO ordinal;
ALTER VIEW utterances RENAME COLUMN struck TO retracted;
ALTER INDEX idx_session_entries_floor RENAME TO idx_session_entries_ordinal;
ALTER INDEX idx_session_entries_mark RENAME TO idx_session_entries_change_seq;
ALTER INDEX idx_world_events_floor RENAME TO idx_world_events_ordinal;
ALTER SEQUENCE talk_marks RENAME TO talk_changes;

DROP TRIGGER mark_talk ON session_entries;
DROP TRIGGER marks_go_on ON session_entries;
DROP FUNCTION glyphoxa_mark_talk();
DROP FUNCTION glyphoxa_marks_go_on();

CREATE FUNCTION glyphoxa_number_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM glyphoxa_lock_talk(NEW.campaign_id);
    NEW.change_seq := nextval('talk_changes');
    RETURN NEW;
END $$;
CREATE TRIGGER number_change BEFORE INSERT OR UPDATE ON session_entries
    FOR EACH ROW EXECUTE FUNCTION glyphoxa_number_change();

-- See 0013: the sequence goes on behind all that the campaign has.
CREATE FUNCTION glyphoxa_numbers_go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Not `setval`: this needs no further right, and nobody who does the same at once can put it back.
    PERFORM nextval('talk_changes')
       FROM generate_series((SELECT last_value FROM talk_changes) + 1,
                            (SELECT max(change_seq) FROM session_entries
                              WHERE campaign_id = current_setting('glyphoxa.campaign', true)));
    RETURN NULL;
END $$;
CREATE TRIGGER numbers_go_on BEFORE INSERT OR UPDATE ON session_entries
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_numbers_go_on();

-- The same words inside the events and in what follows from them. What happened stays as it was; an ordinary owner sees
-- one campaign at a time.
ALTER TABLE world_events DISABLE TRIGGER world_events_append_only;
DO $$
DECLARE
    before   TEXT := current_setting('glyphoxa.campaign', true);
    campaign TEXT;
BEGIN
    FOR campaign IN SELECT id FROM campaigns LOOP
        PERFORM set_config('glyphoxa.campaign', campaign, true);
        UPDATE world_events SET event_type = 'utterance_retracted'
         WHERE campaign_id = campaign AND event_type = 'utterance_struck';
        UPDATE world_events SET payload = payload - 'floor' || jsonb_build_object('ordinal', payload -> 'floor')
         WHERE campaign_id = campaign AND payload ? 'floor';
        UPDATE world_events
           SET payload = jsonb_set(payload #- '{provenance,floor}', '{provenance,ordinal}',
                                   payload #> '{provenance,floor}')
         WHERE campaign_id = campaign AND payload -> 'provenance' ? 'floor';
        UPDATE relationships
           SET provenance = provenance - 'floor' || jsonb_build_object('ordinal', provenance -> 'floor')
         WHERE campaign_id = campaign AND provenance ? 'floor';
        UPDATE attribute_facts
           SET provenance = provenance - 'floor' || jsonb_build_object('ordinal', provenance -> 'floor')
         WHERE campaign_id = campaign AND provenance ? 'floor';
        UPDATE fact_history
           SET provenance = provenance - 'floor' || jsonb_build_object('ordinal', provenance -> 'floor')
         WHERE campaign_id = campaign AND provenance ? 'floor';
    END LOOP;
    PERFORM set_config('glyphoxa.campaign', coalesce(before, ''), true);
END $$;
ALTER TABLE world_events ENABLE TRIGGER world_events_append_only;

DROP INDEX idx_world_events_undoing;
CREATE INDEX idx_world_events_undoing ON world_events (campaign_id, seq)
    WHERE event_type IN ('undone', 'rolled_back', 'utterance_retracted', 'utterance_corrected');
