-- put_campaign --
INSERT INTO campaigns (id, name, language, document) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, language = excluded.language, document = excluded.document, updated_at = now()
    WHERE (campaigns.name, campaigns.language, campaigns.document)
          IS DISTINCT FROM (excluded.name, excluded.language, excluded.document);

-- get_campaign --
SELECT document FROM campaigns WHERE id = $1;

-- list_campaigns --
SELECT id FROM campaigns ORDER BY id;

-- remove_entities --
-- Those that a file brought and that are no longer in it. Their relationships go with them.
DELETE FROM entities WHERE campaign_id = $1 AND origin = 'campaign_file' AND NOT id = ANY ($2);

-- put_entities --
-- Rows that are equal are left untouched, so that loading the same file again changes nothing.
INSERT INTO entities (campaign_id, id, type, name, aliases, attributes, origin)
    SELECT $1, r.id, r.type, r.name, ARRAY(SELECT jsonb_array_elements_text(r.aliases)), r.attributes, 'campaign_file'
      FROM jsonb_to_recordset($2) AS r (id TEXT, type TEXT, name TEXT, aliases JSONB, attributes JSONB)
    ON CONFLICT (campaign_id, id) DO UPDATE
    SET type = excluded.type, name = excluded.name, aliases = excluded.aliases, attributes = excluded.attributes,
        origin = excluded.origin, updated_at = now()
    WHERE (entities.type, entities.name, entities.aliases, entities.attributes, entities.origin)
          IS DISTINCT FROM
          (excluded.type, excluded.name, excluded.aliases, excluded.attributes, excluded.origin);

-- remove_relationships --
DELETE FROM relationships d
 WHERE d.campaign_id = $1 AND d.origin = 'campaign_file'
   AND NOT EXISTS (
       SELECT FROM jsonb_to_recordset($2) AS r (source TEXT, target TEXT, type TEXT)
        WHERE r.source = d.source_id AND r.target = d.target_id AND r.type = d.rel_type);

-- put_relationships --
INSERT INTO relationships (campaign_id, source_id, target_id, rel_type, attributes, provenance, origin)
    SELECT $1, r.source, r.target, r.type, r.attributes, r.provenance, 'campaign_file'
      FROM jsonb_to_recordset($2) AS r (source TEXT, target TEXT, type TEXT, attributes JSONB, provenance JSONB)
    ON CONFLICT (campaign_id, source_id, target_id, rel_type) DO UPDATE
    SET attributes = excluded.attributes, provenance = excluded.provenance, origin = excluded.origin
    WHERE (relationships.attributes, relationships.provenance, relationships.origin)
          IS DISTINCT FROM (excluded.attributes, excluded.provenance, excluded.origin);

-- entities --
-- All of a campaign, or those of one type ($2 not null). Served by idx_entities_type.
SELECT id, type, name, aliases, attributes
  FROM entities
 WHERE campaign_id = $1 AND ($2::text IS NULL OR type = $2)
 ORDER BY type, name, id;

-- entity --
SELECT id, type, name, aliases, attributes FROM entities WHERE campaign_id = $1 AND id = $2;

-- neighbours --
-- What an entity is directly related to, either way. A relation of $3 holds both ways and is stored both ways:
-- it is told once, as going out. Served by idx_rel_source and idx_rel_target.
SELECT r.source_id, r.target_id, r.rel_type, r.attributes AS rel_attributes, r.provenance,
       n.id, n.type, n.name, n.aliases, n.attributes
  FROM relationships r
  JOIN entities n
    ON n.campaign_id = r.campaign_id AND n.id = CASE WHEN r.source_id = $2 THEN r.target_id ELSE r.source_id END
 WHERE r.campaign_id = $1
   AND (r.source_id = $2 OR (r.target_id = $2 AND NOT r.rel_type = ANY ($3)))
 ORDER BY r.rel_type, n.name, n.id;
