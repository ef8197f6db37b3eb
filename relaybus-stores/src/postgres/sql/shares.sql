-- What the session owns, what is free, and among how many it is shared: $1 owner  $2 now  $3 now less the takeover margin
SELECT h.id, h.owners, h.epoch, me.no,
  (SELECT count(*) FROM {sessions} s WHERE (s.lease_expires_at > $2::timestamptz OR s.owner = $1) AND h.id = ANY(s.handlers)) AS workers,
  (SELECT count(*) FROM {sessions} s WHERE s.lease_expires_at > $2::timestamptz AND s.owner <> $1 AND s.wants AND h.id = ANY(s.handlers)) AS wanting,
  (SELECT count(*) FROM {sessions} s WHERE s.lease_expires_at <= $3::timestamptz AND s.owner <> $1) AS expired,
  h.name
FROM {sessions} me LEFT JOIN {handlers} h ON h.id = ANY(me.handlers) WHERE me.owner = $1
