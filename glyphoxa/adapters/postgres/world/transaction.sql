-- lock_campaign --
-- Whoever writes to a campaign's world waits for the others who do, until the end of the transaction.
SELECT id FROM campaigns WHERE id = $1 FOR NO KEY UPDATE;

-- campaign --
SELECT id FROM campaigns WHERE id = $1;

-- campaigns --
SELECT id FROM campaigns ORDER BY id;

-- set_timeouts --
-- For what takes longer than a statement of a live table may: until the end of the transaction, in milliseconds.
SELECT set_config('statement_timeout', $1::text, true), set_config('idle_in_transaction_session_timeout', $1, true);
