-- One turn: delete what completed, claim what is due, record it in the session's row. One statement, one commit.
-- $1 owner  $2 now  $3 turn  $4 running ids  $5 $6 $7 done: places, ids, claims  $8 ids of late completions
-- $9 new expiry or null  $10 record in any case  $11 longest run  $12 deliveries that runs may add up to
-- $13 $14 busy handlers, keys  $15 $16 $17 keys that go on: handlers, keys, last sequences  $18 limit of runs
-- $19 handlers  $20 slots  $21 masks  $22 $23 $24 unkeyed: rows, cursor  $25 $26 $27 keyed: rows, cursor  $28 keyed rows in all
-- $29 where the session's row was last written: while somebody holds an old snapshot, no version of it can be removed, and by
-- its owner every turn would pass all of them
WITH done AS (
  DELETE FROM {deliveries} d USING unnest($5::tid[], $6::bigint[], $7::int[]) AS t(at, id, claims)
  WHERE d.ctid = t.at AND d.id = t.id AND d.claims = t.claims AND NOT d.dead
  RETURNING d.id, d.event_id, d.handler, d.attempts, d.available_at
), late AS (
  INSERT INTO {completions} AS c (event_id, completed_at)
  SELECT DISTINCT x.event_id, $2::timestamptz FROM done x JOIN unnest($8::bigint[]) AS l(id) USING (id) ORDER BY 1
  ON CONFLICT (event_id) DO UPDATE SET completed_at = greatest(c.completed_at, EXCLUDED.completed_at)
){record}, own AS MATERIALIZED (
  SELECT unnest($4::bigint[] || $6::bigint[]) AS id
), unkeyed AS MATERIALIZED (
  SELECT c.*, row_number() OVER (PARTITION BY c.handler ORDER BY c.available_at, c.id) AS n FROM (
    SELECT x.* FROM unnest($19::smallint[], $22::int[], $23::timestamptz[], $24::bigint[], $21::bytea[]) AS h(hid, cap, cat, cid, mask)
    CROSS JOIN LATERAL (
      SELECT d.id, d.event_id, d.handler, d.key, d.sequence, d.lane, d.attempts, d.claims, d.available_at, d.ctid AS tid
      FROM {deliveries} d
      WHERE d.handler = h.hid AND NOT d.dead AND d.key IS NULL AND d.available_at <= $2::timestamptz
        AND (d.available_at, d.id) > (h.cat, h.cid) AND get_bit(h.mask, d.lane) <> 0 AND d.id NOT IN (SELECT id FROM own)
      ORDER BY d.available_at, d.id LIMIT h.cap) x
    LIMIT $18::int) c
), scanned AS MATERIALIZED (
  SELECT x.* FROM unnest($19::smallint[], $25::int[], $26::timestamptz[], $27::bigint[], $21::bytea[]) AS h(hid, cap, cat, cid, mask)
  CROSS JOIN LATERAL (
    SELECT d.id, d.handler, d.key, d.available_at FROM {deliveries} d
    WHERE d.handler = h.hid AND NOT d.dead AND d.key IS NOT NULL AND d.available_at <= $2::timestamptz
      AND (d.available_at, d.id) > (h.cat, h.cid) AND get_bit(h.mask, d.lane) <> 0
    ORDER BY d.available_at, d.id LIMIT h.cap) x
  LIMIT $28::int
), heads AS MATERIALIZED (
  SELECT u.handler, u.key, max(u.after) AS after, min(u.at) AS at FROM (
    SELECT handler, key, -1::bigint AS after, available_at AS at FROM scanned
    UNION ALL SELECT c.h, c.k, c.a, NULL FROM unnest($15::smallint[], $16::bigint[], $17::bigint[]) AS c(h, k, a)) u
  WHERE (u.handler, u.key) NOT IN (SELECT b.h, b.k FROM unnest($13::smallint[], $14::bigint[]) AS b(h, k))
  GROUP BY 1, 2
), runs AS MATERIALIZED (
  SELECT h.after, h.at, r.* FROM heads h CROSS JOIN LATERAL (
    SELECT x.*, bool_and(x.available_at <= $2::timestamptz) OVER w AS due, bool_and(x.claims = 0) OVER w AS clean, row_number() OVER w AS pos
    FROM (
      SELECT d.id, d.event_id, d.handler, d.key, d.sequence, d.lane, d.attempts, d.claims, d.available_at, d.ctid AS tid
      FROM {deliveries} d
      WHERE d.handler = h.handler AND d.key = h.key AND d.key IS NOT NULL AND NOT d.dead AND d.sequence > h.after
        AND d.id NOT IN (SELECT id FROM own)
      ORDER BY d.sequence LIMIT least($11::int, 1 + $12::int / (SELECT greatest(1, count(*))::int FROM heads))) x
    WINDOW w AS (ORDER BY x.sequence)) r
  WHERE r.due AND (r.pos = 1 OR r.clean)
), firsts AS MATERIALIZED (
  SELECT handler, key, row_number() OVER (PARTITION BY handler ORDER BY after DESC, at NULLS FIRST) AS n FROM runs WHERE pos = 1
), chosen AS MATERIALIZED (
  SELECT z.* FROM (
    SELECT y.handler, y.key, y.id, y.hn, row_number() OVER (ORDER BY y.hn, y.handler) AS rn FROM (
      SELECT x.*, row_number() OVER (PARTITION BY x.handler ORDER BY x.n, x.kind) AS hn FROM (
        SELECT handler, NULL::bigint AS key, id, n, ($3::bigint % 2)::int AS kind FROM unkeyed
        UNION ALL SELECT handler, key, NULL, n, 1 - ($3::bigint % 2)::int FROM firsts) x) y
    JOIN unnest($19::smallint[], $20::int[]) AS s(h, slots) ON s.h = y.handler WHERE y.hn <= s.slots) z
  WHERE z.rn <= $18::int
), picked AS MATERIALIZED (
  SELECT p.* FROM (
    SELECT c.rn, 1::bigint AS pos, u.id, u.event_id, u.handler, u.key, u.sequence, u.lane, u.attempts, u.claims, u.available_at, u.tid
    FROM chosen c JOIN unkeyed u ON u.id = c.id
    UNION ALL
    SELECT c.rn, r.pos, r.id, r.event_id, r.handler, r.key, r.sequence, r.lane, r.attempts, r.claims, r.available_at, r.tid
    FROM chosen c JOIN runs r ON r.handler = c.handler AND r.key = c.key) p
  ORDER BY p.rn, p.pos
), {recorded}
SELECT (SELECT array_agg(id) FROM done) AS done, (SELECT tid FROM place) IS NOT NULL AS alive, (SELECT tid FROM rec) AS recorded,
  (SELECT count(*) FROM picked) AS picks, (SELECT count(*) FROM unkeyed) AS unkeyed,
  k.handlers, k.rows, k.ats, k.ids, k.heads, NULL::boolean AS keyed_due,
{no_delivery}
FROM (
  SELECT array_agg(y.handler) AS handlers, array_agg(y.rows) AS rows, array_agg(y.available_at) AS ats, array_agg(y.id) AS ids,
    array_agg((SELECT count(*) FROM firsts f WHERE f.handler = y.handler)) AS heads
  FROM (SELECT DISTINCT ON (handler) handler, count(*) OVER (PARTITION BY handler) AS rows, available_at, id
    FROM scanned ORDER BY handler, available_at DESC, id DESC) y) k
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  k.rn, k.id, k.tid, k.handler, k.key, k.sequence, k.lane, k.attempts, k.claims, k.available_at,
  e.id, e.created_at, e.occurred_at, e.type, e.source, e.key, e.correlation_id, e.causation_id, e.headers, e.payload
-- OFFSET keeps the look-up of each event one by its id: with a large backlog the planner believes that thousands are picked,
-- and would read all events instead.
FROM rec CROSS JOIN picked k CROSS JOIN LATERAL (SELECT * FROM {events} f WHERE f.id = k.event_id OFFSET 0) e
