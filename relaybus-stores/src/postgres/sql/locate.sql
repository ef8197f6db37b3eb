-- Where deliveries are now that are not where they were: $1 ids, $2 handlers. Walks over a handler's deliveries.
SELECT d.id, d.claims, d.dead FROM {deliveries} d WHERE NOT d.dead AND d.key IS NULL AND d.handler = ANY($2::smallint[]) AND d.id = ANY($1::bigint[])
UNION ALL SELECT d.id, d.claims, d.dead FROM {deliveries} d WHERE NOT d.dead AND d.key IS NOT NULL AND d.handler = ANY($2::smallint[]) AND d.id = ANY($1::bigint[])
UNION ALL SELECT d.id, d.claims, d.dead FROM {deliveries} d WHERE d.dead AND d.id = ANY($1::bigint[])
