-- Every change of talk has a mark, so that whoever holds talk in memory reads only what it has not seen yet: new
-- utterances, better words for old ones, what was rolled back or taken up again.

CREATE SEQUENCE talk_marks;

-- Held until the transaction ends: marks of a campaign are given in the order in which its changes are seen by others.
-- Without it a reader at mark 10 could miss 9, which was given before and committed after.
CREATE FUNCTION glyphoxa_lock_talk(campaign TEXT) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtext('glyphoxa talk'), hashtext(campaign))
$$;

ALTER TABLE session_entries ADD COLUMN mark BIGINT NOT NULL DEFAULT nextval('talk_marks');
CREATE INDEX idx_session_entries_mark ON session_entries (campaign_id, mark);

CREATE FUNCTION glyphoxa_mark_talk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM glyphoxa_lock_talk(NEW.campaign_id);
    NEW.mark := nextval('talk_marks');
    RETURN NEW;
END $$;
CREATE TRIGGER mark_talk BEFORE INSERT OR UPDATE ON session_entries
    FOR EACH ROW EXECUTE FUNCTION glyphoxa_mark_talk();
