-- steps --
-- Steps of wrong forms with the names of their entities, in order: of all forms, of the form $2, or of the forms linked to
-- the entities $3; NULL: any. Served by idx_world_events_forms.
SELECT seq, at, payload, e.name
  FROM world_events w LEFT JOIN entities e ON e.campaign_id = $1 AND e.id = payload ->> 'entity'
 WHERE w.campaign_id = $1 AND event_type = 'form_heard' AND ($2::text IS NULL OR payload ->> 'heard' = $2)
   AND ($3::text[] IS NULL
        OR payload ->> 'heard' IN (SELECT payload ->> 'heard' FROM world_events
                                    WHERE campaign_id = $1 AND event_type = 'form_heard'
                                      AND payload ->> 'entity' = ANY ($3)))
 ORDER BY seq;

-- counts --
-- How often forms (all, or the form $2) were heard again, beyond their steps.
SELECT heard, entity_id, n, utterances FROM form_counts WHERE campaign_id = $1 AND ($2::text IS NULL OR heard = $2);

-- heard_again --
-- Count another utterance ($4) with a form; this is no step of its history. The last $5 utterances are kept.
INSERT INTO form_counts AS old (campaign_id, heard, entity_id, n, utterances) VALUES ($1, $2, $3, 1, ARRAY[$4::text])
    ON CONFLICT (campaign_id, heard, entity_id) DO UPDATE
    SET n = old.n + 1,
        utterances = (old.utterances || excluded.utterances)[greatest(1, cardinality(old.utterances) + 2 - $5::int):]
    WHERE NOT old.utterances @> excluded.utterances;

-- place --
-- Where an utterance is, and whether it is retracted or has other words now.
SELECT session_id, ordinal, retracted OR own_text IS NOT NULL AS is_changed
  FROM session_entries WHERE campaign_id = $1 AND utterance_id = $2;

-- entries --
-- A campaign's names; people first. Only those of $2 if not null. Names that were only heard are excluded, because they
-- may be misheard themselves.
-- Guarded names of merged entities are still recognised, so that no page shows them.
SELECT * FROM (
SELECT id, type, name, aliases, scope = 'public' AS is_public, false AS is_merged
  FROM entities
 WHERE campaign_id = $1 AND origin <> 'talk' AND ($2::text[] IS NULL OR id = ANY ($2))
 UNION ALL
SELECT id, type, names[1], names[2:], false, true
  FROM merged_names
 WHERE campaign_id = $1 AND ($2::text[] IS NULL OR id = ANY ($2))
) n
 ORDER BY CASE type WHEN 'npc' THEN 0 WHEN 'player' THEN 1 ELSE 2 END, name, id;

-- uses_spoken --
-- Utterances in which the words ($2; the same as a pattern: $3) were left unchanged, except those in $4.
-- The index finds them by their words; the pattern excludes matches in the speaker's name.
SELECT count(*) FROM (
    SELECT FROM session_entries
     WHERE campaign_id = $1 AND names @@ phraseto_tsquery('simple', $2) AND text ~* $3
       AND NOT utterance_id = ANY ($4)
     LIMIT 1000) found;

-- uses_written --
-- How often the words occur in the campaign's own text.
SELECT coalesce((SELECT regexp_count(document::text, $2, 1, 'i') FROM campaign_documents WHERE campaign_id = $1), 0);
