-- search --
-- Utterances that $2 witnessed (NULL: the DM, who sees all) with the words $3, best first.
-- Words are stemmed in the campaign's language, which drops its stop words; names ($4: words written like names) are
-- neither, because somebody may be called Will. If no words of $3 remain, it is used literally.
-- $5: one word is enough. Otherwise all are required, including names that the language drops.
-- $6 session, $7 speaker (NULL: any), $8 and $9 time range (NULL: open), $10 limit.
-- Served by idx_session_entries_fts and idx_session_entries_names.
WITH language AS MATERIALIZED (
    SELECT coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns WHERE id = $1), 'english') AS config),
stemmed AS MATERIALIZED (SELECT config, plainto_tsquery(config, $3) AS words FROM language),
named AS MATERIALIZED (
    SELECT words,
           plainto_tsquery('simple', CASE
               WHEN numnode(words) = 0 AND $4::text[] = '{}' THEN $3
               WHEN $5 THEN array_to_string($4::text[], ' ')
               ELSE (SELECT coalesce(string_agg(name, ' '), '') FROM unnest($4::text[]) AS n (name)
                      WHERE numnode(plainto_tsquery(config, name)) = 0)
           END) AS names
      FROM stemmed),
asked AS MATERIALIZED (
    -- No lexeme contains a space: every ' & ' is an operator.
    SELECT CASE WHEN $5 THEN replace(words::text, ' & ', ' | ')::tsquery ELSE words END AS words,
           CASE WHEN $5 THEN replace(names::text, ' & ', ' | ')::tsquery ELSE names END AS names,
           $5 OR numnode(words) = 0 AS names_suffice,
           $5 OR numnode(names) = 0 AS words_suffice
      FROM named),
best AS MATERIALIZED (
    SELECT e.id, ts_rank(e.fts, a.words)::float8 + ts_rank(e.names, a.names)::float8 AS score
      FROM asked a, session_entries e
     WHERE e.campaign_id = $1
       AND NOT e.retracted
       AND ($2::text IS NULL OR $2 = ANY (e.witnesses))
       AND ((e.fts @@ a.words AND (a.words_suffice OR e.names @@ a.names)) OR (e.names @@ a.names AND a.names_suffice))
       AND ($6::text IS NULL OR e.session_id = $6)
       AND ($7::text IS NULL OR e.speaker_id = $7)
       AND ($8::timestamptz IS NULL OR e.timestamp >= $8)
       AND ($9::timestamptz IS NULL OR e.timestamp < $9)
     ORDER BY score DESC, e.timestamp DESC, e.id DESC
     LIMIT $10)
SELECT u.*, b.score FROM best b JOIN utterances u ON u.campaign_id = $1 AND u.id = b.id
 ORDER BY b.score DESC, u.timestamp DESC, u.id DESC;

-- latest_of_session --
-- Utterances of session $3 that $2 witnessed (NULL: the DM), latest first. $4 speaker (NULL: any), $5 and $6 time
-- range (NULL: open), $7 limit. Served by idx_session_entries_session_timestamp.
SELECT *, 0::float8 AS score FROM utterances
 WHERE campaign_id = $1 AND session_id = $3 AND NOT retracted
   AND ($2::text IS NULL OR $2 = ANY (witnesses))
   AND ($4::text IS NULL OR speaker_id = $4)
   AND timestamp >= coalesce($5, '-infinity'::timestamptz) AND timestamp < coalesce($6, 'infinity'::timestamptz)
 ORDER BY timestamp DESC, id DESC
 LIMIT $7;

-- latest_of_speaker --
-- The same for speaker $3 in all sessions; $4 and $5 time range, $6 limit. Served by
-- idx_session_entries_speaker.
SELECT *, 0::float8 AS score FROM utterances
 WHERE campaign_id = $1 AND speaker_id = $3 AND NOT retracted
   AND ($2::text IS NULL OR $2 = ANY (witnesses))
   AND timestamp >= coalesce($4, '-infinity'::timestamptz) AND timestamp < coalesce($5, 'infinity'::timestamptz)
 ORDER BY timestamp DESC, id DESC
 LIMIT $6;

-- latest --
-- The same for all speakers; $3 and $4 time range, $5 limit. Served by idx_session_entries_timestamp.
SELECT *, 0::float8 AS score FROM utterances
 WHERE campaign_id = $1 AND NOT retracted
   AND ($2::text IS NULL OR $2 = ANY (witnesses))
   AND timestamp >= coalesce($3, '-infinity'::timestamptz) AND timestamp < coalesce($4, 'infinity'::timestamptz)
 ORDER BY timestamp DESC, id DESC
 LIMIT $5;
