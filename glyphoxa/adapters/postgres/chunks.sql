-- due --
-- Utterances to embed after place $2, oldest first, with their chunks of model $5. Those that failed $3 times are
-- skipped. Served by idx_talk_to_embed_place and idx_chunks_utterance_id.
SELECT q.utterance_id, q.place, q.anew AS is_required, e.speaker_name, e.text,
       ARRAY(SELECT c.content_hash FROM chunks c
              WHERE c.campaign_id = $1 AND c.utterance_id = q.utterance_id AND c.model = $5) AS hashes
  FROM talk_to_embed q
  LEFT JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = q.utterance_id
 WHERE q.campaign_id = $1 AND q.place > $2 AND q.failures < $3
 ORDER BY q.place
 LIMIT $4;

-- may_write --
-- The model and dimensions of the vectors, locked until the transaction ends.
SELECT value AS model, (SELECT value::int FROM schema_settings WHERE name = 'embedding_dimensions') AS dimensions
  FROM schema_settings WHERE name = 'embedding_model' FOR SHARE;

-- lock_talk --
-- The current texts of the utterances, locked until the transaction ends: they may have been revised.
SELECT utterance_id, speaker_name, text
  FROM session_entries
 WHERE campaign_id = $1 AND utterance_id = ANY ($2)
 ORDER BY utterance_id
   FOR SHARE;

-- drop --
-- Served by idx_chunks_utterance_id.
DELETE FROM chunks WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- add --
-- Add a chunk; its audience, time and speaker follow from the utterance.
INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model, speaker_id,
                    entity_ids, timestamp, knowers, retracted, topic)
    SELECT $1, $2, e.utterance_id, e.session_id, $4, $5, $6, $7, e.speaker_id, $8, e.timestamp, e.witnesses, e.retracted,
           glyphoxa_topic($1, e.utterance_id)
      FROM session_entries e
     WHERE e.campaign_id = $1 AND e.utterance_id = $3
    ON CONFLICT (campaign_id, id) DO UPDATE
       SET (utterance_id, session_id, content, content_hash, embedding, model, speaker_id, entity_ids, timestamp,
            knowers, retracted, topic)
         = (excluded.utterance_id, excluded.session_id, excluded.content, excluded.content_hash, excluded.embedding,
            excluded.model, excluded.speaker_id, excluded.entity_ids, excluded.timestamp, excluded.knowers,
            excluded.retracted, excluded.topic);

-- refresh --
-- Update who may recall existing chunks: a rollback changes that.
UPDATE chunks c SET knowers = e.witnesses, retracted = e.retracted
  FROM session_entries e
 WHERE c.campaign_id = $1 AND c.utterance_id = ANY ($2)
   AND e.campaign_id = $1 AND e.utterance_id = c.utterance_id
   AND (c.knowers, c.retracted) IS DISTINCT FROM (e.witnesses, e.retracted);

-- settle --
-- Remove finished utterances from the queue, unless they were revised since.
DELETE FROM talk_to_embed q
 USING unnest($2::text[], $3::bigint[]) AS done (utterance_id, place)
 WHERE q.campaign_id = $1 AND q.utterance_id = done.utterance_id AND q.place = done.place;

-- failed --
UPDATE talk_to_embed SET failures = failures + 1 WHERE campaign_id = $1 AND utterance_id = ANY ($2);

-- talk --
-- All utterances after row $2, page by page, with their chunks of model $4. Served by session_entries_pkey.
SELECT e.id, e.utterance_id, e.speaker_name, e.text,
       ARRAY(SELECT c.content_hash FROM chunks c
              WHERE c.campaign_id = $1 AND c.utterance_id = e.utterance_id AND c.model = $4) AS hashes,
       (SELECT c.entity_ids FROM chunks c WHERE c.campaign_id = $1 AND c.id = e.utterance_id) AS entity_ids
  FROM session_entries e
 WHERE e.campaign_id = $1 AND e.id > $2
 ORDER BY e.id
 LIMIT $3;

-- want --
-- Queue these utterances, also those that failed before.
INSERT INTO talk_to_embed (campaign_id, utterance_id) SELECT $1, unnest($2::text[])
    ON CONFLICT (campaign_id, utterance_id) DO UPDATE SET failures = 0;

-- want_all --
INSERT INTO talk_to_embed (campaign_id, utterance_id, anew)
    SELECT campaign_id, utterance_id, true FROM session_entries WHERE campaign_id = $1 ORDER BY id
    ON CONFLICT (campaign_id, utterance_id) DO UPDATE SET failures = 0, anew = true;

-- tag --
-- Tag the chunks of an utterance with the entities they mention, by the current names.
UPDATE chunks SET entity_ids = $3
 WHERE campaign_id = $1 AND utterance_id = $2;

-- count_due --
SELECT count(*) FROM talk_to_embed WHERE campaign_id = $1;

-- names --
-- All named entities, people first.
SELECT id, type, name, aliases FROM entities WHERE campaign_id = $1
 ORDER BY CASE type WHEN 'npc' THEN 0 WHEN 'player' THEN 1 ELSE 2 END, name, id;

-- names_digest --
-- A digest of all names, to detect changes.
SELECT coalesce(md5(string_agg(id || chr(1) || type || chr(1) || name || chr(1) || aliases::text, chr(2) ORDER BY id)), '')
  FROM entities WHERE campaign_id = $1;

-- language --
SELECT language FROM campaigns WHERE id = $1;

-- world_head --
-- The last event that may change an entity or fact.
SELECT coalesce(max(seq), 0) FROM world_events WHERE campaign_id = $1 AND event_type <> 'form_heard';

-- entities_due --
-- Entities after the id $3 without a vector of model $2 for their present name and description. Without secret ones: the
-- model may be a provider's.
SELECT e.id, e.content
  FROM (SELECT id, left(concat_ws(': ', name, attributes ->> 'description'), 1000) AS content
          FROM entities WHERE campaign_id = $1 AND id > $3 AND scope NOT IN ('secret', 'hidden')) e
  LEFT JOIN entity_vectors v ON v.campaign_id = $1 AND v.entity_id = e.id AND v.model = $2 AND v.content = e.content
 WHERE v.entity_id IS NULL
 ORDER BY e.id
 LIMIT $4;

-- put_entity --
-- The vector $5 of an entity, unless the entity is gone.
INSERT INTO entity_vectors (campaign_id, entity_id, content, model, embedding)
    SELECT $1, id, $3, $4, $5 FROM entities WHERE campaign_id = $1 AND id = $2 FOR KEY SHARE
    ON CONFLICT (campaign_id, entity_id) DO UPDATE
       SET (content, model, embedding) = (excluded.content, excluded.model, excluded.embedding);

-- try_lock --
-- One reindexing per database; the lock is released when the connection ends.
SELECT pg_try_advisory_lock($1);

-- model --
-- The model of the vectors; NULL in a database that has none yet.
SELECT (SELECT value FROM schema_settings WHERE name = 'embedding_model') AS model,
       (SELECT value::int FROM schema_settings WHERE name = 'embedding_dimensions') AS dimensions;

-- note --
INSERT INTO schema_settings VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

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
