-- campaign --
SELECT name, language FROM campaigns WHERE id = $1;

-- utc --
-- Times are written in the session's zone: always use the same one.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true);

-- columns --
-- The columns of a row, without the campaign and generated columns.
SELECT a.attname AS name, t.typname AS type, a.attnotnull AS needed,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required, a.atttypmod AS size
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
   AND a.attname <> 'campaign_id'
 ORDER BY a.attnum;

-- key --
-- Sort texts by their bytes: databases have different collations.
SELECT 't.' || quote_ident(a.attname) || CASE WHEN a.atttypid = 'text'::regtype THEN ' COLLATE "C"' ELSE '' END
  FROM pg_index i
 CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
 WHERE i.indrelid = $1::text::regclass AND i.indisprimary AND a.attname <> 'campaign_id'
 ORDER BY k.place;

-- new_campaign --
INSERT INTO campaigns (id, name, language) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING RETURNING id;

-- rename_document --
UPDATE campaign_documents SET document = document || jsonb_build_object('id', $1::text) WHERE campaign_id = $1;

-- enter --
-- The campaign whose rows are visible, until the end of the transaction or savepoint.
SELECT set_config('glyphoxa.campaign', $1, true);

-- now --
SELECT now();

-- document --
SELECT document FROM campaign_documents WHERE campaign_id = $1;

-- sessions --
SELECT array_agg(id), array_agg(last_ordinal) FROM sessions WHERE campaign_id = $1 AND last_ordinal > 0;

-- mark_read --
INSERT INTO chronicle_progress (campaign_id, session_id, read_ordinal)
    SELECT $1, s.id, s.last_ordinal FROM unnest($2::text[], $3::bigint[]) AS s (id, last_ordinal);

-- utterance --
-- The utterance with the ordinal $3 of the session $2; NULL: the newest.
SELECT session_id, ordinal, utterance_id, timestamp
  FROM session_entries
 WHERE campaign_id = $1 AND NOT retracted AND ($2::text IS NULL OR (session_id = $2 AND ordinal = $3::bigint))
 ORDER BY timestamp DESC, id DESC
 LIMIT 1;

-- stage --
-- The rows of a bundle as they are read, in any order of tables.
CREATE TEMPORARY TABLE bundle_rows (
    table_name TEXT NOT NULL,
    at         BIGINT NOT NULL,                 -- its place in its table, from 0
    row        TEXT NOT NULL,                   -- JSON: a row that cannot be stored is refused with its place
    PRIMARY KEY (table_name, at)
) ON COMMIT DROP;

-- forms_as_events --
-- Steps and counts of wrong forms in a bundle of an earlier release.
SELECT glyphoxa_forms_as_events($1, steps.rows, pairs.rows)
  FROM (SELECT coalesce(jsonb_agg(row::jsonb), '[]') AS rows FROM bundle_rows WHERE table_name = 'learned_name_events') steps,
       (SELECT coalesce(jsonb_agg(row::jsonb), '[]') AS rows FROM bundle_rows WHERE table_name = 'learned_names') pairs;
