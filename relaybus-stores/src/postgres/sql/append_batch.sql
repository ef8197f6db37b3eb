-- Many events of any kind in one statement.
-- $1 now  $2 ids  $3 occurred  $4 types  $5 sources  $6 keys  $7 correlations  $8 causations  $9 headers  $10 payloads
-- $11 due times  $12 lanes  $13 key numbers  $14 first and $15 last handler of each in $16  $17 lock class  $18 slots
-- $19 gate: 0 no key, 1 shared, 2 all
WITH n AS MATERIALIZED (
  SELECT * FROM unnest($2::bytea[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::bytea[], $9::text[],
    $10::text[], $11::timestamptz[], $12::smallint[], $13::bigint[], $14::int[], $15::int[])
    WITH ORDINALITY AS t(id, occurred, type, source, key, correlation, causation, headers, payload, due, lane, number, first, last, ord)
), locks AS MATERIALIZED (
  SELECT count(*) AS held FROM (
    SELECT pg_advisory_xact_lock_shared($17::int, -1) WHERE $19::int = 1
    UNION ALL SELECT pg_advisory_xact_lock($17::int, -1) WHERE $19::int = 2
    UNION ALL SELECT pg_advisory_xact_lock($17::int, s.slot) FROM (SELECT DISTINCT unnest($18::int[]) AS slot ORDER BY 1) s) y
), k AS MATERIALIZED (
  SELECT n.*, ($16::smallint[])[n.first:n.last] AS handlers, CASE WHEN n.key IS NOT NULL THEN nextval({numbers_literal}) END AS sequence
  FROM (SELECT * FROM n ORDER BY ord) n, locks
), e AS (
  INSERT INTO {events} (id, created_at, occurred_at, sequence, handlers, type, source, key, correlation_id, causation_id, headers, payload)
  SELECT id, $1::timestamptz, occurred, sequence, handlers, type, source, key, correlation, causation, headers::json, payload::json
  FROM k ORDER BY id {conflict} RETURNING id
), d AS (
  INSERT INTO {deliveries} (id, available_at, sequence, key, lane, handler, event_id)
  SELECT nextval({numbers_literal}), x.due, x.sequence, x.number, x.lane, x.handler, x.id FROM (
    SELECT k.*, u.handler, u.place FROM k{joined} CROSS JOIN LATERAL unnest(k.handlers) WITH ORDINALITY AS u(handler, place)
    ORDER BY k.ord, u.place) x
)
SELECT {stored}
