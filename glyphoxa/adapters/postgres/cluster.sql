-- report --
-- A node reports that it runs. Served by idx_table_leases_node and, because a condition of an index must not be volatile,
-- with the statement's time by idx_table_leases_until.
INSERT INTO cluster_nodes AS n (name, url, capacity, memory_used, lag_ms, seen_at)
    VALUES ($1, $2, $3, $4, $5, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET url = excluded.url, capacity = excluded.capacity, seen_at = excluded.seen_at,
                                     memory_used = excluded.memory_used, lag_ms = excluded.lag_ms,
                                     tables = (SELECT count(*) FROM table_leases WHERE node = $1)
RETURNING is_draining, (SELECT count(*) FROM table_leases WHERE until < statement_timestamp() AND node <> '')::INT AS lost;

-- renew --
-- Renew the leases of the tables that a node holds, and return those that it has: its own and new ones that were placed
-- on it. A lease that another node has taken over is not among them. Served by idx_table_leases_node.
WITH held AS (SELECT * FROM unnest($2::TEXT[], $3::BIGINT[], $4::TEXT[]) AS h (campaign, epoch, url)),
renewed AS (
    UPDATE table_leases l SET until = clock_timestamp() + $5 * interval '1 ms', url = h.url
      FROM held h WHERE l.campaign = h.campaign AND l.epoch = h.epoch AND l.node = $1)
SELECT campaign, server, node, epoch, url, until > clock_timestamp() AS is_valid FROM table_leases WHERE node = $1;

-- nodes --
-- All nodes; those that were lost are forgotten after a while.
WITH lost AS (DELETE FROM cluster_nodes WHERE seen_at < clock_timestamp() - interval '10 minutes')
SELECT name, url, capacity, tables, memory_used, lag_ms, is_draining,
       seen_at > clock_timestamp() - $1 * interval '1 ms' AS is_seen
  FROM cluster_nodes ORDER BY name;

-- take --
-- Give a campaign's table to a node, unless one has it or this one is full by now. The table of a lost node is left to
-- `adopt`: right after an outage of this database all leases have run out, and most of their nodes are alive. An epoch is
-- never used twice, even if the database lost the last of them with its primary: it grows with the time, in microseconds.
WITH fits AS (UPDATE cluster_nodes SET tables = tables + 1 WHERE name = $2 AND tables < capacity RETURNING name)
INSERT INTO table_leases AS l (campaign, server, node, epoch, until)
    SELECT $1, coalesce((SELECT server FROM campaign_servers WHERE campaign = $1), ''), name,
           (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT, clock_timestamp() + $3 * interval '1 ms'
      FROM fits
    ON CONFLICT (campaign) DO UPDATE
       SET node = excluded.node, server = excluded.server, epoch = greatest(l.epoch + 1, excluded.epoch),
           until = excluded.until, url = ''
     WHERE l.node = '' AND l.until < clock_timestamp()
RETURNING epoch;

-- adopt --
-- Take over tables whose node was lost, at most $2. Each node begins elsewhere in the list, and waits for nobody.
-- Served by idx_table_leases_until.
WITH lost AS (
    SELECT campaign FROM table_leases WHERE until < statement_timestamp() AND node <> ''
     ORDER BY hashtext(campaign || $1) LIMIT $2 FOR UPDATE SKIP LOCKED),
fits AS (UPDATE cluster_nodes SET tables = tables + (SELECT count(*) FROM lost) WHERE name = $1)
UPDATE table_leases l
   SET node = $1, epoch = greatest(l.epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT),
       until = clock_timestamp() + $3 * interval '1 ms', url = ''
  FROM lost WHERE l.campaign = lost.campaign
RETURNING l.campaign;

-- lease --
SELECT campaign, server, node, epoch, url, until > clock_timestamp() AS is_valid FROM table_leases WHERE campaign = $1;

-- leases --
SELECT campaign, server, node, epoch, url, until > clock_timestamp() AS is_valid FROM table_leases ORDER BY campaign;

-- release --
DELETE FROM table_leases WHERE campaign = $1 AND epoch = $2;

-- drain --
UPDATE cluster_nodes SET is_draining = true WHERE name = $1 RETURNING name;

-- forget_node --
DELETE FROM cluster_nodes WHERE name = $1;

-- server --
SELECT server FROM campaign_servers WHERE campaign = $1;

-- assign --
-- Note the database of a campaign that rests: nobody may open it meanwhile, so the caller holds its lease.
INSERT INTO campaign_servers (campaign, server) VALUES ($1, $2)
    ON CONFLICT (campaign) DO UPDATE SET server = excluded.server;

-- raise_epoch --
-- Close the campaign's database to all tables of earlier epochs. Waits for their writes under way. No row: there is a
-- later one.
INSERT INTO table_epochs AS e (campaign_id, epoch) VALUES ($1, $2)
    ON CONFLICT (campaign_id) DO UPDATE SET epoch = excluded.epoch WHERE e.epoch <= excluded.epoch
RETURNING epoch;

-- queue_reading --
-- From now on, a trigger notes what is said there.
INSERT INTO reading_queue (campaign) VALUES ($1) ON CONFLICT (campaign) DO NOTHING;

-- files --
SELECT name, content FROM table_files WHERE campaign_id = $1;

-- keep_file --
INSERT INTO table_files (campaign_id, name, content) VALUES ($1, $2, $3)
    ON CONFLICT (campaign_id, name) DO UPDATE SET content = excluded.content;

-- reserve --
-- Keep a campaign closed for a while, unless its table is open.
INSERT INTO table_leases AS l (campaign, server, node, epoch, until)
    VALUES ($1, '', '', (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT,
            clock_timestamp() + $2 * interval '1 ms')
    ON CONFLICT (campaign) DO UPDATE
       SET epoch = greatest(l.epoch + 1, excluded.epoch), until = excluded.until, url = ''
     WHERE l.node = '' AND l.until < clock_timestamp()
RETURNING epoch;

-- delete_campaign --
SELECT glyphoxa_delete_campaign($1);

-- take_reading --
-- The campaign that has waited longest, locked until this connection returns it or ends, and whether something was said
-- since the last time. $1 is more than there are readers. Served by idx_reading_queue_due.
WITH due AS MATERIALIZED (
    SELECT campaign FROM reading_queue WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT $1),
free AS MATERIALIZED (
    SELECT campaign FROM due WHERE pg_try_advisory_lock(hashtext('glyphoxa reading'), hashtext(campaign)) LIMIT 1)
UPDATE reading_queue q SET is_new = false FROM free WHERE q.campaign = free.campaign AND q.due_at <= statement_timestamp()
RETURNING q.campaign, (SELECT before.is_new FROM reading_queue before WHERE before.campaign = q.campaign) AS is_new;

-- read_later --
-- Let a campaign rest for $2 milliseconds (NULL: until something is said), or not if something was said meanwhile.
UPDATE reading_queue
   SET due_at = CASE WHEN is_new THEN clock_timestamp()
                     ELSE coalesce(clock_timestamp() + $2::BIGINT * interval '1 ms', 'infinity') END
 WHERE campaign = $1;

-- return_reading --
SELECT pg_advisory_unlock_all();

-- unread --
-- How many campaigns have waited or are being read for more than $1 milliseconds, up to $2. Served by
-- idx_reading_queue_due.
SELECT count(*) FROM (
    SELECT FROM reading_queue WHERE due_at <= statement_timestamp() - $1 * interval '1 ms' ORDER BY due_at LIMIT $2) late;
