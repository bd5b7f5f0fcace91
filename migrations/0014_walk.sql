-- The walk over relations that everything which goes along them shares: neighbourhoods, what an NPC has heard of, paths,
-- and the talk around an entity.

-- A row for each level, nearest first: how many relations away from `start` it is, and who is there. Each entity is in
-- one level only, however many ways lead to it, so that circles do no harm. Everything in the name of `viewer`, NULL for
-- the DM: what that one may not know of is not walked through.
--   most         relations away from the beginning
--   direction    of the relations: 'out', 'in' or 'both'
--   types        of the relations; NULL: any
--   first_of_any the first relation may be of any type
--   enough       so many entities suffice: the level that reaches it is the last
--   target       so does this one
-- Entities that the viewer may not know of count as seen: they are few, and found once by idx_entities_restricted. Public
-- relations are read from idx_rel_source and idx_rel_target alone, the others by idx_rel_source_restricted and
-- idx_rel_target_restricted.
-- A loop in a function, because a statement that holds it plans it anew for each use; and without sorting: nobody knows
-- beforehand how wide a level is, and the thousands of a wide one are told apart sooner by hashing.
CREATE FUNCTION glyphoxa_walk(
    campaign TEXT, viewer TEXT, start TEXT, most INT,
    direction TEXT DEFAULT 'both', types TEXT[] DEFAULT NULL, first_of_any BOOLEAN DEFAULT FALSE,
    enough INT DEFAULT NULL, target TEXT DEFAULT NULL)
    RETURNS TABLE (depth INT, level TEXT[])
    LANGUAGE plpgsql STABLE ROWS 5
    SET search_path = public, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_sort = off
AS $$
DECLARE
    seen  TEXT[];
    n     INT := 1;
    along TEXT[] := CASE WHEN first_of_any THEN NULL ELSE types END;
BEGIN
    SELECT ARRAY[e.id] INTO level
      FROM entities e
     WHERE e.campaign_id = campaign AND e.id = glyphoxa_entity(campaign, start)
       AND glyphoxa_may_know(viewer, e.scope, e.knowers);
    IF level IS NULL THEN
        RETURN;
    END IF;
    depth := 0;
    RETURN NEXT;
    SELECT level || coalesce(array_agg(e.id), '{}') INTO seen
      FROM entities e
     WHERE e.campaign_id = campaign AND e.scope <> 'public' AND NOT glyphoxa_may_know(viewer, e.scope, e.knowers);
    WHILE depth < most AND (enough IS NULL OR n < enough) AND (target IS NULL OR NOT target = ANY (level)) LOOP
        SELECT array_agg(step.id) INTO level
          FROM (SELECT r.target_id
                  FROM relationships r
                 WHERE direction <> 'in' AND r.campaign_id = campaign AND r.source_id = ANY (level)
                   AND r.scope = 'public' AND glyphoxa_may_know(viewer, r.status, 'public', '{}')
                   AND (along IS NULL OR r.rel_type = ANY (along))
                UNION
                SELECT r.target_id
                  FROM relationships r
                 WHERE direction <> 'in' AND r.campaign_id = campaign AND r.source_id = ANY (level)
                   AND r.scope <> 'public' AND glyphoxa_may_know(viewer, r.status, r.scope, r.knowers)
                   AND (along IS NULL OR r.rel_type = ANY (along))
                UNION
                SELECT r.source_id
                  FROM relationships r
                 WHERE direction <> 'out' AND r.campaign_id = campaign AND r.target_id = ANY (level)
                   AND r.scope = 'public' AND glyphoxa_may_know(viewer, r.status, 'public', '{}')
                   AND (along IS NULL OR r.rel_type = ANY (along))
                UNION
                SELECT r.source_id
                  FROM relationships r
                 WHERE direction <> 'out' AND r.campaign_id = campaign AND r.target_id = ANY (level)
                   AND r.scope <> 'public' AND glyphoxa_may_know(viewer, r.status, r.scope, r.knowers)
                   AND (along IS NULL OR r.rel_type = ANY (along))
                EXCEPT SELECT unnest(seen)) AS step (id);
        EXIT WHEN level IS NULL;
        depth := depth + 1;
        RETURN NEXT;
        n := n + cardinality(level);
        seen := seen || level;
        along := types;
    END LOOP;
END $$;

-- As before, as a loop, since nearly no entity was merged: a question about an entity begins with it.
CREATE OR REPLACE FUNCTION glyphoxa_entity(campaign TEXT, entity TEXT) RETURNS TEXT
    LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    found TEXT;
BEGIN
    FOR step IN 1..100 LOOP
        SELECT m.kept_id INTO found
          FROM public.entity_merges m WHERE m.campaign_id = campaign AND m.gone_id = entity;
        EXIT WHEN found IS NULL;
        entity := found;
    END LOOP;
    RETURN entity;
END $$;
