-- new_campaign --
INSERT INTO campaigns (id, name, language)
    SELECT $2, $3, language FROM campaigns WHERE id = $1
    ON CONFLICT (id) DO NOTHING
    RETURNING id;

-- copy_rows --
SELECT glyphoxa_copy_rows($1::text::regclass, $2, $3);

-- fork_document --
-- A campaign's document says whose it is.
UPDATE campaign_documents
   SET document = document || jsonb_build_object('id', $1::text, 'name', $2::text)
 WHERE campaign_id = $1;
