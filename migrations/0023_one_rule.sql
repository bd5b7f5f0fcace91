-- Who may know what is said once: a fact that is not accepted is the DM's alone, and then its scope decides.
-- A function of one SELECT is inlined, this one into that, so plans and indexes stay what they were.
CREATE OR REPLACE FUNCTION glyphoxa_may_know(viewer TEXT, status TEXT, scope TEXT, knowers TEXT[]) RETURNS BOOLEAN
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (viewer IS NULL OR status = 'accepted') AND glyphoxa_may_know(viewer, scope, knowers)
$$;
