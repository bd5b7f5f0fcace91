-- state --
-- What a server says of itself to whoever checks it before use: one row.
SELECT current_setting('server_version') AS version,
       current_setting('transaction_read_only')::bool AS is_read_only,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS has_pgvector,
       extract(epoch FROM clock_timestamp())::float8 AS now_s;
