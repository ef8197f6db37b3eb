-- The first delivery of each key of a handler, without its followers: $1 handler  $2 behind this key  $3 keys at most
WITH RECURSIVE k AS (
  (SELECT d.key, d.available_at, d.lane, 1 AS n FROM {deliveries} d
   WHERE d.handler = $1 AND d.key > $2 AND d.key IS NOT NULL AND NOT d.dead ORDER BY d.handler, d.key, d.sequence LIMIT 1)
  UNION ALL
  SELECT x.*, k.n + 1 FROM k CROSS JOIN LATERAL (
    SELECT d.key, d.available_at, d.lane FROM {deliveries} d
    WHERE d.handler = $1 AND d.key > k.key AND d.key IS NOT NULL AND NOT d.dead ORDER BY d.handler, d.key, d.sequence LIMIT 1) x
  WHERE k.n < $3
)
SELECT key, available_at, lane FROM k
