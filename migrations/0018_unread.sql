-- What is written with every row and read by no query: indexes, and the first of a chunk's entities, which stands in
-- `entity_ids` with all others.

DROP INDEX idx_chunks_session_id, idx_chunks_entity_id, idx_entities_name, idx_rel_type, idx_rel_provenance_confidence,
    idx_rel_confidence_number, idx_attribute_facts_confidence_number, idx_fact_history_subject;

-- A table that is being filled to take the place of `chunks` has that column too: it is filled anew.
DROP SCHEMA IF EXISTS reindex CASCADE;
ALTER TABLE chunks DROP COLUMN entity_id;
