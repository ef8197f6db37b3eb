-- Hands lanes back: $1 owner  $2 turn  $3 handlers  $4 a mask of lanes of each. Only bytes of this session change.
WITH me AS MATERIALIZED (
  UPDATE {sessions} SET turn = $2 WHERE owner = $1 AND turn < $2 RETURNING no
), h AS MATERIALIZED (
  SELECT id, owners FROM {handlers} WHERE id = ANY($3::smallint[]) AND EXISTS (SELECT 1 FROM me) ORDER BY id FOR UPDATE
), merged AS (
  SELECT h.id, (
    SELECT string_agg(CASE WHEN get_byte(h.owners, g.lane) = (SELECT no FROM me) AND get_bit(w.lanes, g.lane) <> 0 THEN decode('00', 'hex')
      ELSE substring(h.owners FROM g.lane + 1 FOR 1) END, ''::bytea ORDER BY g.lane)
    FROM generate_series(0, 255) AS g(lane)) AS owners
  FROM h JOIN unnest($3::smallint[], $4::bytea[]) AS w(id, lanes) ON w.id = h.id
), u AS (
  UPDATE {handlers} t SET owners = m.owners, epoch = t.epoch + 1 FROM merged m
  WHERE t.id = m.id AND t.owners <> m.owners RETURNING 1
)
SELECT (SELECT no FROM me) AS no, (SELECT count(*) FROM u) AS changed
