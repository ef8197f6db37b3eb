-- Many events in one statement. A line that begins with a word in braces belongs to some texts only: `{keyed}` to those where an
-- event may have a key, `{any}` to those where an event may be there already.
-- $1 now  $2 ids  $3 times of storing  $4 occurred  $5 types  $6 sources  $7 correlations  $8 causations  $9 headers  $10 payloads
-- $11 first and $12 last handler of each in $13  $14 type, $15 source and $16 handlers of all where their arrays are empty
-- Deliveries: $17 ids  $18 lanes  $19 due times  $20 due time of all  and their handlers are $13
-- $21 keys  Deliveries: $22 key numbers  $23 places of their events  $24 lock class  $25 slots, sorted  $26 gate: 0 no key, 1 shared, 2 all
WITH
{keyed} locks AS MATERIALIZED (
{keyed}   SELECT count(*) AS held FROM (
{keyed}     SELECT pg_advisory_xact_lock_shared($24::int, -1) WHERE $26::int = 1
{keyed}     UNION ALL SELECT pg_advisory_xact_lock($24::int, -1) WHERE $26::int = 2
{keyed}     UNION ALL SELECT pg_advisory_xact_lock($24::int, slot) FROM (SELECT unnest($25::int[]) AS slot) s) y
{keyed} ), s AS MATERIALIZED (
{keyed}   SELECT array_agg(number) AS numbers FROM (
{keyed}     SELECT CASE WHEN k.key IS NOT NULL THEN nextval({numbers_literal}) END AS number
{keyed}     FROM (SELECT unnest($21::text[]) AS key) k, locks) n
{keyed} ),
e AS (
  INSERT INTO {events} (id, created_at, occurred_at, handlers, type, source, correlation_id, causation_id, headers, payload
{keyed}   , sequence, key
  )
  SELECT id, coalesce(created, $1::timestamptz), occurred,
    CASE WHEN first IS NULL THEN $16::smallint[] ELSE ($13::smallint[])[first:last] END,
    coalesce(type, $14::text), coalesce(source, $15::text), correlation, causation, headers, payload
{keyed}   , sequence, key
  FROM (SELECT unnest($2::bytea[]) AS id, unnest($3::timestamptz[]) AS created, unnest($4::timestamptz[]) AS occurred,
    unnest($5::text[]) AS type, unnest($6::text[]) AS source, unnest($7::bytea[]) AS correlation, unnest($8::bytea[]) AS causation,
    unnest($9::json[]) AS headers, unnest($10::json[]) AS payload, unnest($11::int[]) AS first, unnest($12::int[]) AS last
{keyed}     , unnest(s.numbers) AS sequence, unnest($21::text[]) AS key FROM s
  ) t
{any}   ORDER BY id ON CONFLICT (id) DO NOTHING RETURNING id
)
{any} , d AS (
INSERT INTO {deliveries} (id, available_at, lane, handler, event_id
{keyed}   , sequence, key
)
SELECT nextval({numbers_literal}), coalesce(due, $20::timestamptz), lane, handler, id
{keyed}   , numbers[place], key
FROM (
{any}   SELECT n.* FROM (
  SELECT unnest($17::bytea[]) AS id, unnest($18::smallint[]) AS lane, unnest($19::timestamptz[]) AS due, unnest($13::smallint[]) AS handler
{keyed}     , unnest($22::bigint[]) AS key, unnest($23::int[]) AS place, s.numbers
{any}     , generate_subscripts($17::bytea[], 1) AS ord
{keyed}   FROM s
{any}   ) n JOIN e ON e.id = n.id ORDER BY n.ord
) x
{any} )
{any} SELECT t.ord FROM unnest($2::bytea[]) WITH ORDINALITY AS t(id, ord) JOIN e ON e.id = t.id
