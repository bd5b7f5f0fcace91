-- Why an NPC said what it said: what a turn's record needs besides, and how the latest turns are found.

ALTER TABLE turns
    ADD COLUMN utterance_id TEXT,                        -- what was said to the NPC, in session_entries
    ADD COLUMN reply_id     TEXT,                        -- what was heard of its reply
    ADD COLUMN passed_over  JSONB NOT NULL DEFAULT '[]', -- what was recalled and had no place in the prompt, and why
    ADD COLUMN looked_up    JSONB NOT NULL DEFAULT '[]'; -- what its model asked its tools, and what they found

CREATE INDEX idx_turns_latest ON turns (campaign_id, created_at, id);
CREATE INDEX idx_turns_of_npc ON turns (campaign_id, npc_id, created_at, id);
