-- The tables of the SQLite store. `{p}` is the table prefix. Everything is created in one transaction and nothing is
-- changed when it is there, so that any number of processes can run it at once.

-- `seq` is the commit order: it is the greatest number plus one, drawn while the only write lock is held. Purging
-- never deletes the row with the greatest number, so that no number is ever used twice.
CREATE TABLE IF NOT EXISTS {p}events (
  seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, created_at INTEGER NOT NULL, occurred_at INTEGER, type TEXT NOT NULL,
  source TEXT, key TEXT, correlation BLOB, causation BLOB, payload TEXT NOT NULL, headers TEXT NOT NULL,
  handlers TEXT NOT NULL) STRICT;

-- What can be claimed: deliveries without a key, and of each handler and key only the head.
CREATE TABLE IF NOT EXISTS {p}ready (
  handler TEXT NOT NULL, due_at INTEGER NOT NULL, seq INTEGER NOT NULL, claims INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, session INTEGER, key TEXT, last_error TEXT,
  PRIMARY KEY (handler, due_at, seq)) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS {p}ready_key ON {p}ready (handler, key) WHERE key IS NOT NULL;

-- The followers of the heads. Where a key has followers it has a head in `ready`.
CREATE TABLE IF NOT EXISTS {p}waiting (
  handler TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL, due_at INTEGER NOT NULL,
  claims INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, last_error TEXT,
  PRIMARY KEY (handler, key, seq)) STRICT, WITHOUT ROWID;

-- In the order in which they are listed.
CREATE TABLE IF NOT EXISTS {p}dead (
  seq INTEGER NOT NULL, handler TEXT NOT NULL, key TEXT, due_at INTEGER NOT NULL, claims INTEGER NOT NULL,
  attempts INTEGER NOT NULL, died_at INTEGER NOT NULL, last_error TEXT,
  PRIMARY KEY (seq, handler)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {p}dead_at ON {p}dead (died_at);

-- One row a dispatcher. `expires_at` is negative once the session is being ended by another.
CREATE TABLE IF NOT EXISTS {p}sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;

-- The last completion of an event, where it was late; an earlier one is covered by the slack of the purge.
CREATE TABLE IF NOT EXISTS {p}event_completions (seq INTEGER PRIMARY KEY, completed_at INTEGER NOT NULL) STRICT;

-- The completion history: filled only where it is switched on.
CREATE TABLE IF NOT EXISTS {p}completed_deliveries (
  seq INTEGER NOT NULL, handler TEXT NOT NULL, key TEXT, due_at INTEGER NOT NULL, claims INTEGER NOT NULL,
  attempts INTEGER NOT NULL, completed_at INTEGER NOT NULL, last_error TEXT,
  PRIMARY KEY (seq, handler)) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS {p}meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Inserting here stores an event of a new id with its deliveries. One statement, so it happens as a whole or not at all,
-- even when the caller of a statement goes away between two of them.
CREATE VIEW IF NOT EXISTS {p}new_events AS
  SELECT id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers,
    0 AS due_at FROM {p}events WHERE 0;
CREATE TRIGGER IF NOT EXISTS {p}append INSTEAD OF INSERT ON {p}new_events BEGIN
  INSERT INTO {p}events (id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers)
    VALUES (NEW.id, NEW.created_at, NEW.occurred_at, NEW.type, NEW.source, NEW.key, NEW.correlation, NEW.causation,
      NEW.payload, NEW.headers, NEW.handlers);
  INSERT INTO {p}ready (handler, due_at, seq, key)
    SELECT h.value, NEW.due_at, last_insert_rowid(), NEW.key FROM json_each(NEW.handlers) h
    WHERE true ON CONFLICT DO NOTHING;
  INSERT INTO {p}waiting (handler, key, seq, due_at)
    SELECT h.value, NEW.key, last_insert_rowid(), NEW.due_at FROM json_each(NEW.handlers) h
    WHERE NEW.key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {p}ready r
      WHERE r.handler = h.value AND r.due_at = NEW.due_at AND r.seq = last_insert_rowid());
END;

-- Inserting here makes a delivery pending in the order of its key: in front of a later head that nobody holds.
CREATE VIEW IF NOT EXISTS {p}place AS
  SELECT handler, due_at, seq, claims, attempts, key, last_error FROM {p}ready WHERE 0;
CREATE TRIGGER IF NOT EXISTS {p}place_delivery INSTEAD OF INSERT ON {p}place BEGIN
  INSERT INTO {p}waiting (handler, key, seq, due_at, claims, attempts, last_error)
    SELECT handler, key, seq, due_at, claims, attempts, last_error FROM {p}ready
    WHERE handler = NEW.handler AND key = NEW.key AND session IS NULL AND seq > NEW.seq;
  DELETE FROM {p}ready
    WHERE handler = NEW.handler AND key = NEW.key AND session IS NULL AND seq > NEW.seq;
  INSERT INTO {p}ready (handler, due_at, seq, claims, attempts, key, last_error)
    VALUES (NEW.handler, NEW.due_at, NEW.seq, NEW.claims, NEW.attempts, NEW.key, NEW.last_error)
    ON CONFLICT DO NOTHING;
  INSERT INTO {p}waiting (handler, key, seq, due_at, claims, attempts, last_error)
    SELECT NEW.handler, NEW.key, NEW.seq, NEW.due_at, NEW.claims, NEW.attempts, NEW.last_error
    WHERE NEW.key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {p}ready r
      WHERE r.handler = NEW.handler AND r.due_at = NEW.due_at AND r.seq = NEW.seq);
END;

-- Inserting here stores an event whose id may be known, and adds deliveries for the handlers it never had.
CREATE VIEW IF NOT EXISTS {p}known_events AS
  SELECT id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers,
    0 AS due_at FROM {p}events WHERE 0;
CREATE TRIGGER IF NOT EXISTS {p}receive INSTEAD OF INSERT ON {p}known_events BEGIN
  INSERT INTO {p}events (id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers)
    VALUES (NEW.id, NEW.created_at, NEW.occurred_at, NEW.type, NEW.source, NEW.key, NEW.correlation, NEW.causation,
      NEW.payload, NEW.headers, '[]') ON CONFLICT (id) DO NOTHING;
  INSERT INTO {p}place (handler, due_at, seq, claims, attempts, key, last_error)
    SELECT h.value, NEW.due_at, e.seq, 0, 0, e.key, NULL FROM {p}events e CROSS JOIN json_each(NEW.handlers) h
    WHERE e.id = NEW.id AND NOT EXISTS (SELECT 1 FROM json_each(e.handlers) k WHERE k.value = h.value);
  UPDATE {p}events SET handlers = (SELECT json_group_array(value) FROM (
      SELECT k.value FROM json_each({p}events.handlers) k
      UNION SELECT h.value FROM json_each(NEW.handlers) h))
    WHERE id = NEW.id AND EXISTS (SELECT 1 FROM json_each(NEW.handlers) h
      WHERE NOT EXISTS (SELECT 1 FROM json_each({p}events.handlers) k WHERE k.value = h.value));
END;

-- Inserting here completes a delivery, fenced by its session and claims, and makes the next of its key the head: under
-- the same session while the run goes on (`next` is the number of the one behind it, 0 when that is not known), free
-- after its last (`next` is NULL). A session that is being ended gets no more. What was not there is an error, so that a
-- batch that met one is done again one by one.
CREATE VIEW IF NOT EXISTS {p}completions AS
  SELECT handler, due_at, seq, claims, key, 0 AS next, 0 AS late, session, 0 AS now, 0 AS history FROM {p}ready WHERE 0;
CREATE TRIGGER IF NOT EXISTS {p}complete INSTEAD OF INSERT ON {p}completions BEGIN
  INSERT INTO {p}completed_deliveries (seq, handler, key, due_at, claims, attempts, completed_at, last_error)
    SELECT seq, handler, key, due_at, claims, attempts, NEW.now, last_error FROM {p}ready
    WHERE NEW.history AND handler = NEW.handler AND due_at = NEW.due_at AND seq = NEW.seq AND session = NEW.session
      AND claims = NEW.claims ON CONFLICT DO NOTHING;
  DELETE FROM {p}ready WHERE handler = NEW.handler AND due_at = NEW.due_at AND seq = NEW.seq AND session = NEW.session
    AND claims = NEW.claims;
  SELECT RAISE(ABORT, 'relaybus: not there') WHERE changes() = 0;
  INSERT INTO {p}ready (handler, due_at, seq, claims, attempts, key, last_error, session)
    SELECT handler, due_at, seq, claims, attempts, key, last_error, CASE WHEN NEW.next IS NOT NULL
      AND EXISTS (SELECT 1 FROM {p}sessions WHERE id = NEW.session AND expires_at >= 0) THEN NEW.session END
    FROM {p}waiting WHERE NEW.key IS NOT NULL AND handler = NEW.handler AND key = NEW.key
      AND seq BETWEEN coalesce(NEW.next, 0) AND coalesce(nullif(NEW.next, 0), 9223372036854775807)
    ORDER BY seq LIMIT 1 ON CONFLICT DO NOTHING;
  DELETE FROM {p}waiting WHERE NEW.key IS NOT NULL AND handler = NEW.handler AND key = NEW.key
    AND seq = (SELECT seq FROM {p}ready WHERE handler = NEW.handler AND key = NEW.key);
  INSERT INTO {p}event_completions (seq, completed_at)
    SELECT seq, NEW.now FROM {p}events WHERE NEW.late IS NOT NULL AND seq = NEW.seq AND created_at < NEW.late
    ON CONFLICT (seq) DO UPDATE SET completed_at = max(completed_at, excluded.completed_at);
END;

-- Inserting here gives a free delivery to a session. That it is free was read in the same transaction.
CREATE VIEW IF NOT EXISTS {p}marks AS SELECT handler, due_at, seq, session FROM {p}ready WHERE 0;
CREATE TRIGGER IF NOT EXISTS {p}mark INSTEAD OF INSERT ON {p}marks BEGIN
  UPDATE {p}ready SET session = NEW.session
    WHERE handler = NEW.handler AND due_at = NEW.due_at AND seq = NEW.seq AND session IS NULL;
END;
