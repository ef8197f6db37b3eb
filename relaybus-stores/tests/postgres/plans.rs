//! The plans of the store's statements over 1,000,000 deliveries: what a claim or a settlement costs must not grow with the
//! backlog, whatever the server knows of the tables.

use relaybus::EventStore;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use crate::kit::{Schema, connect};

/// The settings of a session's connection.
const SESSION: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off";

/// Statements that a session sends. Every plan must be one of indexes and places, before the tables were analysed too.
const OF_A_SESSION: [&str; 12] = [
    "turn",
    "settle_turn",
    "loose",
    "settle",
    "complete_unkeyed",
    "complete_keyed",
    "place_unkeyed",
    "place_keyed",
    "lock_held",
    "lock_held_waiting",
    "count_held",
    "free_held",
];

/// Statements of publishers and transactions, on connections whose settings are the application's.
const OF_A_TRANSACTION: [&str; 11] = [
    "append_one",
    "append_one_fresh",
    "append_one_keyed",
    "append_one_keyed_fresh",
    "append_batch",
    "append_batch_fresh",
    "append_batch_fresh_keyed",
    "lock_known",
    "add_handlers",
    "complete_unkeyed",
    "complete_keyed",
];

async fn run(connection: &mut PgConnection, sql: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{error}: {sql}"));
}

/// The steps of the generic plan of a text.
async fn plan(connection: &mut PgConnection, name: &str, text: &str) -> Vec<String> {
    let parameters = (1..=40).rev().find(|n| text.contains(&format!("${n}"))).unwrap_or(0);
    let nulls = vec!["NULL"; parameters].join(", ");
    run(connection, format!("PREPARE {name} AS {text}")).await;
    let explain =
        if parameters == 0 { format!("EXPLAIN EXECUTE {name}") } else { format!("EXPLAIN EXECUTE {name}({nulls})") };
    let rows = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_all(&mut *connection).await;
    let rows = rows.unwrap_or_else(|error| panic!("`{name}`: {error}"));
    run(connection, format!("DEALLOCATE {name}")).await;
    rows.iter().map(|row| row.get::<String, _>(0)).collect()
}

fn check(name: &str, steps: &[String]) {
    for (place, step) in steps.iter().enumerate() {
        let big = step.contains("deliveries") || step.contains("relaybus_events");
        // A scan of a whole index reads as much as one of the table.
        let whole =
            step.contains("Index Scan") && !steps.get(place + 1).is_some_and(|next| next.contains("Index Cond"));
        let walks = step.contains("Seq Scan") || step.contains("Bitmap") || whole;
        assert!(!(big && walks), "`{name}` walks over a table: {step}\n{}", steps.join("\n"));
    }
}

async fn fill(connection: &mut PgConnection, schema: &str) {
    run(
        connection,
        format!(
            "INSERT INTO {schema}.relaybus_handlers SELECT g, 'h' || g, decode(repeat('01', 256), 'hex') FROM generate_series(1, 10) g;
             INSERT INTO {schema}.relaybus_events (id, created_at, handlers, type, source, payload)
               SELECT decode(lpad(to_hex(g), 32, '0'), 'hex'), now(), '{{1}}', 't', 's', '{{}}' FROM generate_series(1, 50000) g;
             INSERT INTO {schema}.relaybus_deliveries (id, available_at, sequence, key, lane, handler, event_id)
               SELECT g, now() - interval '1 h' + g * interval '1 ms', CASE WHEN g % 2 = 0 THEN g END,
                 CASE WHEN g % 2 = 0 THEN g % 2000 END, g % 256, 1 + (g / 7) % 10, decode(lpad(to_hex(1 + g % 50000), 32, '0'), 'hex')
               FROM generate_series(1, 1000000) g"
        ),
    )
    .await;
}

#[tokio::test]
async fn no_statement_of_an_events_way_walks_over_a_table() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let texts = store.texts();
    let text =
        |name: &str| texts.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no `{name}`")).1.clone();
    let mut session = connect().await;
    run(&mut session, SESSION.to_owned()).await;
    // A new installation: the server believes that the tables are empty, and its plans must be right all the same.
    for name in OF_A_SESSION {
        check(name, &plan(&mut session, name, &text(name)).await);
    }
    let mut transaction = connect().await;
    fill(&mut transaction, &schema.name).await;
    for name in OF_A_SESSION {
        check(name, &plan(&mut session, name, &text(name)).await);
    }
    run(
        &mut transaction,
        format!("ANALYZE {}.relaybus_deliveries; ANALYZE {}.relaybus_events", schema.name, schema.name),
    )
    .await;
    for name in OF_A_SESSION {
        check(name, &plan(&mut session, name, &text(name)).await);
    }
    run(&mut transaction, "SET plan_cache_mode = force_generic_plan".to_owned()).await;
    for name in OF_A_TRANSACTION {
        check(name, &plan(&mut transaction, name, &text(name)).await);
    }
    store.close().await.unwrap();
}

fn indent(step: &str) -> usize {
    step.len() - step.trim_start().len()
}

/// Index scans of a claim read rows in the order of the index: nothing of the backlog is sorted.
#[tokio::test]
async fn a_claim_reads_due_rows_in_the_order_of_their_index() {
    let schema = Schema::new();
    let store = schema.builder().build().unwrap();
    store.setup().await.unwrap();
    let mut session = connect().await;
    run(&mut session, SESSION.to_owned()).await;
    let (name, text) = store.texts().into_iter().find(|(name, _)| name == "turn").unwrap();
    let steps = plan(&mut session, &name, &text).await;
    for index in ["deliveries_due_unkeyed", "deliveries_due_keyed", "deliveries_keys"] {
        let name = format!("Index Scan using relaybus_{index}");
        let at = steps.iter().position(|step| step.contains(&name));
        let at = at.unwrap_or_else(|| panic!("no scan of {index}:\n{}", steps.join("\n")));
        // What reads it stops it when it has enough: right above it is its limit, not a sort.
        let above =
            steps[..at].iter().rev().find(|step| step.contains("->") && indent(step) < indent(&steps[at])).unwrap();
        assert!(above.contains("Limit"), "{index} is read by `{above}`:\n{}", steps.join("\n"));
    }
    assert!(steps.iter().any(|step| step.contains("Tid Scan on relaybus_deliveries")), "{}", steps.join("\n"));
    // However many rows the planner expects to be picked: their events are found one by one, and never by reading all.
    run(&mut session, "SET enable_nestloop = off".to_owned()).await;
    let steps = plan(&mut session, &name, &text).await;
    let at = steps.iter().position(|step| step.contains("relaybus_events_pkey")).unwrap();
    assert!(steps[at + 1].contains("Index Cond: (id ="), "{}", steps.join("\n"));
    store.close().await.unwrap();
}
