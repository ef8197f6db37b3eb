-- The columns of deliveries in the row that has none: their types are those of all rows.
  NULL::bigint AS rn, NULL::bigint AS id, NULL::tid AS tid, NULL::smallint AS handler, NULL::bigint AS key, NULL::bigint AS sequence,
  NULL::smallint AS lane, NULL::int AS attempts, NULL::int AS claims, NULL::timestamptz AS available_at,
  NULL::bytea AS event_id, NULL::timestamptz AS created_at, NULL::timestamptz AS occurred_at, NULL::text AS type, NULL::text AS source,
  NULL::text AS event_key, NULL::bytea AS correlation_id, NULL::bytea AS causation_id, NULL::json AS headers, NULL::json AS payload
