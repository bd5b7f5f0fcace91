-- `glyphoxa worker reindex` deletes the vectors and makes them again in their table. A second table that an interrupted
-- run of an earlier version has left would keep words that are erased later.
DROP SCHEMA IF EXISTS reindex CASCADE;
DELETE FROM schema_settings WHERE name IN ('next_embedding_model', 'next_embedding_dimensions');
