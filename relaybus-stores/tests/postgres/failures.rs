//! Outages: nothing is lost or done twice, no key is stuck, nobody is restarted, and nobody asks a server that cannot answer
//! over and over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relaybus::{DispatcherOptions, HandlerContext, RelayBus, Result, RetryPolicy, State, consumer, handlers};
use relaybus_stores::PostgresStore;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use tokio::sync::Semaphore;

use crate::outage::{Life, Server};

/// What two workers and a publisher may report in a second without the server: polls, renewals, handlers.
const REPORTS: u64 = 150;

async fn wait(millis: u64) {
    // sleep: how long an outage lasts.
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Transactions that the server began since.
async fn transactions(server: &Server) -> i64 {
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";
    sqlx::query_scalar(count).fetch_one(&mut server.connect().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_is_met_again() {
    let server = Server::start().await;
    let life = Life::start(&server).await;
    life.warm_up().await;
    for mode in ["fast", "immediate"] {
        let before = life.reported();
        server.cluster.stop(mode).unwrap();
        wait(2_000).await;
        let reported = life.reported() - before;
        assert!(reported < 3 * REPORTS, "{reported} failures were reported in two seconds: a hot loop");
        server.cluster.start().unwrap();
        wait(700).await;
    }
    life.all_is_well(&server).await;
}

#[derive(relaybus::Event, serde::Serialize, serde::Deserialize)]
#[event("failures.waited.v1")]
struct Waited {
    name: String,
}

/// Where the handlers of a test are.
struct Waiting {
    began: AtomicU32,
    attempt: AtomicU32,
    go_on: Semaphore,
}

/// Waits in the middle of its transaction, and succeeds.
#[consumer(Waited, id = "waits", transactional, retry(attempts = 1))]
async fn waits(event: &Waited, tx: &mut PgConnection, here: State<Waiting>, context: &HandlerContext) -> Result {
    let insert = sqlx::query("INSERT INTO effects (name, key) VALUES ($1, '')").bind(&event.name);
    insert.execute(tx).await.map_err(|error| relaybus::Error::store("no effect", Some(error.into())))?;
    here.attempt.fetch_max(context.attempt(), Ordering::SeqCst);
    here.began.fetch_add(1, Ordering::SeqCst);
    let _ = here.go_on.acquire().await;
    Ok(())
}

/// A restart breaks the transactions of all handlers that run. None of them loses an attempt for it, and each has its effect
/// once: whether they end while the server is away, or when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_running_handlers_costs_no_attempt() {
    const HANDLERS: u32 = 4;
    for ends_while_away in [true, false] {
        let server = Server::start().await;
        let here = Arc::new(Waiting { began: AtomicU32::new(0), attempt: AtomicU32::new(0), go_on: Semaphore::new(0) });
        let bus = RelayBus::builder(server.store().build().unwrap())
            .retry(RetryPolicy { attempts: Some(1), ..RetryPolicy::default() })
            .dispatcher(DispatcherOptions::default().poll_interval("200ms"))
            .handlers(handlers![waits])
            .provide_shared(Arc::clone(&here))
            .build()
            .unwrap();
        bus.start().await.unwrap();
        for number in 0..HANDLERS {
            bus.publish_detached(Waited { name: format!("e{number}") }).await.unwrap();
        }
        while here.began.load(Ordering::SeqCst) < HANDLERS {
            wait(10).await;
        }
        server.cluster.stop("immediate").unwrap();
        if ends_while_away {
            here.go_on.close();
            wait(500).await;
        }
        server.cluster.start().unwrap();
        here.go_on.close();
        let mut connection = server.connect().await;
        let left = "SELECT count(*) FROM relaybus_deliveries WHERE NOT dead";
        while sqlx::query_scalar::<_, i64>(left).fetch_one(&mut connection).await.unwrap() > 0 {
            wait(20).await;
        }
        bus.stop().await.unwrap();
        let ended = "SELECT (SELECT count(*) FROM relaybus_deliveries), count(*), count(DISTINCT name) FROM effects";
        let ended: (i64, i64, i64) = sqlx::query_as(ended).fetch_one(&mut connection).await.unwrap();
        assert_eq!(ended, (0, HANDLERS.into(), HANDLERS.into()), "dead letters, effects, deliveries with an effect");
        assert_eq!(here.began.load(Ordering::SeqCst), 2 * HANDLERS, "each ran again");
        assert_eq!(here.attempt.load(Ordering::SeqCst), 1, "nothing was charged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_end_at_random_do_no_harm() {
    let server = Server::start().await;
    let life = Life::start(&server).await;
    life.warm_up().await;
    let mut killer = server.connect().await;
    let mut killed = 0;
    for _ in 0..100 {
        let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) x";
        let one: i64 = sqlx::query_scalar(kill).fetch_one(&mut killer).await.unwrap();
        killed += one;
        wait(30).await;
    }
    assert!(killed > 80, "{killed} connections were ended");
    life.all_is_well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fail_over_to_a_read_only_server_and_back_loses_nothing() {
    let server = Server::start().await;
    let life = Life::start(&server).await;
    life.warm_up().await;
    server.set(&[("default_transaction_read_only", Some("on"))]).await;
    wait(500).await;
    let (before, began) = (life.reported(), transactions(&server).await);
    wait(3_000).await;
    let (reported, tried) = (life.reported() - before, transactions(&server).await - began);
    assert!(reported < 4 * REPORTS, "{reported} failures were reported in three seconds: a hot loop");
    // A publisher tries every four milliseconds.
    assert!(tried < 4_000, "{tried} transactions in three seconds: a hot loop");
    server.set(&[("default_transaction_read_only", None)]).await;
    life.all_is_well(&server).await;
}

/// All connections of the application's pool are taken by the application: bookkeeping has its own, so leases are kept, and what
/// waits for a connection goes on when there is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_costs_time_alone() {
    let server = Server::start().await;
    let pool = || {
        let pool = PgPoolOptions::new().max_connections(3).acquire_timeout(Duration::from_millis(700));
        pool.connect_lazy_with(server.options())
    };
    let pools = [pool(), pool(), pool()];
    let store = |pool: &sqlx::PgPool| {
        PostgresStore::with_pool(pool.clone()).takeover_margin(Duration::from_millis(200)).build().unwrap()
    };
    let life = Life::start_on(store(&pools[0]), [store(&pools[1]), store(&pools[2])]).await;
    life.warm_up().await;
    let mut taken = Vec::new();
    for pool in &pools {
        while taken.len() % 3 != 0
            || taken.len() < 3 * (1 + pools.iter().position(|one| std::ptr::eq(one, pool)).unwrap())
        {
            if let Ok(connection) = pool.acquire().await {
                taken.push(connection);
            }
        }
    }
    let (noted, before) = (life.seen.noted.load(Ordering::Relaxed), life.reported());
    wait(3_500).await;
    let reported = life.reported() - before;
    assert!(reported < 4 * REPORTS, "{reported} failures were reported: a hot loop");
    assert!(life.seen.noted.load(Ordering::Relaxed) >= noted);
    drop(taken);
    life.all_is_well(&server).await;
}

/// Limits that an operator sets on the server: whatever they end is done again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeouts_of_the_server_lose_nothing() {
    let server = Server::start().await;
    let life = Life::start(&server).await;
    life.warm_up().await;
    let limits =
        [("statement_timeout", "15ms"), ("lock_timeout", "2ms"), ("idle_in_transaction_session_timeout", "30ms")];
    for (name, value) in limits {
        server.set(&[(name, Some(value))]).await;
        life.seen.pause.store(if name.starts_with("idle") { 60 } else { 0 }, Ordering::Relaxed);
        wait(2_000).await;
        server.set(&[(name, None)]).await;
    }
    life.seen.pause.store(0, Ordering::Relaxed);
    life.all_is_well(&server).await;
}

/// The disk of the tables is full for a while. It is a small file system of the server's own, which takes rights that not everybody
/// has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing() {
    let server = Server::stopped();
    let disk = server.folder().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=6m tmpfs '{0}' && chown postgres '{0}'", disk.display());
    if !server.cluster.start_after(&mount).unwrap() {
        println!("no file system can be mounted here: nothing was tested");
        return;
    }
    let mut admin = server.connect().await;
    for text in [
        &*format!("CREATE TABLESPACE small LOCATION '{}'", disk.display()),
        "CREATE TABLE filler (text text) TABLESPACE small",
        "ALTER TABLE filler ALTER text SET STORAGE PLAIN",
        "ALTER DATABASE postgres SET default_tablespace = small",
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned())).execute(&mut admin).await.unwrap();
    }
    drop(admin);
    server.create_tables().await;
    let life = Life::start(&server).await;
    life.warm_up().await;
    let mut admin = server.connect().await;
    let fill = "INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, 20)";
    let mut full = None;
    for _ in 0..200 {
        if let Err(error) = sqlx::raw_sql(fill).execute(&mut admin).await {
            full = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
            break;
        }
    }
    assert_eq!(full.as_deref(), Some("53100"), "the disk is full");
    let before = life.reported();
    // What is left in the pages runs out while the application goes on.
    for _ in 0..8 {
        wait(400).await;
        let _ = sqlx::raw_sql("INSERT INTO filler VALUES (repeat('x', 7000))").execute(&mut admin).await;
    }
    let reported = life.reported() - before;
    assert!(reported < 4 * REPORTS, "{reported} failures were reported: a hot loop");
    sqlx::raw_sql("DROP TABLE filler").execute(&mut admin).await.unwrap();
    drop(admin);
    life.all_is_well(&server).await;
}
