-- custom_plans --
-- A plan that was made while the tables were empty reads all of a campaign for each block, and serves until they are
-- analyzed: 400 relations a second instead of some thousands.
SET LOCAL plan_cache_mode = force_custom_plan;

-- analyze --
-- The server does so by itself, but minutes later, and until then plans for tables that it believes to be empty.
ANALYZE (SKIP_LOCKED) entities, relationships, attribute_facts, fact_supports, fact_history, world_events;
