-- A turn that claims nothing; the parameters are those of the whole turn, $11 is its last.
WITH done AS (
  DELETE FROM {deliveries} d USING unnest($5::tid[], $6::bigint[], $7::int[]) AS t(at, id, claims)
  WHERE d.ctid = t.at AND d.id = t.id AND d.claims = t.claims AND NOT d.dead
  RETURNING d.id, d.event_id, d.handler, d.attempts, d.available_at
), late AS (
  INSERT INTO {completions} AS c (event_id, completed_at)
  SELECT DISTINCT x.event_id, $2::timestamptz FROM done x JOIN unnest($8::bigint[]) AS l(id) USING (id) ORDER BY 1
  ON CONFLICT (event_id) DO UPDATE SET completed_at = greatest(c.completed_at, EXCLUDED.completed_at)
){record}, place AS MATERIALIZED (
  SELECT coalesce(
    (SELECT x.ctid FROM {sessions} x WHERE x.ctid = $11::tid AND x.owner = $1),
    (SELECT x.ctid FROM {sessions} x WHERE x.owner = $1)) AS tid
), rec AS (
  UPDATE {sessions} s SET turn = $3, scan_to = greatest(s.scan_to, $2::timestamptz),
    lease_expires_at = greatest(s.lease_expires_at, coalesce($9::timestamptz, s.lease_expires_at)), in_flight = $4::bigint[]
  WHERE s.ctid = (SELECT tid FROM place) AND s.owner = $1 AND s.turn < $3::bigint AND $10::boolean
  RETURNING s.ctid AS tid
)
SELECT (SELECT array_agg(id) FROM done) AS done, (SELECT tid FROM place) IS NOT NULL AS alive,
  (SELECT tid FROM rec) AS recorded
