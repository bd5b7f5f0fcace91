-- is_superuser --
SELECT rolsuper FROM pg_roles WHERE rolname = current_user;

-- has_role --
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'glyphoxa_app');

-- has_all --
-- Whether this server and database have the grants of `0008_isolation.sql`: a backup contains neither roles nor grants
-- on the server's own functions, and may be restored without privileges.
SELECT (SELECT bool_and(proleakproof) FROM pg_proc
         WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ('ts_match_vq', 'arraycontains', 'arrayoverlap'))
   AND NOT EXISTS (
       SELECT FROM pg_class c, unnest(CASE c.relkind WHEN 'S' THEN '{USAGE,SELECT}'::text[]
                                      ELSE '{SELECT,INSERT,UPDATE,DELETE}' END) AS wanted
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')
          AND NOT CASE c.relkind WHEN 'S' THEN has_sequence_privilege('glyphoxa_app', c.oid, wanted)
                  ELSE has_table_privilege('glyphoxa_app', c.oid, wanted) END);

-- give --
DO $$ BEGIN
    CREATE ROLE glyphoxa_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server has created it
END $$;
GRANT USAGE, CREATE ON SCHEMA public TO glyphoxa_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO glyphoxa_app;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO glyphoxa_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO glyphoxa_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO glyphoxa_app;
ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
ALTER FUNCTION pg_catalog.arraycontains(anyarray, anyarray) LEAKPROOF;
ALTER FUNCTION pg_catalog.arrayoverlap(anyarray, anyarray) LEAKPROOF;

-- state --
-- One row about the server, for checks before use.
SELECT current_setting('server_version') AS version,
       current_setting('transaction_read_only')::bool AS is_read_only,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS has_pgvector,
       extract(epoch FROM clock_timestamp())::float8 AS now_s;
