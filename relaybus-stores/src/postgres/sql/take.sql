-- Takes free lanes: $1 owner  $2 turn  $3 handlers  $4 how many lanes of each at most. Only bytes of 0 change.
WITH me AS MATERIALIZED (
  UPDATE {sessions} SET turn = $2 WHERE owner = $1 AND turn < $2 RETURNING no
), h AS MATERIALIZED (
  SELECT id, owners FROM {handlers} WHERE id = ANY($3::smallint[]) AND EXISTS (SELECT 1 FROM me) ORDER BY id FOR UPDATE
), merged AS (
  SELECT h.id, (
    SELECT string_agg(CASE WHEN b.byte = 0 AND b.free <= w.wanted THEN set_byte(decode('00', 'hex'), 0, (SELECT no FROM me)::int)
      ELSE substring(h.owners FROM b.lane + 1 FOR 1) END, ''::bytea ORDER BY b.lane)
    FROM (SELECT g.lane, get_byte(h.owners, g.lane) AS byte,
        count(*) FILTER (WHERE get_byte(h.owners, g.lane) = 0) OVER (ORDER BY g.lane) AS free
      FROM generate_series(0, 255) AS g(lane)) b) AS owners
  FROM h JOIN unnest($3::smallint[], $4::int[]) AS w(id, wanted) ON w.id = h.id
), u AS (
  UPDATE {handlers} t SET owners = m.owners, epoch = t.epoch + 1 FROM merged m
  WHERE t.id = m.id AND t.owners <> m.owners RETURNING t.id, t.owners
)
SELECT (SELECT no FROM me) AS no, u.id, u.owners FROM (VALUES (1)) v LEFT JOIN u ON true
