CREATE SEQUENCE IF NOT EXISTS {numbers};
CREATE TABLE IF NOT EXISTS {meta} (name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE IF NOT EXISTS {handlers} (
  id smallint PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  owners bytea NOT NULL CHECK (length(owners) = 256),
  epoch bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {events} (
  id bytea PRIMARY KEY,
  created_at timestamptz NOT NULL,
  occurred_at timestamptz,
  sequence bigint,
  handlers smallint[] NOT NULL,
  type text NOT NULL,
  source text NOT NULL,
  key text,
  correlation_id bytea,
  causation_id bytea,
  headers json,
  payload json NOT NULL
);
CREATE INDEX IF NOT EXISTS {events_created} ON {events} USING brin (created_at) WITH (pages_per_range = 32, autosummarize = on);
CREATE TABLE IF NOT EXISTS {deliveries} (
  id bigint NOT NULL,
  available_at timestamptz NOT NULL,
  sequence bigint,
  key bigint,
  updated_at timestamptz,
  claims integer NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  lane smallint NOT NULL,
  handler smallint NOT NULL,
  dead boolean NOT NULL DEFAULT false,
  event_id bytea NOT NULL,
  last_error json
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX IF NOT EXISTS {due_unkeyed} ON {deliveries} (handler, available_at, id) WHERE NOT dead AND key IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS {due_keyed} ON {deliveries} (handler, available_at, id) WHERE NOT dead AND key IS NOT NULL;
CREATE INDEX IF NOT EXISTS {keys} ON {deliveries} (handler, key, sequence) WHERE NOT dead AND key IS NOT NULL;
CREATE INDEX IF NOT EXISTS {dead_ended} ON {deliveries} (updated_at, id) WHERE dead;
CREATE INDEX IF NOT EXISTS {dead_listed} ON {deliveries} (id) WHERE dead;
CREATE TABLE IF NOT EXISTS {completions} (event_id bytea PRIMARY KEY, completed_at timestamptz NOT NULL);
CREATE TABLE IF NOT EXISTS {sessions} (
  owner text COLLATE "C" PRIMARY KEY,
  no smallint NOT NULL UNIQUE CHECK (no BETWEEN 1 AND 255),
  epoch bigint NOT NULL,
  turn bigint NOT NULL DEFAULT 0,
  lease_expires_at timestamptz NOT NULL,
  scan_to timestamptz NOT NULL DEFAULT '-infinity',
  handlers smallint[] NOT NULL,
  wants boolean NOT NULL DEFAULT false,
  in_flight bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 20);
ALTER TABLE {sessions} ALTER in_flight SET STORAGE MAIN;
INSERT INTO {meta} (name, value) VALUES ('version', 1), ('slack_seconds', 3600) ON CONFLICT (name) DO NOTHING;
