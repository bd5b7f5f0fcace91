-- try_lock --
-- One reindexing per database; the lock is released when the connection ends.
SELECT pg_try_advisory_lock($1);

-- model --
-- The model of the vectors; NULL in a database that has none yet.
SELECT (SELECT value FROM schema_settings WHERE name = 'embedding_model') AS model,
       (SELECT value::int FROM schema_settings WHERE name = 'embedding_dimensions') AS dimensions;

-- note --
INSERT INTO schema_settings VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- next_generation --
-- Tables that hold vectors in memory compare them with no later ones.
INSERT INTO schema_settings VALUES ('embedding_generation', '1')
    ON CONFLICT (name) DO UPDATE SET value = (schema_settings.value::bigint + 1)::text;

-- is_above_rules --
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user;

-- campaigns --
SELECT DISTINCT campaign_id FROM sessions ORDER BY campaign_id;

-- clear --
-- The notes of the model come first in the transaction: they wait for those who write vectors of the old one.
SET LOCAL lock_timeout = '3s';
TRUNCATE chunks, entity_vectors;
DROP INDEX idx_chunks_embedding, idx_entity_vectors_embedding;
ALTER TABLE chunks ALTER COLUMN embedding TYPE vector({{embedding_dimensions}});
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE entity_vectors ALTER COLUMN embedding TYPE vector({{embedding_dimensions}});
ALTER TABLE entity_vectors ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX idx_chunks_embedding ON chunks USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);
CREATE INDEX idx_entity_vectors_embedding ON entity_vectors
    USING hnsw ((embedding::halfvec({{embedding_dimensions}})) halfvec_cosine_ops);
