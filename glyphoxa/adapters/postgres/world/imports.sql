-- one_at_a_time --
-- Whether no other transaction imports this source; until the end of this one.
SELECT pg_try_advisory_xact_lock(hashtextextended('import ' || $1 || ' ' || $2, 0));

-- lock --
-- One decision about imports of a campaign at a time, until the end of this transaction.
SELECT pg_advisory_xact_lock(hashtextextended('imports ' || $1, 0));

-- put_source --
INSERT INTO import_sources (campaign_id, source, name, remarks) VALUES ($1, $2, $3, $4)
    ON CONFLICT (campaign_id, source) DO UPDATE SET name = excluded.name, remarks = excluded.remarks;

-- known --
SELECT key, name, digest, decision, accepted_digest FROM import_documents WHERE campaign_id = $1 AND source = $2;

-- put_documents --
-- $3: documents as JSON, $4 their digests, $5 the decisions about them. The DM's edits stay.
INSERT INTO import_documents AS old (campaign_id, source, key, name, type, kind, folders, document, digest, decision)
    SELECT $1, $2, d ->> 'key', d ->> 'name', d ->> 'type', d ->> 'kind',
           ARRAY(SELECT jsonb_array_elements_text(d -> 'folders')), d, given.digest, given.decision
      FROM unnest($3::text[], $4::text[], $5::text[]) AS given (document, digest, decision)
     CROSS JOIN LATERAL CAST(given.document AS jsonb) AS d
    ON CONFLICT (campaign_id, source, key) DO UPDATE
    SET name = coalesce(old.edit ->> 'name', excluded.name), type = coalesce(old.edit ->> 'type', excluded.type),
        kind = excluded.kind, folders = excluded.folders, document = excluded.document, digest = excluded.digest,
        decision = excluded.decision
    WHERE (old.document, old.decision) IS DISTINCT FROM (excluded.document, excluded.decision);

-- groups --
SELECT source, kind, type, coalesce(folders[1], '') AS folder, count(*) AS n
  FROM import_documents
 WHERE campaign_id = $1 AND decision = 'waiting'
 GROUP BY 1, 2, 3, 4
 ORDER BY n DESC, 1, 2, 3, 4;

-- total --
SELECT count(*) FROM import_documents WHERE campaign_id = $1;

-- count --
-- Parameters as in `select`.
SELECT count(*) FROM import_documents
 WHERE campaign_id = $1 AND decision = $2 AND ($3 = '' OR source = $3) AND (cardinality($4::text[]) = 0 OR key = ANY ($4))
   AND ($5 = '' OR lower(type) = lower($5)) AND ($6 = '' OR lower(kind) = lower($6))
   AND ($7 = '' OR lower($7) = '/' || lower(coalesce(folders[1], ''))
        OR lower($7) = ANY (SELECT lower(f) FROM unnest(folders) AS f));

-- select --
-- Documents with decision $2 that match a selection; '' and an empty array match all.
SELECT source, key, document::text, edit, accepted::text, entity, is_own
  FROM import_documents
 WHERE campaign_id = $1 AND decision = $2 AND ($3 = '' OR source = $3) AND (cardinality($4::text[]) = 0 OR key = ANY ($4))
   AND ($5 = '' OR lower(type) = lower($5)) AND ($6 = '' OR lower(kind) = lower($6))
   AND ($7 = '' OR lower($7) = '/' || lower(coalesce(folders[1], ''))
        OR lower($7) = ANY (SELECT lower(f) FROM unnest(folders) AS f))
 ORDER BY source, type, lower(name), key
OFFSET $8 LIMIT $9;

-- decide --
-- $2 sources, $3 keys: the decision is $4 from now on.
UPDATE import_documents d SET decision = $4
  FROM unnest($2::text[], $3::text[]) AS given (source, key)
 WHERE d.campaign_id = $1 AND d.source = given.source AND d.key = given.key;

-- edit --
-- $4: the changed parts.
UPDATE import_documents d
   SET edit = d.edit || $4, name = coalesce($4 ->> 'name', d.name), type = coalesce($4 ->> 'type', d.type)
  FROM unnest($2::text[], $3::text[]) AS given (source, key)
 WHERE d.campaign_id = $1 AND d.source = given.source AND d.key = given.key;

-- accept --
UPDATE import_documents d
   SET decision = 'accepted', accepted = given.accepted::jsonb, accepted_digest = d.digest, entity = given.entity,
       is_own = given.is_own
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bool[])
       AS given (source, key, accepted, entity, is_own)
 WHERE d.campaign_id = $1 AND d.source = given.source AND d.key = given.key;

-- accepted --
-- All documents of these sources that were ever accepted, as they were then.
SELECT source, key, accepted::text AS document, '{}'::jsonb AS edit, accepted::text, entity, is_own
  FROM import_documents
 WHERE campaign_id = $1 AND source = ANY ($2) AND accepted IS NOT NULL
 ORDER BY source, key;

-- entities --
SELECT id, type, name, aliases FROM entities WHERE campaign_id = $1;

-- documents_of --
-- Also those of entities that were merged into this one. Served by idx_import_documents_entity.
WITH RECURSIVE same (id) AS (
    SELECT $2::text
    UNION
    SELECT m.gone_id FROM same s JOIN entity_merges m ON m.campaign_id = $1 AND m.kept_id = s.id
)
SELECT d.source, d.key, d.accepted::text
  FROM same s
  JOIN import_documents d ON d.campaign_id = $1 AND d.entity = s.id AND d.accepted IS NOT NULL
 ORDER BY d.source, d.key;

-- linked --
-- Names of the documents that those of sources $2 and keys $3 link to.
SELECT DISTINCT other.key, other.name
  FROM unnest($2::text[], $3::text[]) AS given (source, key)
  JOIN import_documents d ON d.campaign_id = $1 AND d.source = given.source AND d.key = given.key
 CROSS JOIN LATERAL jsonb_array_elements((d.document -> 'links') || coalesce(d.accepted -> 'links', '[]')) AS link
  JOIN import_documents other
    ON other.campaign_id = $1 AND other.source = d.source AND other.key = link ->> 'target';
