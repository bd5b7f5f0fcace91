-- summary --
-- The text of a session's summary: $3 is its entity, $4 the kind it must be of, $2 the viewer. Found by the entities'
-- primary key, then by idx_attribute_facts_entity. The entity and both facts must be visible.
SELECT summary.value #>> '{}'
  FROM entities AS e
  JOIN attribute_facts AS kind
    ON kind.campaign_id = $1 AND kind.entity_id = e.id AND kind.attribute = 'kind' AND kind.value = to_jsonb($4::text)
  JOIN attribute_facts AS summary
    ON summary.campaign_id = $1 AND summary.entity_id = e.id AND summary.attribute = 'summary'
 WHERE e.campaign_id = $1
   AND e.id = $3
   AND e.type = 'event'
   AND glyphoxa_may_know($2, e.scope, e.knowers)
   AND glyphoxa_may_know($2, kind.status, kind.scope, kind.knowers)
   AND glyphoxa_may_know($2, summary.status, summary.scope, summary.knowers)
 ORDER BY summary.seq DESC
 LIMIT 1

-- latest --
-- The same for the $5 latest sessions except $3, latest first. $4 is the kind.
SELECT told.id, told.text, told.started_at
  FROM (SELECT DISTINCT ON (s.id) s.id, s.started_at, summary.value #>> '{}' AS text
          FROM sessions AS s
          JOIN entities AS e ON e.campaign_id = $1 AND e.id = $4 || '-' || s.id AND e.type = 'event'
          JOIN attribute_facts AS kind
            ON kind.campaign_id = $1 AND kind.entity_id = e.id AND kind.attribute = 'kind'
           AND kind.value = to_jsonb($4::text)
          JOIN attribute_facts AS summary
            ON summary.campaign_id = $1 AND summary.entity_id = e.id AND summary.attribute = 'summary'
         WHERE s.campaign_id = $1
           AND s.id <> $3
           AND glyphoxa_may_know($2, e.scope, e.knowers)
           AND glyphoxa_may_know($2, kind.status, kind.scope, kind.knowers)
           AND glyphoxa_may_know($2, summary.status, summary.scope, summary.knowers)
         ORDER BY s.id, summary.seq DESC) AS told
 ORDER BY told.started_at DESC
 LIMIT $5
