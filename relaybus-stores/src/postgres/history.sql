CREATE TABLE IF NOT EXISTS {completed} (
  id bigint NOT NULL,
  handler smallint NOT NULL,
  attempts integer NOT NULL,
  available_at timestamptz NOT NULL,
  completed_at timestamptz NOT NULL,
  event_id bytea NOT NULL,
  PRIMARY KEY (event_id, handler)
);
CREATE INDEX IF NOT EXISTS {completed_listed} ON {completed} (id);
