-- lexical --
-- What $2 witnessed and shares a word with the question $3 (or a name of $4, unstemmed), best first; not what was
-- rolled back. Words are joined by OR: with AND, 97 of 100 natural questions find nothing. Stemmed in the campaign's
-- language. Served by idx_session_entries_fts and idx_session_entries_names.
-- Of much talk not all that has a word is ranked. How common each is tells the latest talk (`sample`): what has a rare
-- word is ranked, and what has several of the common ones, two, three or four, which is what ranks before the rest;
-- common names likewise, among the words. When that finds too little, the latest of the rest fills up
-- (idx_session_entries_timestamp). Below 2,000 turns that have a word all are ranked.
-- $5: utterances to leave out; $6: how many.
WITH language AS MATERIALIZED (
    SELECT coalesce((SELECT glyphoxa_fts_config(language) FROM campaigns WHERE id = $1), 'english') AS config),
asked AS MATERIALIZED (
    SELECT replace(plainto_tsquery(config, $3)::text, ' & ', ' | ')::tsquery AS words,
           replace(plainto_tsquery('simple', $4)::text, ' & ', ' | ')::tsquery AS names,
           tsvector_to_array(to_tsvector(config, $3)) AS each_word,
           tsvector_to_array(to_tsvector('simple', $4)) AS each_name
      FROM language),
talk AS MATERIALIZED (SELECT coalesce(sum(last_floor), 0)::float8 AS size FROM sessions WHERE campaign_id = $1),
sample AS MATERIALIZED (
    SELECT e.fts, e.names
      FROM session_entries e
     WHERE e.campaign_id = $1
     ORDER BY e.timestamp DESC
     LIMIT (SELECT CASE WHEN size > 2000 THEN 300 ELSE 0 END FROM talk)),
stands_for AS MATERIALIZED (
    SELECT CASE WHEN n.hits * n.each > 2000 THEN n.each ELSE 0 END AS turns
      FROM (SELECT count(*) FILTER (WHERE s.fts @@ a.words OR s.names @@ a.names) AS hits,
                   (SELECT size FROM talk) / greatest(count(*), 1) AS each
              FROM asked a, sample s) n),
each_of AS MATERIALIZED (
    SELECT w.is_name, q.quoted, q.quoted::tsquery AS query
      FROM (SELECT false AS is_name, unnest(each_word) AS word FROM asked
            UNION ALL
            SELECT true, unnest(each_name) FROM asked) w
     CROSS JOIN LATERAL (SELECT '''' || replace(replace(w.word, '\', '\\'), '''', '''''') || '''' AS quoted) q),
counted AS MATERIALIZED (
    SELECT w.*,
           (SELECT turns FROM stands_for)
           * (SELECT count(*) FROM sample s
               WHERE (SELECT turns FROM stands_for) > 0
                 AND CASE WHEN w.is_name THEN s.names ELSE s.fts END @@ w.query) AS turns
      FROM each_of w),
common AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY turns, quoted) AS n, quoted, query
      FROM counted WHERE NOT is_name AND turns > 1000 ORDER BY turns, quoted LIMIT 8),
of_common AS MATERIALIZED (
    SELECT (SELECT count(*) FROM common c WHERE s.fts @@ c.query) AS n
      FROM sample s WHERE (SELECT turns FROM stands_for) > 0),
together AS MATERIALIZED (
    SELECT CASE WHEN (SELECT turns FROM stands_for) * count(*) FILTER (WHERE n >= 2) <= 2000 THEN 2
                WHEN (SELECT turns FROM stands_for) * count(*) FILTER (WHERE n >= 3) <= 2000 THEN 3
                ELSE 4
           END AS n
      FROM of_common),
looked_for AS MATERIALIZED (
    SELECT (SELECT coalesce(string_agg(q.query, ' | '), '')
              FROM (SELECT quoted AS query FROM counted WHERE NOT is_name AND turns <= 1000
                    UNION ALL
                    SELECT a.quoted || ' & ' || b.quoted
                      FROM common a JOIN common b ON a.n < b.n
                     WHERE (SELECT n FROM together) = 2
                    UNION ALL
                    SELECT a.quoted || ' & ' || b.quoted || ' & ' || c.quoted
                      FROM common a JOIN common b ON a.n < b.n JOIN common c ON b.n < c.n
                     WHERE (SELECT n FROM together) = 3
                    UNION ALL
                    SELECT a.quoted || ' & ' || b.quoted || ' & ' || c.quoted || ' & ' || d.quoted
                      FROM common a JOIN common b ON a.n < b.n JOIN common c ON b.n < c.n JOIN common d ON c.n < d.n
                     WHERE (SELECT n FROM together) = 4) q)::tsquery AS words,
           (SELECT coalesce(string_agg(quoted, ' | '), '') FROM counted WHERE is_name AND turns <= 1000)::tsquery
           AS names),
found AS MATERIALIZED (
    SELECT e.id, e.timestamp,
           ts_rank(e.fts, a.words)::float8 + ts_rank(e.names, a.names)::float8 AS score
      FROM asked a, session_entries e
     WHERE e.campaign_id = $1
       AND $2 = ANY (e.witnesses)
       AND NOT e.struck
       AND (e.fts @@ (SELECT words FROM looked_for) OR e.names @@ (SELECT names FROM looked_for))
       AND NOT e.utterance_id = ANY ($5)
     ORDER BY score DESC, e.timestamp DESC
     LIMIT $6),
latest AS MATERIALIZED (
    SELECT e.id, e.timestamp, ts_rank(e.fts, a.words)::float8 + ts_rank(e.names, a.names)::float8 AS score
      FROM asked a,
           (SELECT l.id, l.timestamp, l.fts, l.names, l.utterance_id, l.witnesses, l.struck
              FROM session_entries l
             WHERE l.campaign_id = $1 AND (SELECT turns FROM stands_for) > 0 AND (SELECT count(*) FROM found) < $6
             ORDER BY l.timestamp DESC
             LIMIT 5000) e
     WHERE $2 = ANY (e.witnesses)
       AND NOT e.struck
       AND (e.fts @@ a.words OR e.names @@ a.names)
       AND NOT e.utterance_id = ANY ($5)
       AND NOT e.id IN (SELECT id FROM found)
     LIMIT $6),
best AS MATERIALIZED (
    SELECT * FROM found UNION ALL SELECT * FROM latest ORDER BY score DESC, timestamp DESC LIMIT $6)
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, b.score
  FROM best b JOIN session_entries e ON e.campaign_id = $1 AND e.id = b.id
 ORDER BY b.score DESC, e.timestamp DESC;

-- said --
-- The words of the utterances $3, with their scores $4, best first, as far as $2 may still be reminded of them.
SELECT e.utterance_id, e.session_id, e.speaker_id, e.speaker_name, e.text, e.timestamp, n.score
  FROM unnest($3::text[], $4::float8[]) AS n (utterance_id, score)
  JOIN session_entries e ON e.campaign_id = $1 AND e.utterance_id = n.utterance_id
 WHERE $2 = ANY (e.witnesses) AND NOT e.struck
 ORDER BY n.score DESC;
