-- Talk that was erased: its row stays, without words and without who said them, so that ordinals have no gap.
ALTER TABLE session_entries ADD COLUMN is_erased BOOLEAN NOT NULL DEFAULT FALSE;

-- The log is only added to, but for the words of what was erased: who takes these out says so for one transaction.
CREATE OR REPLACE FUNCTION glyphoxa_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('glyphoxa.erasing', true) = 'on' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% is only added to', TG_TABLE_NAME;
END $$;
