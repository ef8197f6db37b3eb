-- A turn while nothing keyed is at work or known to be due: far less to plan and to run than the whole turn.
-- Its parameters are those of the whole turn up to $10, then
-- $11 ids that are in hand or end here and may be found behind the cursors  $12 limit  $13 handlers  $14 masks
-- $15 $16 $17 rows, cursors  $18 $19 $20 $21 handlers, masks, cursors of what may be keyed  $22 where the session's row was last written
WITH done AS (
  DELETE FROM {deliveries} d USING unnest($5::tid[], $6::bigint[], $7::int[]) AS t(at, id, claims)
  WHERE d.ctid = t.at AND d.id = t.id AND d.claims = t.claims AND NOT d.dead
  RETURNING d.id{record_columns}
){record}, own AS MATERIALIZED (
  SELECT unnest($11::bigint[]) AS id
), picked AS MATERIALIZED (
  SELECT x.* FROM unnest($13::smallint[], $15::int[], $16::timestamptz[], $17::bigint[], $14::bytea[]) AS h(hid, cap, cat, cid, mask)
  CROSS JOIN LATERAL (
    SELECT d.id, d.event_id, d.handler, d.lane, d.attempts, d.claims, d.available_at, d.ctid AS tid
    FROM {deliveries} d
    WHERE d.handler = h.hid AND NOT d.dead AND d.key IS NULL AND d.available_at <= $2::timestamptz
      AND (d.available_at, d.id) > (h.cat, h.cid) AND get_bit(h.mask, d.lane) <> 0 AND d.id NOT IN (SELECT id FROM own)
    ORDER BY d.available_at, d.id LIMIT h.cap) x
  LIMIT $12::int
), {recorded}
SELECT ARRAY(SELECT id FROM done) AS done, (SELECT tid FROM place) IS NOT NULL AS alive, (SELECT tid FROM rec) AS recorded,
  (SELECT count(*) FROM picked) AS picks, NULL::bigint AS unkeyed,
  NULL::smallint[] AS handlers, NULL::bigint[] AS rows, NULL::timestamptz[] AS ats, NULL::bigint[] AS ids, NULL::bigint[] AS heads,
  EXISTS (
    SELECT 1 FROM unnest($18::smallint[], $19::bytea[], $20::timestamptz[], $21::bigint[]) AS h(hid, mask, cat, cid)
    CROSS JOIN LATERAL (
      SELECT 1 FROM {deliveries} d
      WHERE d.handler = h.hid AND NOT d.dead AND d.key IS NOT NULL AND d.available_at <= $2::timestamptz
        AND (d.available_at, d.id) > (h.cat, h.cid) AND get_bit(h.mask, d.lane) <> 0
      ORDER BY d.available_at, d.id LIMIT 1) x) AS keyed_due,
{no_delivery}
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  k.id, k.id, k.tid, k.handler, NULL, NULL, k.lane, k.attempts, k.claims, k.available_at,
  e.id, e.created_at, e.occurred_at, e.type, e.source, e.key, e.correlation_id, e.causation_id, e.headers, e.payload
-- OFFSET keeps the look-up of each event one by its id, as in the whole turn.
FROM rec CROSS JOIN picked k CROSS JOIN LATERAL (SELECT * FROM {events} f WHERE f.id = k.event_id OFFSET 0) e
