-- lock_campaign --
-- Serialise writers of a campaign's world until the end of the transaction.
SELECT id FROM campaigns WHERE id = $1 FOR NO KEY UPDATE;

-- campaign --
SELECT id FROM campaigns WHERE id = $1;

-- campaigns --
SELECT id FROM campaigns ORDER BY id;

-- set_timeouts --
-- For work that takes longer than a statement of a running table may: until the end of the transaction, in
-- milliseconds.
SELECT set_config('statement_timeout', $1::text, true), set_config('idle_in_transaction_session_timeout', $1, true);
