-- The end of every turn that claims: finds the session's row and records in it what is in hand.
place AS MATERIALIZED (
  SELECT coalesce(
    (SELECT x.ctid FROM {sessions} x WHERE x.ctid = {hint}::tid AND x.owner = $1),
    (SELECT x.ctid FROM {sessions} x WHERE x.owner = $1)) AS tid
), rec AS MATERIALIZED (
  UPDATE {sessions} s SET turn = $3, scan_to = greatest(s.scan_to, $2::timestamptz),
    lease_expires_at = greatest(s.lease_expires_at, coalesce($9::timestamptz, s.lease_expires_at)),
    in_flight = $4::bigint[] || ARRAY(SELECT id FROM picked)
  WHERE s.ctid = (SELECT tid FROM place) AND s.owner = $1 AND s.turn < $3 AND ($10::boolean OR EXISTS (SELECT 1 FROM picked))
  RETURNING s.ctid AS tid
)
