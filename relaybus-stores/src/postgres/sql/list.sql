-- A page of deliveries: $1 behind this number  $2 limit  $3 handler or null  $4 type or null  $5 key number and $6 key, or null
-- $7 pending  $8 processing  $9 completed  $10 dead
WITH held AS MATERIALIZED (SELECT unnest(in_flight) AS id, epoch FROM {sessions}),
l AS (
  SELECT d.id, d.event_id, d.handler, d.attempts, d.claims, d.lane, d.available_at, d.dead, d.updated_at AS ended, d.last_error, h.epoch, false AS completed
  FROM {deliveries} d LEFT JOIN held h ON h.id = d.id
  WHERE d.id > $1 AND ($3::smallint IS NULL OR d.handler = $3) AND ($5::bigint IS NULL OR d.key = $5)
    AND CASE WHEN d.dead THEN $10::boolean WHEN h.id IS NOT NULL THEN $8::boolean ELSE $7::boolean END{completed_rows}
)
SELECT l.*, n.name, coalesce(e.created_at, l.available_at) AS created_at, coalesce(e.type, 'deleted') AS type, e.key FROM l LEFT JOIN {events} e ON e.id = l.event_id JOIN {handlers} n ON n.id = l.handler
WHERE ($4::text IS NULL OR e.type = $4) AND ($6::text IS NULL OR e.key = $6) AND ($9::boolean OR NOT l.completed)
ORDER BY l.id LIMIT $2
