//! A proxy between a store and the server that counts what is sent, and loses answers when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What was sent so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Statements that were run.
    pub executed: u64,
    /// Statements that were parsed.
    pub parsed: u64,
    /// Times the server was asked to answer.
    pub answered: u64,
}

impl Counts {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            executed: self.executed - before.executed,
            parsed: self.parsed - before.parsed,
            answered: self.answered - before.answered,
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    executed: AtomicU64,
    parsed: AtomicU64,
    answered: AtomicU64,
    /// Questions until the answer to one is lost, and its connection with it; 0 for never.
    lose_at: AtomicU64,
    /// Questions until one never reaches the server, and its connection is lost; 0 for never.
    cut_at: AtomicU64,
    /// Questions until one is kept back, with its connection open; 0 for never.
    hold_at: AtomicU64,
    /// Lets what is kept back go on.
    go_on: Notify,
}

/// The proxy; it ends with the runtime of its test.
pub struct Proxy {
    port: u16,
    server: PgConnectOptions,
    shared: Arc<Shared>,
}

impl Proxy {
    pub async fn start(server: PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let (address, counted) = ((server.get_host().to_owned(), server.get_port()), Arc::clone(&shared));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect((address.0.as_str(), address.1)).await.unwrap();
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let deaf = Arc::new(AtomicBool::new(false));
                tokio::spawn(answers(from_server, to_client, Arc::clone(&deaf)));
                tokio::spawn(requests(from_client, to_server, Arc::clone(&counted), deaf));
            }
        });
        Self { port, server, shared }
    }

    pub fn options(&self) -> PgConnectOptions {
        self.server.clone().host("127.0.0.1").port(self.port).ssl_mode(sqlx::postgres::PgSslMode::Disable)
    }

    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        Counts {
            executed: read(&self.shared.executed),
            parsed: read(&self.shared.parsed),
            answered: read(&self.shared.answered),
        }
    }

    /// The server will do what the `n`-th question from now on asks, but its answer is lost.
    pub fn lose_answer(&self, n: u64) {
        self.shared.lose_at.store(n, Ordering::SeqCst);
    }

    /// The `n`-th question from now on never reaches the server.
    pub fn lose_question(&self, n: u64) {
        self.shared.cut_at.store(n, Ordering::SeqCst);
    }

    /// The `n`-th question from now on is kept back, and its connection stays open: as if its process were stopped.
    pub fn hold_question(&self, n: u64) {
        self.shared.hold_at.store(n, Ordering::SeqCst);
    }

    /// What is kept back goes on.
    pub fn go_on(&self) {
        self.shared.go_on.notify_one();
    }

    /// Whether a question was kept back.
    pub fn holds(&self) -> bool {
        self.shared.hold_at.load(Ordering::SeqCst) == 0
    }

    /// Whether what was to be lost has been lost.
    pub fn has_lost(&self) -> bool {
        self.shared.lose_at.load(Ordering::SeqCst) == 0 && self.shared.cut_at.load(Ordering::SeqCst) == 0
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, deaf: Arc<AtomicBool>) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if deaf.load(Ordering::SeqCst) || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Passes on whole messages: a kind, a length, a body. The first has no kind.
async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>, deaf: Arc<AtomicBool>) {
    let (mut first, mut question) = (true, Vec::new());
    loop {
        let mut message = Vec::new();
        if !first {
            let Ok(kind) = from.read_u8().await else { return };
            message.push(kind);
        }
        let Ok(length) = from.read_u32().await else { return };
        message.extend(length.to_be_bytes());
        let mut body = vec![0; length as usize - 4];
        if from.read_exact(&mut body).await.is_err() {
            return;
        }
        message.extend(body);
        if !first {
            match message[0] {
                b'E' => drop(shared.executed.fetch_add(1, Ordering::SeqCst)),
                b'P' => drop(shared.parsed.fetch_add(1, Ordering::SeqCst)),
                b'S' => drop(shared.answered.fetch_add(1, Ordering::SeqCst)),
                b'Q' => {
                    shared.executed.fetch_add(1, Ordering::SeqCst);
                    shared.answered.fetch_add(1, Ordering::SeqCst);
                }
                _ => {}
            }
            if matches!(message[0], b'S' | b'Q') {
                let count_down = |counter: &AtomicU64| {
                    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
                };
                if count_down(&shared.cut_at) {
                    return;
                }
                if count_down(&shared.hold_at) {
                    shared.go_on.notified().await;
                }
                if count_down(&shared.lose_at) {
                    deaf.store(true, Ordering::SeqCst);
                }
            }
        }
        // The parts of a question travel together, as a client sends them.
        let is_part = !first && matches!(message[0], b'P' | b'B' | b'D' | b'E' | b'C');
        first = false;
        question.extend(message);
        if !is_part && to.write_all(&std::mem::take(&mut question)).await.is_err() {
            return;
        }
    }
}
