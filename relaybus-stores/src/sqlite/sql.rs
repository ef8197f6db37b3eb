//! The texts that the store sends, one name a statement, and the texts put together from them.
//!
//! A call of several statements is one text, prepared once a connection. Texts have fixed sizes, powers of two, and are
//! padded with NULL binds, which match no row; so a few texts serve every batch.
//!
//! Plan hazards: no statement of the hot path has a subquery that picks its rows; every one names a whole primary key.
//! Those of a turn are in `turn_sql`.
//!
//! A bind that is a whole `LIMIT` makes SQLite look at its value and prepare the statement anew at each execution, which
//! costs more than the claim: hence `LIMIT $2 + 0`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::transaction::STILL_OPEN;
use super::turn_sql::{self, ClaimShape, TurnShape};

/// Creates everything.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// Completes a delivery in its handler's transaction, by the trigger that completes those of a turn (`schema.sql`); `{history}`
/// is 1 where the completion is kept.
const COMPLETE: &str = "INSERT INTO {p}completions (handler, due_at, seq, claims, key, next, late, session, now, history) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {history});\n";
/// Makes the next of a key its head: `{e}` key, `{f}` and `{g}` the range of its seq, `{h}` its session. A session that
/// is being ended gets no more. Fences itself: while the key has a head the insert conflicts.
const PROMOTE: &str = "INSERT INTO {p}ready (handler, due_at, seq, claims, attempts, key, last_error, session) \
    SELECT handler, due_at, seq, claims, attempts, key, last_error, \
    CASE WHEN EXISTS (SELECT 1 FROM {p}sessions WHERE id = {h} AND expires_at >= 0) THEN {h} END \
    FROM {p}waiting WHERE handler = {a} AND key = {e} AND seq BETWEEN {f} AND {g} ORDER BY seq LIMIT 1 ON CONFLICT DO NOTHING;\n";
const DROP_PROMOTED: &str = "DELETE FROM {p}waiting WHERE handler = {a} AND key = {e} \
    AND seq = (SELECT seq FROM {p}ready WHERE handler = {a} AND key = {e});\n";
/// `$1` handler, `$2` due, `$3` seq, `$4` session, `$5` claims, `$6` new due, `$7` charge, `$8` error, `$9` key, `$10` now.
const RESCHEDULE: &str = "UPDATE {p}ready SET due_at = coalesce($6, due_at), session = NULL, claims = claims + 1, \
    attempts = min(attempts + $7, 2147483647), last_error = coalesce($8, last_error) \
    WHERE handler = $1 AND due_at = $2 AND seq = $3 AND session = $4 AND claims = $5;\n";
const BURY: &str = "INSERT INTO {p}dead (seq, handler, key, due_at, claims, attempts, died_at, last_error) \
    SELECT seq, handler, key, due_at, claims + 1, min(attempts + $7, 2147483647), $10, $8 FROM {p}ready \
    WHERE handler = $1 AND due_at = $2 AND seq = $3 AND session IS $4 AND claims = $5;\n\
    DELETE FROM {p}ready WHERE handler = $1 AND due_at = $2 AND seq = $3 AND session IS $4 AND claims = $5;\n";
/// Puts an earlier follower of a key, requeued or added while the head was held, in front of the head.
const REORDER: &str = "INSERT INTO {p}waiting (handler, key, seq, due_at, claims, attempts, last_error) \
    SELECT handler, key, seq, due_at, claims, attempts, last_error FROM {p}ready r \
    WHERE r.handler = {a} AND r.key = {e} AND r.session IS NULL AND EXISTS (SELECT 1 FROM {p}waiting w \
    WHERE w.handler = {a} AND w.key = {e} AND w.seq < r.seq) ON CONFLICT DO NOTHING;\n\
    DELETE FROM {p}ready WHERE handler = {a} AND key = {e} AND session IS NULL AND EXISTS (SELECT 1 FROM {p}waiting w \
    WHERE w.handler = {a} AND w.key = {e} AND w.seq = {p}ready.seq);\n";

/// Frees a row of a session that ended: `$1` charge; handler, due, seq, claims, session.
const FREE: &str = "UPDATE {p}ready SET session = NULL, claims = claims + 1, attempts = min(attempts + $1, 2147483647) \
    WHERE handler = {a} AND due_at = {b} AND seq = {c} AND claims = {d} AND session = {e} \
    AND NOT EXISTS (SELECT 1 FROM {p}sessions WHERE id = {e} AND expires_at >= 0);\n";
/// Frees a row that a living session holds without knowing it.
const FREE_OWN: &str = "UPDATE {p}ready SET session = NULL, claims = claims + 1, attempts = min(attempts + $1, 2147483647) \
    WHERE handler = {a} AND due_at = {b} AND seq = {c} AND claims = {d} AND session = {e};\n";

pub(super) const OPEN_SESSION: &str = "BEGIN IMMEDIATE;\n\
    INSERT INTO {p}sessions (owner, expires_at) VALUES ($1, $2) RETURNING id;\nCOMMIT;";
pub(super) const EXPIRED_SESSION: &str =
    "SELECT id FROM {p}sessions WHERE expires_at < $1 AND id <> $2 ORDER BY expires_at LIMIT 1;";
pub(super) const FENCE_SESSION: &str = "BEGIN IMMEDIATE;\n\
    UPDATE {p}sessions SET expires_at = -1 WHERE id = $1 AND expires_at < $2;\nCOMMIT;";
pub(super) const DELETE_SESSION: &str = "DELETE FROM {p}sessions WHERE id = $1 AND expires_at < 0;\nCOMMIT;";
/// Reads the whole of `ready`, outside any lock: an index for it would cost every claim a page.
pub(super) const ORPHANS: &str = "SELECT handler, due_at, seq, claims, session, key FROM {p}ready \
    WHERE session IS NOT NULL AND session NOT IN (SELECT id FROM {p}sessions WHERE expires_at >= 0);";
/// As [`ORPHANS`].
pub(super) const ROWS_OF_SESSION: &str =
    "SELECT handler, due_at, seq, claims, session, key FROM {p}ready WHERE session = $1;";
pub(super) const BARRIER: &str = "SELECT 1 FROM {p}sessions WHERE id = $1;";

/// `$1` handler, `$2` due, `$3` seq, `$4` key.
pub(super) const LOCATE: &str = "SELECT claims, session FROM {p}ready WHERE handler = $1 AND due_at = $2 AND seq = $3;\n\
    SELECT claims, session FROM {p}ready WHERE handler = $1 AND key = $4 AND seq = $3;\n\
    SELECT claims, NULL FROM {p}waiting WHERE handler = $1 AND key = $4 AND seq = $3;\n\
    SELECT claims, NULL FROM {p}dead WHERE seq = $3 AND handler = $1;";
/// A delivery without a key whose due time changed: reads the rows of its handler. Only after [`LOCATE`] missed.
pub(super) const LOCATE_MOVED: &str = "SELECT claims, session FROM {p}ready WHERE handler = $1 AND seq = $3;";
pub(super) const LARGE: &str = "SELECT headers, payload FROM {p}events WHERE seq = $1;";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Fixed(&'static str),
    Append { rows: usize, begin: bool, commit: bool },
    Receive { begin: bool, commit: bool },
    Turn(TurnShape),
    Probe { arms: usize },
    CompleteIn { watched: bool },
    Settle { bury: bool, keyed: bool, begin: bool, commit: bool },
    Free { own: bool, rows: usize },
    Reorder { keys: usize },
}

/// The texts of one store.
#[derive(Debug)]
pub(super) struct Sql {
    prefix: String,
    history: bool,
    texts: Mutex<HashMap<Shape, Arc<str>>>,
}

impl Sql {
    pub(super) fn new(prefix: &str, history: bool) -> Self {
        Self { prefix: prefix.to_owned(), history, texts: Mutex::default() }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn history(&self) -> bool {
        self.history
    }

    /// A template with the prefix filled in, for statements whose text varies.
    pub(super) fn fill(&self, template: &str) -> String {
        template.replace("{p}", &self.prefix)
    }

    /// A fixed statement.
    pub(super) fn fixed(&self, template: &'static str) -> Arc<str> {
        self.cached(Shape::Fixed(template), || template.to_owned())
    }

    fn cached(&self, shape: Shape, make: impl FnOnce() -> String) -> Arc<str> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(&shape) {
            return Arc::clone(text);
        }
        let text: Arc<str> = self.fill(&make()).into();
        texts.insert(shape, Arc::clone(&text));
        text
    }

    /// Inserts `rows` events; each 12 binds, all NULL where there is none.
    pub(super) fn append(&self, rows: usize, begin: bool, commit: bool) -> Arc<str> {
        self.cached(Shape::Append { rows, begin, commit }, || {
            // Without names: SQLite looks a name up by walking over all of them, for each bind.
            let values = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"; rows].join(", ");
            let insert = format!(
                "INSERT INTO {{p}}new_events (id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers, due_at)\n\
                 SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL;\n"
            );
            enclosed(&insert, begin, commit)
        })
    }

    /// Inserts one event whose id may be known. The first statement takes the write lock before anything is read.
    pub(super) fn receive(&self, begin: bool, commit: bool) -> Arc<str> {
        self.cached(Shape::Receive { begin, commit }, || {
            enclosed(
                "DELETE FROM {p}sessions WHERE id = -1;\n\
                 SELECT (SELECT count(*) FROM json_each($11) h WHERE NOT EXISTS (SELECT 1 FROM json_each(e.handlers) k \
                 WHERE k.value = h.value)) FROM {p}events e WHERE e.id = $1;\n\
                 INSERT INTO {p}known_events (id, created_at, occurred_at, type, source, key, correlation, causation, payload, headers, handlers, due_at)\n\
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);\n",
                begin,
                commit,
            )
        })
    }

    /// Looks whether one of `arms` handlers has something due, and whether the session lives.
    pub(super) fn probe(&self, arms: usize) -> Arc<str> {
        self.cached(Shape::Probe { arms }, || turn_sql::probe(arms))
    }

    /// One turn.
    pub(super) fn turn(&self, shape: TurnShape) -> Arc<str> {
        self.cached(Shape::Turn(shape), || turn_sql::turn(shape, self.history))
    }

    /// Completes a delivery in a handler's transaction: in one that is watched, if it is still open.
    pub(super) fn complete_in(&self, watched: bool) -> Arc<str> {
        self.cached(Shape::CompleteIn { watched }, || {
            let complete = COMPLETE.replace("{history}", if self.history { "1" } else { "0" });
            if watched { format!("{STILL_OPEN}{complete}") } else { complete }
        })
    }

    /// Ends an attempt that did not complete.
    pub(super) fn settle(&self, bury: bool, keyed: bool, begin: bool, commit: bool) -> Arc<str> {
        self.cached(Shape::Settle { bury, keyed, begin, commit }, || {
            let mut text = String::from(if bury { BURY } else { RESCHEDULE });
            if keyed {
                if !bury {
                    text.push_str(&named(REORDER, &["$1", "", "", "", "$9"]));
                }
                text.push_str(&promote_lowest("$1", "$9"));
            }
            enclosed(&text, begin, commit)
        })
    }

    /// Frees `rows` rows: `$1` charge, then five binds a row.
    pub(super) fn free(&self, own: bool, rows: usize) -> Arc<str> {
        self.cached(Shape::Free { own, rows }, || {
            let (mut text, mut bind) = (String::new(), 1);
            for _ in 0..rows {
                text.push_str(&numbered(if own { FREE_OWN } else { FREE }, &mut bind, 5));
            }
            text
        })
    }

    /// Puts the heads of `keys` keys in order: two binds a key, handler and key.
    pub(super) fn reorder(&self, keys: usize) -> Arc<str> {
        self.cached(Shape::Reorder { keys }, || {
            let mut text = String::new();
            for index in 0..keys {
                let (handler, key) = (format!("${}", index * 2 + 1), format!("${}", index * 2 + 2));
                text.push_str(&named(REORDER, &[&handler, "", "", "", &key]));
                text.push_str(&promote_lowest(&handler, &key));
            }
            text
        })
    }
}

fn enclosed(text: &str, begin: bool, commit: bool) -> String {
    let begin = if begin { "BEGIN IMMEDIATE;\n" } else { "" };
    let commit = if commit { "COMMIT;" } else { "" };
    format!("{begin}{text}{commit}")
}

fn promote_lowest(handler: &str, key: &str) -> String {
    let range = ["0", "9223372036854775807", "NULL"];
    named(&format!("{PROMOTE}{DROP_PROMOTED}"), &[handler, "", "", "", key, range[0], range[1], range[2]])
}

/// Fills `{a}`, `{b}`, .. with names.
fn named(template: &str, names: &[&str]) -> String {
    let mut text = template.to_owned();
    for (letter, name) in ('a'..).zip(names) {
        text = text.replace(&format!("{{{letter}}}"), name);
    }
    text
}

/// Fills `{a}`, `{b}`, .. with the next `binds` numbers.
fn numbered(template: &str, bind: &mut usize, binds: usize) -> String {
    let mut text = template.to_owned();
    for letter in ('a'..).take(binds) {
        *bind += 1;
        text = text.replace(&format!("{{{letter}}}"), &format!("${bind}"));
    }
    text
}

impl super::Inner {
    /// One of each text, by name.
    pub(super) fn texts(&self) -> Vec<(String, String)> {
        let sql = &self.sql;
        let mut texts = Vec::new();
        let mut add = |name: &str, text: &str| texts.push((name.to_owned(), text.to_owned()));
        let fixed = [
            ("open_session", OPEN_SESSION),
            ("expired_session", EXPIRED_SESSION),
            ("fence_session", FENCE_SESSION),
            ("delete_session", DELETE_SESSION),
            ("orphans", ORPHANS),
            ("rows_of_session", ROWS_OF_SESSION),
            ("barrier", BARRIER),
            ("locate", LOCATE),
            ("locate_moved", LOCATE_MOVED),
            ("large", LARGE),
        ];
        for (name, text) in fixed.into_iter().chain(super::purge::STATEMENTS).chain(super::admin::STATEMENTS) {
            add(name, &sql.fixed(text));
        }
        add("append", &sql.append(2, true, true));
        add("receive", &sql.receive(true, true));
        add("turn", &sql.turn(TurnShape { renew: true, completions: 2, claim: None }));
        add("probe", &sql.probe(4));
        for (name, limited, followers) in
            [("claim", false, false), ("claim_followers", false, true), ("claim_limited", true, true)]
        {
            let claim = Some(ClaimShape { arms: 4, limited, followers });
            add(name, &sql.turn(TurnShape { renew: false, completions: 2, claim }));
        }
        add("complete_in", &sql.complete_in(true));
        for keyed in [false, true] {
            let suffix = if keyed { "_keyed" } else { "" };
            add(&format!("reschedule{suffix}"), &sql.settle(false, keyed, true, true));
            add(&format!("bury{suffix}"), &sql.settle(true, keyed, true, true));
        }
        add("free", &sql.free(false, 2));
        add("free_own", &sql.free(true, 2));
        add("reorder", &sql.reorder(2));
        texts.extend(self.list_texts());
        texts
    }
}
