-- Rows that are copied without their sequence (COPY, logical replication) have marks that it is still to give. Whoever
-- follows the marks would never read what gets one of those: the sequence goes on behind all that the campaign has.

CREATE FUNCTION glyphoxa_marks_go_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Not `setval`: this needs no further right, and nobody who does the same at once can put it back.
    PERFORM nextval('talk_marks')
       FROM generate_series((SELECT last_value FROM talk_marks) + 1,
                            (SELECT max(mark) FROM session_entries
                              WHERE campaign_id = current_setting('glyphoxa.campaign', true)));
    RETURN NULL;
END $$;
CREATE TRIGGER marks_go_on BEFORE INSERT OR UPDATE ON session_entries
    FOR EACH STATEMENT EXECUTE FUNCTION glyphoxa_marks_go_on();
