-- put_campaign --
-- The part of a campaign that may be listed without naming it.
INSERT INTO campaigns (id, name, language) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, language = excluded.language, updated_at = now()
    WHERE (campaigns.name, campaigns.language) IS DISTINCT FROM (excluded.name, excluded.language);

-- list_campaigns --
SELECT id, name FROM campaigns ORDER BY id;

-- get_document --
SELECT document::text, seq FROM campaign_documents WHERE campaign_id = $1;

-- loaded_at --
SELECT loaded_at FROM campaign_documents WHERE campaign_id = $1;

-- put_document --
-- $3: the last event of this load, or the last event before if it had none.
INSERT INTO campaign_documents (campaign_id, document, seq)
    VALUES ($1, $2::text::jsonb, coalesce($3, (SELECT max(seq) FROM world_events WHERE campaign_id = $1), 0))
    ON CONFLICT (campaign_id) DO UPDATE SET document = excluded.document, seq = excluded.seq, loaded_at = now();

-- known_secrets --
-- Secrets of imports that somebody knows.
SELECT entity_id, value #>> '{}' AS text, knowers FROM attribute_facts
 WHERE campaign_id = $1 AND origin = 'import' AND attribute = 'secret' AND scope = 'secret';
