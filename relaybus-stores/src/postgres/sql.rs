//! Every statement of the store: one text, one name. The long ones are files beside this one.
//!
//! Tables are named with their schema and quoted in every text, so that no `search_path` matters.

use std::sync::Arc;

/// Longest name of a table or an index behind its prefix.
pub(super) const LONGEST_SUFFIX: usize = "deliveries_dead_listed".len();

/// The names of the tables, qualified and quoted.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) schema: String,
    pub(super) prefix: String,
}

/// Suffixes of tables by the word the texts use.
const TABLES: [(&str, &str); 8] = [
    ("meta", "meta"),
    ("handlers", "handlers"),
    ("events", "events"),
    ("deliveries", "deliveries"),
    ("completions", "event_completions"),
    ("completed", "completed_deliveries"),
    ("sessions", "sessions"),
    ("numbers", "numbers"),
];

/// Suffixes of indexes; an index has no schema of its own.
const INDEXES: [(&str, &str); 7] = [
    ("events_created", "events_created"),
    ("due_unkeyed", "deliveries_due_unkeyed"),
    ("due_keyed", "deliveries_due_keyed"),
    ("keys", "deliveries_keys"),
    ("dead_ended", "deliveries_dead_ended"),
    ("dead_listed", "deliveries_dead_listed"),
    ("completed_listed", "completed_listed"),
];

impl Names {
    pub(super) fn table(&self, word: &str) -> String {
        format!("\"{}\".\"{}{}\"", self.schema, self.prefix, word)
    }

    /// The text with the names of this store in it.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.replace("{schema}", &format!("\"{}\"", self.schema));
        for (word, suffix) in TABLES {
            filled = filled.replace(&format!("{{{word}}}"), &self.table(suffix));
        }
        for (word, suffix) in INDEXES {
            filled = filled.replace(&format!("{{{word}}}"), &format!("\"{}{suffix}\"", self.prefix));
        }
        filled.replace("{numbers_literal}", &format!("'{}'::regclass", self.table("numbers")))
    }

    /// The channel of wake-ups. A name has at most 63 bytes, and PostgreSQL cuts longer ones without a word.
    pub(super) fn channel(&self) -> String {
        let name = format!("{}.{}deliveries", self.schema, self.prefix);
        if name.len() <= 63 {
            name
        } else {
            format!("relaybus_{:016x}", super::args::key_number(&name).cast_unsigned())
        }
    }

    /// The first number of this store's advisory locks.
    pub(super) fn lock_class(&self) -> i32 {
        super::args::key_slot(super::args::key_number(&format!("relaybus keys {}.{}", self.schema, self.prefix)))
    }
}

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        /// The texts, ready to be sent.
        #[derive(Debug)]
        pub(super) struct Sql {
            pub(super) names: Names,
            pub(super) history: bool,
            $($(#[$doc])* pub(super) $name: Arc<str>,)*
        }

        impl Sql {
            pub(super) fn new(names: Names, history: bool) -> Self {
                let fill = |text: &str| -> Arc<str> { names.fill(&with_history(text, history)).into() };
                Self { $($name: fill($text),)* names: names.clone(), history }
            }

            /// Every text by its name.
            pub(super) fn all(&self) -> Vec<(String, String)> {
                vec![$((stringify!($name).to_owned(), self.$name.to_string()),)*]
            }
        }
    };
}

const ON_CONFLICT: &str = "ON CONFLICT (id) DO NOTHING";

fn with_history(text: &str, history: bool) -> String {
    let record = ", kept AS (\n  INSERT INTO {completed} (id, handler, attempts, available_at, completed_at, event_id)\n  SELECT id, handler, attempts, available_at, $2::timestamptz, event_id FROM done ON CONFLICT (event_id, handler) DO NOTHING\n)";
    let rows = " UNION ALL SELECT c.id, c.event_id, c.handler, c.attempts, 0, 0::smallint, c.available_at, false, c.completed_at, NULL, NULL, true FROM {completed} c\n  WHERE c.id > $1 AND ($3::smallint IS NULL OR c.handler = $3) AND $9::boolean";
    let purged = ",\nr AS (DELETE FROM {completed} WHERE event_id IN (SELECT id FROM x) RETURNING 1)";
    let columns = ", d.event_id, d.handler, d.attempts, d.available_at";
    let (record, columns, rows, purged, count) = if history {
        (record, columns, rows, purged, "(SELECT count(*) FROM r)")
    } else {
        ("", "", "", "", "0::bigint")
    };
    text.replace("{record}", record)
        .replace("{record_columns}", columns)
        .replace("{completed_rows}", rows)
        .replace("{records}", purged)
        .replace("{record_count}", count)
        .replace("{completed_count}", if history { "(SELECT count(*) FROM {completed})" } else { "0::bigint" })
}

/// The deliveries of an event that is known to be new need not wait for its row.
fn append_one(conflict: &str) -> String {
    let (returning, source, id) = match conflict {
        "" => ("", "unnest($4::smallint[]) AS h", "$1"),
        _ => (" RETURNING id", "(SELECT id, unnest($4::smallint[]) AS h FROM e) e", "id"),
    };
    format!(
        "WITH e AS (INSERT INTO {{events}} (id, created_at, occurred_at, handlers, type, source, correlation_id, causation_id, headers, payload) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::json, $10::json) {conflict}{returning}) \
         INSERT INTO {{deliveries}} (id, available_at, lane, handler, event_id) \
         SELECT nextval({{numbers_literal}}), $11, $12, h, {id} FROM {source}"
    )
}

fn append_one_keyed(conflict: &str) -> String {
    let (returning, source, id) = match conflict {
        "" => ("", "s, unnest($4::smallint[]) AS h", "$1"),
        _ => (" RETURNING id", "s, e, unnest($4::smallint[]) AS h", "e.id"),
    };
    format!(
        "WITH locks AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared($13, -1) AS gate, pg_advisory_xact_lock($13, $14) AS slot), \
         s AS MATERIALIZED (SELECT nextval({{numbers_literal}}) AS number FROM locks), \
         e AS (INSERT INTO {{events}} (id, created_at, occurred_at, sequence, handlers, type, source, key, correlation_id, causation_id, headers, payload) \
         SELECT $1, $2, $3, s.number, $4, $5, $6, $15, $7, $8, $9::json, $10::json FROM s {conflict}{returning}) \
         INSERT INTO {{deliveries}} (id, available_at, sequence, key, lane, handler, event_id) \
         SELECT nextval({{numbers_literal}}), $11, s.number, $16, $12, h, {id} FROM {source}"
    )
}

/// The text without the lines that belong to others.
fn append_batch(fresh: bool, keyed: bool) -> String {
    let belongs = [("{keyed}", keyed), ("{any}", !fresh)];
    let mut text = String::new();
    for line in include_str!("sql/append_batch.sql").lines().filter(|line| !line.starts_with("--")) {
        let (line, is_ours) = match belongs.iter().find_map(|&(word, ours)| Some((line.strip_prefix(word)?, ours))) {
            Some(marked) => marked,
            None => (line, true),
        };
        if is_ours {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// A turn that claims; `hint` is where the session's row was last written.
fn turn(text: &str, hint: &str) -> String {
    text.replace("{recorded}", &include_str!("sql/turn_recorded.sql").replace("{hint}", hint))
        .replace("{no_delivery}", include_str!("sql/turn_no_delivery.sql"))
}

/// `done` for one delivery by its place in the index, and its traces.
fn complete(keyed: &str, only_if: &str) -> String {
    format!(
        "WITH done AS (DELETE FROM {{deliveries}} d WHERE d.handler = $3 AND d.available_at = $4 AND d.id = $5 AND d.claims = $6 AND NOT d.dead AND d.key {keyed} \
         {only_if} RETURNING d.id, d.event_id, d.handler, d.attempts, d.available_at), \
         late AS (INSERT INTO {{completions}} AS c (event_id, completed_at) SELECT x.event_id, $2::timestamptz FROM done x JOIN {{events}} e ON e.id = x.event_id \
         WHERE e.created_at < $1::timestamptz ON CONFLICT (event_id) DO UPDATE SET completed_at = greatest(c.completed_at, EXCLUDED.completed_at)){{record}} "
    )
}

/// By a session itself: the delivery if it was there.
fn complete_alone(keyed: &str) -> String {
    complete(keyed, "") + "SELECT id FROM done"
}

/// In a transaction that has the mark of its `BEGIN`: whether it has, and the delivery if it was there.
fn complete_in(keyed: &str) -> String {
    complete(keyed, "AND current_setting('relaybus.transaction', true) = 'open'")
        + "SELECT current_setting('relaybus.transaction', true) IS NOT DISTINCT FROM 'open', (SELECT id FROM done)"
}

/// Buries what the session's row lists and no event explains: `$1` owner, `$2` handlers, `$3` now, `$4` the error.
fn bury_gone() -> String {
    let part = |keyed: &str| {
        format!(
            "SELECT d.ctid AS tid FROM {{deliveries}} d WHERE d.handler = ANY($2::smallint[]) AND NOT d.dead AND d.key {keyed} AND d.available_at <= $3::timestamptz \
             AND d.id IN (SELECT id FROM mine) AND NOT EXISTS (SELECT 1 FROM {{events}} e WHERE e.id = d.event_id) FOR UPDATE SKIP LOCKED"
        )
    };
    format!(
        "WITH mine AS MATERIALIZED (SELECT unnest(in_flight) AS id FROM {{sessions}} WHERE owner = $1), a AS MATERIALIZED ({}), b AS MATERIALIZED ({}) \
         UPDATE {{deliveries}} t SET dead = true, claims = t.claims + 1, updated_at = $3, last_error = $4::json FROM (SELECT tid FROM a UNION ALL SELECT tid FROM b) x \
         WHERE t.ctid = x.tid AND NOT t.dead",
        part("IS NULL"),
        part("IS NOT NULL")
    )
}

fn held_rows(lock: &str) -> String {
    let columns = "d.id, d.ctid AS tid, d.handler, d.key, d.sequence, d.lane";
    let part = |keyed: &str| {
        format!(
            "SELECT {columns} FROM {{deliveries}} d WHERE d.handler = ANY($1::smallint[]) AND NOT d.dead AND d.key {keyed} \
             AND d.available_at <= $2::timestamptz AND d.id IN (SELECT unnest($3::bigint[])) {lock}"
        )
    };
    format!(
        "WITH a AS MATERIALIZED ({}), b AS MATERIALIZED ({}) SELECT * FROM a UNION ALL SELECT * FROM b",
        part("IS NULL"),
        part("IS NOT NULL")
    )
}

statements! {
    append_one = &append_one(ON_CONFLICT);
    append_one_fresh = &append_one("");
    append_one_keyed = &append_one_keyed(ON_CONFLICT);
    append_one_keyed_fresh = &append_one_keyed("");
    append_batch = &append_batch(false, true);
    append_batch_fresh = &append_batch(true, false);
    append_batch_fresh_keyed = &append_batch(true, true);
    lock_known = "SELECT id, handlers, sequence, key FROM {events} WHERE id = ANY($1::bytea[]) ORDER BY id FOR UPDATE";
    add_handlers = "WITH n AS MATERIALIZED (SELECT * FROM unnest($1::bytea[], $2::smallint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::timestamptz[]) \
        WITH ORDINALITY AS t(id, handler, sequence, number, lane, due, ord)), \
        u AS (UPDATE {events} e SET handlers = e.handlers || x.added FROM (SELECT id, array_agg(handler ORDER BY ord) AS added FROM n GROUP BY id) x \
        WHERE e.id = x.id AND NOT e.handlers && x.added RETURNING e.id), \
        i AS (INSERT INTO {deliveries} (id, available_at, sequence, key, lane, handler, event_id) \
        SELECT nextval({numbers_literal}), due, sequence, number, lane, handler, id FROM (SELECT n.* FROM n JOIN u ON u.id = n.id ORDER BY n.ord) x) \
        SELECT id FROM u";
    turn = &turn(include_str!("sql/turn.sql"), "$29");
    turn_unkeyed = &turn(include_str!("sql/turn_unkeyed.sql"), "$22");
    settle_turn = include_str!("sql/settle_turn.sql");
    loose = include_str!("sql/loose.sql");
    settle = include_str!("sql/settle.sql");
    complete_alone_unkeyed = &complete_alone("IS NULL");
    complete_alone_keyed = &complete_alone("IS NOT NULL");
    complete_unkeyed = &complete_in("IS NULL");
    complete_keyed = &complete_in("IS NOT NULL");
    place_unkeyed = "SELECT claims, ctid AS tid FROM {deliveries} d WHERE d.handler = $1 AND d.available_at = $2 AND d.id = $3 AND NOT d.dead AND d.key IS NULL FOR UPDATE";
    place_keyed = "SELECT claims, ctid AS tid FROM {deliveries} d WHERE d.handler = $1 AND d.available_at = $2 AND d.id = $3 AND NOT d.dead AND d.key IS NOT NULL FOR UPDATE";
    bury_gone = &bury_gone();
    locate = include_str!("sql/locate.sql");
    insert_session = "INSERT INTO {sessions} (owner, no, epoch, lease_expires_at, handlers) \
        SELECT $1, g.no, nextval({numbers_literal}), $2, $3 FROM generate_series(1, 255) AS g(no) \
        WHERE NOT EXISTS (SELECT 1 FROM {sessions} s WHERE s.no = g.no) ORDER BY g.no LIMIT 1 ON CONFLICT (no) DO NOTHING RETURNING no, epoch";
    free_numbers = "SELECT 255 - count(*) AS free FROM {sessions}";
    touch_session = "UPDATE {sessions} SET turn = $2, wants = $3 WHERE owner = $1 AND turn < $2";
    shares = include_str!("sql/shares.sql");
    take = include_str!("sql/take.sql");
    hand_back = include_str!("sql/hand_back.sql");
    lock_expired = "SELECT owner, no, in_flight, scan_to FROM {sessions} WHERE lease_expires_at <= $1 AND owner <> ALL($2::text[]) ORDER BY lease_expires_at LIMIT 1 FOR UPDATE SKIP LOCKED";
    lock_own = "UPDATE {sessions} SET turn = $2 WHERE owner = $1 AND turn < $2 RETURNING owner, no, in_flight, scan_to";
    lock_pairs = "SELECT id, owners FROM {handlers} WHERE position(set_byte(decode('00', 'hex'), 0, $1::smallint::int) IN owners) > 0 ORDER BY id FOR UPDATE";
    lock_held = &held_rows("FOR UPDATE SKIP LOCKED");
    lock_held_waiting = &held_rows("FOR UPDATE");
    count_held = &held_rows("");
    free_held = "UPDATE {deliveries} d SET claims = d.claims + 1, attempts = d.attempts + t.charge \
        FROM unnest($1::tid[], $2::bigint[], $3::int[]) AS t(at, id, charge) WHERE d.ctid = t.at AND d.id = t.id";
    free_pairs = "UPDATE {handlers} t SET owners = n.owners, epoch = t.epoch + 1 FROM unnest($1::smallint[], $2::bytea[]) AS n(id, owners) WHERE t.id = n.id";
    delete_session = "DELETE FROM {sessions} WHERE owner = $1";
    known_handlers = "SELECT id, name FROM {handlers}";
    add_handler_names = "INSERT INTO {handlers} (id, name, owners) SELECT n.id, n.name, decode(repeat('00', 256), 'hex') \
        FROM unnest($1::smallint[], $2::text[]) AS n(id, name) ON CONFLICT (name) DO NOTHING";
    list = include_str!("sql/list.sql");
    list_dead = include_str!("sql/list_dead.sql");
    requeue = "WITH w AS MATERIALIZED (SELECT * FROM unnest($1::bytea[], $2::smallint[]) WITH ORDINALITY AS t(event_id, handler, ord)), \
        d AS MATERIALIZED (SELECT d.ctid AS tid, d.id, w.ord FROM {deliveries} d JOIN w ON w.event_id = d.event_id AND w.handler = d.handler WHERE d.dead ORDER BY d.id FOR UPDATE OF d), \
        u AS (UPDATE {deliveries} t SET dead = false, attempts = 0, claims = t.claims + 1, available_at = $3, updated_at = NULL FROM d WHERE t.ctid = d.tid AND t.dead RETURNING t.event_id, t.handler) \
        SELECT w.ord FROM w JOIN u ON u.event_id = w.event_id AND u.handler = w.handler";
    unfinished = "SELECT event_id, handler FROM {deliveries} WHERE event_id = ANY($1::bytea[])";
    statistics = "WITH held AS MATERIALIZED (SELECT unnest(in_flight) AS id FROM {sessions}) \
        SELECT count(*) FILTER (WHERE NOT d.dead AND h.id IS NULL) AS pending, count(*) FILTER (WHERE NOT d.dead AND h.id IS NOT NULL) AS processing, \
        count(*) FILTER (WHERE d.dead) AS dead, min(d.available_at) FILTER (WHERE NOT d.dead AND h.id IS NULL) AS oldest, {completed_count} AS completed \
        FROM {deliveries} d LEFT JOIN held h ON h.id = d.id";
    backlog = "SELECT n.name, d.unfinished FROM (SELECT handler, count(*) AS unfinished FROM {deliveries} WHERE NOT dead GROUP BY handler) d JOIN {handlers} n ON n.id = d.handler ORDER BY n.name";
    purge_candidates = "SELECT e.id FROM {events} e LEFT JOIN {completions} c ON c.event_id = e.id WHERE e.created_at < $1 \
        AND coalesce(c.completed_at, e.created_at + make_interval(secs => $2::float8)) < $1 \
        AND NOT EXISTS (SELECT 1 FROM {deliveries} d WHERE d.event_id = e.id) LIMIT $3 FOR UPDATE OF e SKIP LOCKED";
    purge_delete = include_str!("sql/purge_delete.sql");
    purge_dead = "DELETE FROM {deliveries} t USING (SELECT ctid AS tid FROM {deliveries} d WHERE d.dead AND d.updated_at < $1 ORDER BY d.updated_at, d.id LIMIT $2 FOR UPDATE SKIP LOCKED) x \
        WHERE t.ctid = x.tid AND t.dead RETURNING 1";
    table_there = "SELECT to_regclass($1) IS NOT NULL";
    clock = "SELECT clock_timestamp()";
    settings = "SELECT name, value FROM {meta}";
    notify = "SELECT pg_notify($1, '')";
}
