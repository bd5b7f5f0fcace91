-- One campaign never sees another, even when a query forgets to say which it means: a connection has one campaign
-- (`glyphoxa.campaign`), and rows of others are not there for it. Superusers stand above such rules, so that the
-- program gives that rank up (SET ROLE glyphoxa_app) where it was given it; an ordinary owner is bound by FORCE.

DO $$ BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        BEGIN
            CREATE ROLE glyphoxa_app NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- another database of this server has made it
        END;
        GRANT USAGE, CREATE ON SCHEMA public TO glyphoxa_app;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO glyphoxa_app;
        GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO glyphoxa_app;
        ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO glyphoxa_app;
        ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO glyphoxa_app;
        -- A search for words may use its index in spite of the rules below only if the comparison is trusted to tell
        -- nothing of rows that the rules hide. It raises no errors that quote them, so it may be. Where an
        -- administrator does not grant this, searches for words read the campaign's rows one by one.
        ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
    END IF;
END $$;

-- For every table that has a campaign, and for those that later migrations add: they call it.
CREATE FUNCTION glyphoxa_isolate() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found RECORD;
BEGIN
    FOR found IN
        SELECT c.oid::regclass AS name
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'campaign_id' AND NOT a.attisdropped
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'one_campaign')
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', found.name);
        EXECUTE format('CREATE POLICY one_campaign ON %s '
                       'USING (campaign_id = current_setting(''glyphoxa.campaign'', true)) '
                       'WITH CHECK (campaign_id = current_setting(''glyphoxa.campaign'', true))', found.name);
    END LOOP;
END $$;
SELECT glyphoxa_isolate();
