-- lock_form --
-- Serialise changes of a form until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended($1::text || chr(31) || $2::text, 0));

-- history_of_form --
-- The history of one form, in order, without evidence from utterances that are retracted or changed.
-- Served by idx_learned_name_events_heard.
SELECT id, heard, as_heard, entity_id, kind, witness, why, utterance_id, is_ordinary, undoes, at
  FROM learned_name_events v
 WHERE campaign_id = $1 AND heard = $2
   AND NOT (kind IN ('proved', 'disproved')
            AND EXISTS (SELECT FROM session_entries e
                         WHERE e.campaign_id = $1 AND e.utterance_id = v.utterance_id
                           AND (e.retracted OR e.own_text IS NOT NULL)))
 ORDER BY id;

-- forms_of --
-- The forms with evidence from the utterances $2. Reads all learned events.
SELECT DISTINCT heard FROM learned_name_events WHERE campaign_id = $1 AND utterance_id = ANY ($2) ORDER BY heard;

-- remove_unlinked --
-- Remove the status of a form for names it is no longer linked to ($3: the others).
DELETE FROM learned_names WHERE campaign_id = $1 AND heard = $2 AND NOT entity_id = ANY ($3);

-- add_event --
INSERT INTO learned_name_events (campaign_id, heard, as_heard, entity_id, kind, witness, why, utterance_id,
                                 is_ordinary, undoes, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    RETURNING id;

-- put_status --
-- The status derived from the history, except for pure counts (heard_again). Equal rows are not written, so
-- that nobody is notified.
INSERT INTO learned_names AS old (campaign_id, heard, entity_id, as_heard, state, count, provenance)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (campaign_id, heard, entity_id) DO UPDATE
    SET as_heard = excluded.as_heard, state = excluded.state,
        count = excluded.count + coalesce((old.provenance ->> 'again')::int, 0),
        provenance = excluded.provenance || jsonb_strip_nulls(jsonb_build_object('again', old.provenance -> 'again')),
        updated_at = now()
    WHERE (old.as_heard, old.state, old.count - coalesce((old.provenance ->> 'again')::int, 0),
           old.provenance - 'again')
          IS DISTINCT FROM (excluded.as_heard, excluded.state, excluded.count, excluded.provenance);

-- heard_again --
-- Count another utterance ($4) with the form; this changes nothing else and is not part of the history.
-- `again` is the count; the last $5 utterances are kept.
UPDATE learned_names
   SET count = count + 1, updated_at = now(),
       provenance = jsonb_build_object(
           'again', coalesce((provenance ->> 'again')::int, 0) + 1,
           'utterances', CASE WHEN jsonb_array_length(provenance -> 'utterances') < $5::int
                              THEN provenance -> 'utterances'
                              ELSE (provenance -> 'utterances') - 0 END || to_jsonb($4::text))
 WHERE campaign_id = $1 AND heard = $2 AND entity_id = $3 AND NOT (provenance -> 'utterances') ? $4;

-- statuses --
-- All of a campaign, or those of one form ($2 not null); the most frequent first.
SELECT l.heard, l.as_heard, l.entity_id, e.name, l.state, l.count, l.provenance
  FROM learned_names l
  LEFT JOIN entities e ON e.campaign_id = l.campaign_id AND e.id = l.entity_id
 WHERE l.campaign_id = $1 AND ($2::text IS NULL OR l.heard = $2)
 ORDER BY l.count DESC, l.heard, l.entity_id;

-- entries --
-- A campaign's names with their active wrong forms; people first. Only those of $2 if not null. Names that were
-- only heard are excluded, because they may be misheard themselves.
-- The forms are gathered once and joined: a look-up per name takes seconds at 10,000 names.
-- Guarded names of merged entities are still recognised, so that no page shows them.
SELECT * FROM (
SELECT e.id, e.type, e.name, e.aliases, coalesce(l.learned, '{}') AS learned, e.scope = 'public' AS is_public
  FROM entities e
  LEFT JOIN (SELECT entity_id, array_agg(as_heard ORDER BY count DESC, heard) AS learned
               FROM learned_names
              WHERE campaign_id = $1 AND state = 'active' AND ($2::text[] IS NULL OR entity_id = ANY ($2))
              GROUP BY entity_id) l ON l.entity_id = e.id
 WHERE e.campaign_id = $1 AND e.origin <> 'talk' AND ($2::text[] IS NULL OR e.id = ANY ($2))
 UNION ALL
SELECT id, type, names[1], names[2:], '{}', false
  FROM merged_names
 WHERE campaign_id = $1 AND ($2::text[] IS NULL OR id = ANY ($2))
) n
 ORDER BY CASE type WHEN 'npc' THEN 0 WHEN 'player' THEN 1 ELSE 2 END, name, id;

-- latest_decision --
-- The DM's last decision that was not undone. Served by idx_learned_name_events_decisions.
SELECT d.id, d.heard
  FROM learned_name_events d
 WHERE d.campaign_id = $1 AND d.kind IN ('confirmed', 'rejected') AND ($2::text IS NULL OR d.heard = $2)
   AND NOT EXISTS (SELECT FROM learned_name_events u WHERE u.campaign_id = $1 AND u.undoes = d.id)
 ORDER BY d.id DESC LIMIT 1;

-- history --
-- The latest events of a campaign's forms, or of one of them, latest first.
SELECT v.id, v.heard, v.as_heard, v.entity_id, e.name, v.kind, v.witness, v.why, v.utterance_id, v.is_ordinary,
       v.undoes, v.at
  FROM learned_name_events v
  LEFT JOIN entities e ON e.campaign_id = v.campaign_id AND e.id = v.entity_id
 WHERE v.campaign_id = $1 AND ($2::text IS NULL OR v.heard = $2)
 ORDER BY v.id DESC LIMIT $3;

-- reasons --
-- The distinct reasons for each of the forms $2 with their source, latest first.
SELECT heard, witness, why
  FROM learned_name_events
 WHERE campaign_id = $1 AND heard = ANY ($2::text[]) AND why <> ''
 GROUP BY heard, witness, why
 ORDER BY heard, max(id) DESC;

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
