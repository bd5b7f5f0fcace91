-- try_lock --
-- One reindexing per database; the lock is released when the connection ends.
SELECT pg_try_advisory_lock($1);

-- finishing_lock --
-- Wait for current writers of chunks and block new ones.
SELECT pg_advisory_lock($1);

-- finishing_unlock --
SELECT pg_advisory_unlock($1);

-- settings --
SELECT name, value FROM schema_settings WHERE name LIKE '%embedding%';

-- has_next --
SELECT to_regclass('reindex.chunks') IS NOT NULL;

-- drop_next --
DROP SCHEMA IF EXISTS reindex CASCADE;

-- make_next --
-- A table like the current one, for other vectors. It is in its own schema, so that all its objects already have their
-- final names. It has its own queue, too.
CREATE SCHEMA reindex;
CREATE TABLE reindex.talk_to_embed (LIKE public.talk_to_embed INCLUDING ALL);
CREATE TABLE reindex.chunks (LIKE public.chunks INCLUDING ALL EXCLUDING INDEXES) PARTITION BY HASH (campaign_id);
ALTER TABLE reindex.chunks ALTER COLUMN embedding TYPE vector({{embedding_dimensions}});
ALTER TABLE reindex.chunks ALTER COLUMN embedding SET STORAGE MAIN;
DO $$ DECLARE like_this RECORD; BEGIN
    FOR like_this IN
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound
          FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'public.chunks'::regclass ORDER BY c.relname
    LOOP
        EXECUTE format('CREATE TABLE reindex.%I PARTITION OF reindex.chunks %s', like_this.relname, like_this.bound);
    END LOOP;
    FOR like_this IN
        SELECT conname, pg_get_constraintdef(oid) AS definition
          FROM pg_constraint
         WHERE conrelid = 'public.chunks'::regclass AND contype IN ('p', 'u', 'f') AND conparentid = 0
         ORDER BY contype DESC, conname
    LOOP
        EXECUTE format('ALTER TABLE reindex.chunks ADD CONSTRAINT %I %s', like_this.conname, like_this.definition);
    END LOOP;
    -- Filling uses this index to find the chunks of an utterance; the others are built at the end.
    CREATE INDEX idx_chunks_utterance_id ON reindex.chunks (campaign_id, utterance_id);
END $$;

-- index_next --
-- The other indexes. Built after the rows are there: row by row takes five times as long.
DO $$ DECLARE like_this RECORD; BEGIN
    FOR like_this IN
        SELECT i.indexname, i.indexdef FROM pg_indexes i
         WHERE i.schemaname = 'public' AND i.tablename = 'chunks'
           AND to_regclass(format('reindex.%I', i.indexname)) IS NULL
         ORDER BY i.indexname
    LOOP
        EXECUTE regexp_replace(
            regexp_replace(like_this.indexdef, ' ON (ONLY )?public\.chunks ', ' ON reindex.chunks '),
            'halfvec\(\d+\)', 'halfvec({{embedding_dimensions}})', 'g');
    END LOOP;
END $$;

-- note --
INSERT INTO schema_settings VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- forget --
DELETE FROM schema_settings WHERE name = ANY ($1);

-- is_above_rules --
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user;

-- campaigns --
SELECT DISTINCT campaign_id FROM sessions ORDER BY campaign_id;

-- swap --
-- Lock first, in the usual order: chunks after their utterance. The foreign key
-- between the two tables is dropped with the old table and exists in the new one.
SET LOCAL lock_timeout = '3s';
LOCK TABLE public.session_entries, public.chunks IN ACCESS EXCLUSIVE MODE;
DROP TABLE public.chunks;
DO $$ DECLARE part RECORD; BEGIN
    FOR part IN
        SELECT c.oid::regclass AS name FROM pg_class c
         WHERE c.relnamespace = 'reindex'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname LIKE 'chunks%'
    LOOP
        EXECUTE format('ALTER TABLE %s SET SCHEMA public', part.name);
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'glyphoxa_app') THEN
        FOR part IN
            SELECT c.oid::regclass AS name FROM pg_class c
             WHERE c.oid = 'public.chunks'::regclass
                OR c.oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'public.chunks'::regclass)
        LOOP
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO glyphoxa_app', part.name);
        END LOOP;
    END IF;
    PERFORM glyphoxa_isolate();
END $$;
DROP SCHEMA reindex CASCADE;
-- Vectors of entities are few: they are made again. Before, none of another model may be compared with the new ones.
TRUNCATE entity_vectors;
DROP INDEX idx_entity_vectors_embedding;
ALTER TABLE entity_vectors ALTER COLUMN embedding TYPE vector({{embedding_dimensions}});
ALTER TABLE entity_vectors ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX idx_entity_vectors_embedding ON entity_vectors
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);
