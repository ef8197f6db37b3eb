-- Deletes the events of $1 that still are past their time ($2, slack $3): every condition again, in a snapshot after the locks.
WITH x AS MATERIALIZED (
  SELECT e.id FROM {events} e LEFT JOIN {completions} c ON c.event_id = e.id
  WHERE e.id = ANY($1::bytea[]) AND e.created_at < $2
    AND coalesce(c.completed_at, e.created_at + make_interval(secs => $3::float8)) < $2
    AND e.id NOT IN (SELECT d.event_id FROM {deliveries} d WHERE d.event_id = ANY($1::bytea[]))
), e AS (DELETE FROM {events} WHERE id IN (SELECT id FROM x) RETURNING 1),
c AS (DELETE FROM {completions} WHERE event_id IN (SELECT id FROM x)){records}
SELECT (SELECT count(*) FROM e) AS events, {record_count} AS records
