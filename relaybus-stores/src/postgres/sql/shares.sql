-- What the session owns, what is free, and among how many it is shared: $1 owner  $2 now  $3 now less the takeover margin
SELECT h.id, h.owners, h.epoch, me.no,
  (SELECT count(*) FROM {sessions} s WHERE (s.lease_expires_at > $2::timestamptz OR s.owner = $1) AND h.id = ANY(s.handlers)) AS workers,
  (SELECT count(*) FROM {sessions} s WHERE s.lease_expires_at > $2::timestamptz AND s.owner <> $1 AND s.wants AND h.id = ANY(s.handlers)) AS wanting,
  (SELECT count(*) FROM {sessions} s WHERE s.lease_expires_at <= $3::timestamptz AND s.owner <> $1) AS expired,
  h.name, o.age AS open_age, o.hidden AS open_hidden
FROM {sessions} me LEFT JOIN {handlers} h ON h.id = ANY(me.handlers) 
CROSS JOIN (
  -- How long the oldest open transaction has been open. Those of other users are not told, nor when a prepared one began.
  SELECT extract(epoch FROM clock_timestamp() - min(a.xact_start))::float8 AS age,
    coalesce(bool_or(a.backend_type IS NULL), false) OR EXISTS (SELECT 1 FROM pg_prepared_xacts p WHERE p.database = current_database()) AS hidden
  FROM pg_stat_activity a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
    AND coalesce(a.backend_type, 'client backend') = 'client backend') o
WHERE me.owner = $1
