-- campaign --
SELECT name, language FROM campaigns WHERE id = $1;

-- utc --
-- Times are written in the session's zone: always use the same one.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true);

-- columns --
-- The columns of a row, without the campaign and generated columns.
SELECT a.attname AS name, t.typname AS type, a.attnotnull AS needed,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required
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

-- next_numbers --
-- Reserve numbers of a table's sequence, in ascending order.
SELECT array_agg(n ORDER BY n)
  FROM (SELECT nextval($1::text::regclass) AS n FROM generate_series(1, $2::int)) AS given;

-- identity --
SELECT pg_get_serial_sequence($1, 'id');

-- rename_document --
UPDATE campaign_documents SET document = document || jsonb_build_object('id', $1::text) WHERE campaign_id = $1;
