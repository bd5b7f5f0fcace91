-- custom_plans --
-- A plan made while the tables were empty reads a whole campaign for each block, and stays in use until they are
-- analyzed: 400 relations a second instead of some thousands.
SET LOCAL plan_cache_mode = force_custom_plan;

-- analyze --
-- The server does this itself, but minutes later, and until then plans for seemingly empty tables.
ANALYZE (SKIP_LOCKED) entities, relationships, attribute_facts, fact_supports, fact_history, world_events;

-- new_campaign --
INSERT INTO campaigns (id, name, language)
    SELECT $2, $3, language FROM campaigns WHERE id = $1
    ON CONFLICT (id) DO NOTHING
    RETURNING id;

-- copy_rows --
SELECT glyphoxa_copy_rows($1::text::regclass, $2, $3);

-- fork_document --
-- A campaign's document contains its id.
UPDATE campaign_documents
   SET document = document || jsonb_build_object('id', $1::text, 'name', $2::text)
 WHERE campaign_id = $1;
