-- campaign --
-- Its language, and what its file calls its NPCs.
SELECT c.language,
       (SELECT jsonb_agg(jsonb_build_object('entity', npc -> 'entity_id', 'name', npc -> 'name',
                                            'aliases', npc -> 'aliases'))
          FROM campaign_documents d, jsonb_array_elements(d.document -> 'npcs') AS npc
         WHERE d.campaign_id = $1) AS npcs
  FROM campaigns c
 WHERE c.id = $1;
