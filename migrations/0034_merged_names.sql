-- Names of guarded entities that were merged into others, as far as no entity bears them now: a guarded name does not
-- become an alias of one that may be known. Players may not read it before the DM gives it to such an entity. A name of
-- talk is guarded if the DM hid it.
CREATE VIEW merged_names WITH (security_invoker = true) AS
SELECT g.campaign_id, g.gone_id AS id, g.type, array_agg(DISTINCT n.name) AS names
  FROM (SELECT m.campaign_id, m.gone_id, min(w.payload ->> 'type') AS type, min(w.payload ->> 'origin') AS origin,
               (array_agg(w.payload #>> '{visibility,scope}' ORDER BY w.seq DESC)
                    FILTER (WHERE w.payload ? 'visibility'))[1] AS scope,
               jsonb_agg(w.payload) AS payloads
          FROM entity_merges m
          JOIN world_events w ON w.campaign_id = m.campaign_id AND w.payload ->> 'entity' = m.gone_id
                             AND w.event_type IN ('entity_added', 'entity_changed', 'alias_added', 'entity_scoped')
         GROUP BY m.campaign_id, m.gone_id) g
 CROSS JOIN LATERAL (SELECT jsonb_path_query(g.payloads, '$[*].name') #>> '{}'
                     UNION SELECT jsonb_path_query(g.payloads, '$[*].alias') #>> '{}'
                     UNION SELECT jsonb_path_query(g.payloads, '$[*].aliases[*]') #>> '{}') n (name)
 WHERE n.name IS NOT NULL
   AND (g.scope IN ('secret', 'hidden') OR (g.scope <> 'public' AND g.origin <> 'talk'))
   AND NOT EXISTS (SELECT FROM entities e
                    WHERE e.campaign_id = g.campaign_id AND lower(n.name) IN (SELECT lower(unnest(e.name || e.aliases))))
 GROUP BY g.campaign_id, g.gone_id, g.type;
