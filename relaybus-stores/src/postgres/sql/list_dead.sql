-- A page of the dead, by their own index; the parameters are those of the list.
SELECT d.id, d.event_id, d.handler, d.attempts, d.claims, d.lane, d.available_at, d.dead, d.updated_at AS ended, d.last_error,
  NULL::bigint AS epoch, false AS completed, n.name,
  coalesce(e.created_at, d.available_at) AS created_at, coalesce(e.type, 'deleted') AS type, e.key
FROM {deliveries} d LEFT JOIN {events} e ON e.id = d.event_id JOIN {handlers} n ON n.id = d.handler
WHERE d.dead AND d.id > $1 AND ($3::smallint IS NULL OR d.handler = $3) AND ($5::bigint IS NULL OR d.key = $5)
  AND ($4::text IS NULL OR e.type = $4) AND ($6::text IS NULL OR e.key = $6)
ORDER BY d.id LIMIT $2
