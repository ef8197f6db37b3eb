//! The texts of a turn: looking whether anything is due, and the one transaction that settles and claims.
//!
//! A turn is few statements however many deliveries it has, because each statement of a text costs more on its way to
//! SQLite and back than its work: completions are one insert into a view whose trigger does each by its whole key
//! (`schema.sql`), claims another, and everything that is claimed comes back as one row, packed into one value a kind.
//!
//! Plan hazards: the candidates are one range of the primary key a handler, merged without a sort; where a handler's own
//! limit is below the claim's, its range is cut first and the few rows that remain are sorted. They are read twice, once
//! for what is handed out and once to be marked: nothing changes between, because the transaction has the only write
//! lock. Marking goes through a trigger for its plan's sake: joined to the candidates directly, an `ANALYZE` of an empty
//! table could make SQLite read the whole table.
//!
//! Completions have a room that is padded with NULL, which the text filters out. They are bound without numbers, because
//! SQLite looks a number's name up by walking over all of them.

use std::fmt::Write as _;

/// Whether the session `$1` lives.
const ALIVE: &str = "EXISTS (SELECT 1 FROM {p}sessions WHERE id = {me} AND expires_at >= 0)";
const RENEW: &str =
    "UPDATE {p}sessions SET expires_at = max(expires_at, {renew}) WHERE id = {me} AND expires_at >= 0;\n";
/// Fixed binds of a turn, after those of its completions: session, now, renewal, most runs, most followers of a run, most
/// bytes of a head's and of a follower's payload with its headers.
pub(super) const FIXED_BINDS: usize = 7;
/// Binds of one completion: handler, due, seq, claims, key, next, late.
pub(super) const COMPLETION_BINDS: usize = 7;

/// What a turn's text looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TurnShape {
    pub(super) renew: bool,
    /// Completions it has room for.
    pub(super) completions: usize,
    pub(super) claim: Option<ClaimShape>,
}

/// What the claim of a turn looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimShape {
    /// Handlers it has room for.
    pub(super) arms: usize,
    /// Whether some handler's own limit is below the claim's: then each arm has a limit too.
    pub(super) limited: bool,
    /// Whether it reads the followers of the heads too.
    pub(super) followers: bool,
}

/// Looks without a lock: `$1` session, `$2` now, then the handlers.
pub(super) fn probe(arms: usize) -> String {
    let mut due = String::new();
    for arm in 0..arms {
        let union = if arm == 0 { "" } else { " UNION ALL " };
        let bind = arm + 3;
        let _ =
            write!(due, "{union}SELECT 1 FROM {{p}}ready WHERE handler = ${bind} AND due_at <= $2 AND session IS NULL");
    }
    let due = if arms == 0 { "0".to_owned() } else { format!("EXISTS ({due})") };
    format!("SELECT {}, {due};", ALIVE.replace("{me}", "$1"))
}

/// One turn. Its one row: whether the session lives, the heads, and the followers.
pub(super) fn turn(shape: TurnShape, history: bool) -> String {
    let first = shape.completions * COMPLETION_BINDS + 1;
    let bind = |place: usize| format!("${}", first + place);
    let (me, now) = (bind(0), bind(1));
    let alive = ALIVE.replace("{me}", &me);
    let mut text = String::from("BEGIN IMMEDIATE;\n");
    if shape.renew {
        text.push_str(&RENEW.replace("{me}", &me).replace("{renew}", &bind(2)));
    }
    if shape.completions > 0 {
        let values = vec!["(?, ?, ?, ?, ?, ?, ?)"; shape.completions].join(", ");
        let _ = writeln!(
            text,
            "INSERT INTO {{p}}completions (handler, due_at, seq, claims, key, next, late, session, now, history)\n\
             SELECT column1, column2, column3, column4, column5, column6, column7, {me}, {now}, {}\n\
             FROM (VALUES {values}) WHERE column1 IS NOT NULL;",
            u8::from(history)
        );
    }
    match shape.claim {
        None => {
            let _ = writeln!(text, "SELECT {alive};");
        }
        Some(claim) => {
            let candidates = candidates(claim, &now, &bind(3), first + FIXED_BINDS);
            let heads = packed("c", &bind(5));
            let _ = write!(
                text,
                "SELECT {alive}, (SELECT {heads} FROM ({candidates}) c CROSS JOIN {{p}}events e ON e.seq = c.seq)"
            );
            if claim.followers {
                let _ = write!(text, ",\n{}", followers(&candidates, &bind(4), &bind(6)));
            }
            let _ = writeln!(
                text,
                ";\nINSERT INTO {{p}}marks (handler, due_at, seq, session)\n\
                 SELECT handler, due_at, seq, {me} FROM ({candidates}) WHERE {alive};"
            );
        }
    }
    text.push_str("COMMIT;");
    text
}

/// The due rows of the handlers, oldest first.
fn candidates(shape: ClaimShape, now: &str, limit: &str, first_arm: usize) -> String {
    let (mut text, mut bind) = (String::new(), first_arm);
    for arm in 0..shape.arms {
        let union = if arm == 0 { "" } else { "\n UNION ALL " };
        let range = format!(
            "SELECT handler, due_at, seq, claims, attempts, key FROM {{p}}ready \
             WHERE handler = ${bind} AND due_at <= {now} AND session IS NULL"
        );
        bind += 1;
        if shape.limited {
            let _ = write!(text, "{union}SELECT * FROM ({range} ORDER BY due_at, seq LIMIT ${bind} + 0)");
            bind += 1;
        } else {
            let _ = write!(text, "{union}{range}");
        }
    }
    let _ = write!(text, " ORDER BY due_at, seq LIMIT {limit} + 0");
    text
}

/// What waits behind the heads that were never claimed, packed.
fn followers(candidates: &str, most: &str, cap: &str) -> String {
    let rows = packed("w", cap);
    format!(
        "(SELECT {rows} FROM ({candidates}) c\n\
         CROSS JOIN {{p}}waiting w ON w.handler = c.handler AND w.key = c.key AND w.seq IN (\n\
         SELECT x.seq FROM {{p}}waiting x WHERE x.handler = c.handler AND x.key = c.key ORDER BY x.seq LIMIT {most} + 0)\n\
         CROSS JOIN {{p}}events e ON e.seq = w.seq WHERE c.claims = 0 AND w.seq > c.seq)"
    )
}

/// Deliveries `d` with their events `e` as one value: of each, 15 numbers apart by commas and ended by a colon, then
/// the texts they tell the lengths of. [`super::row`] reads it. Headers and payload of a large event are left out.
fn packed(d: &str, cap: &str) -> String {
    let numbers = [
        "octet_length({d}.handler)",
        "{d}.due_at",
        "{d}.seq",
        "{d}.claims",
        "{d}.attempts",
        "octet_length({d}.key)",
        "octet_length(e.id)",
        "e.created_at",
        "e.occurred_at",
        "octet_length(e.type)",
        "octet_length(e.source)",
        "octet_length(e.correlation)",
        "octet_length(e.causation)",
        "octet_length(e.headers)",
        "octet_length(e.payload)",
    ];
    let small = "CASE WHEN octet_length(e.headers) + octet_length(e.payload) <= {cap} THEN e.";
    format!(
        "group_concat(concat({}, ':', {{d}}.handler, {{d}}.key, e.id, e.type, e.source, e.correlation, e.causation, \
         {small}headers END, {small}payload END), '')",
        numbers.join(", ',', ")
    )
    .replace("{d}", d)
    .replace("{cap}", cap)
}
