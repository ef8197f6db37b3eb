-- Ends attempts that did not complete, and rewrites what the session runs in the same statement.
-- $1 owner  $2 turn  $3 running ids  $4 now  $5 places  $6 ids  $7 claims  $8 charged  $9 dead  $10 new due times  $11 errors
WITH me AS MATERIALIZED (
  UPDATE {sessions} SET turn = $2, in_flight = $3::bigint[] WHERE owner = $1 AND turn < $2 RETURNING 1
), s AS MATERIALIZED (
  SELECT * FROM unnest($5::tid[], $6::bigint[], $7::int[], $8::int[], $9::boolean[], $10::timestamptz[], $11::text[])
    AS t(at, id, claims, charge, dead, due, error)
), u AS (
  UPDATE {deliveries} d SET claims = d.claims + 1, attempts = d.attempts + s.charge, dead = s.dead,
    available_at = coalesce(s.due, d.available_at), last_error = coalesce(s.error::json, d.last_error),
    updated_at = CASE WHEN s.error IS NULL THEN d.updated_at ELSE $4::timestamptz END
  FROM s WHERE EXISTS (SELECT 1 FROM me) AND d.ctid = s.at AND d.id = s.id AND d.claims = s.claims AND NOT d.dead
  RETURNING d.id
)
SELECT EXISTS (SELECT 1 FROM me) AS alive, (SELECT array_agg(id) FROM u) AS applied
