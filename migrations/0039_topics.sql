-- The topic of a chunk: the entity that its utterance is about, a quest before a place before a person. It is filled
-- where the utterance left a state atom.

CREATE FUNCTION glyphoxa_topic(campaign TEXT, utterance TEXT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT e.id
          FROM public.state_atoms a
         CROSS JOIN LATERAL unnest(a.about) WITH ORDINALITY AS named (id, n)
          JOIN public.entities e ON e.campaign_id = a.campaign_id AND e.id = named.id
         WHERE a.campaign_id = campaign AND a.utterance_id = utterance AND e.id IS DISTINCT FROM a.speaker
         ORDER BY array_position(ARRAY['quest', 'location', 'npc', 'faction', 'item'], e.type) NULLS LAST, named.n
         LIMIT 1), '')
$$;

UPDATE chunks SET topic = glyphoxa_topic(campaign_id, utterance_id)
 WHERE utterance_id IN (SELECT utterance_id FROM state_atoms);
