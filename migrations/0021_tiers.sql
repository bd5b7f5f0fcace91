-- How deep an NPC might look into its memory in a turn, and why.
ALTER TABLE turns
    ADD COLUMN tier        TEXT NOT NULL DEFAULT '',  -- FAST, STANDARD or DEEP; empty: no engine was asked
    ADD COLUMN tier_reason TEXT NOT NULL DEFAULT '';
