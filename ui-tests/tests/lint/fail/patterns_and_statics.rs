//! A client in a static, in a pattern, and a function under another name.

use std::sync::LazyLock;

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};
use reqwest::Client;

static HTTP: LazyLock<Client> = LazyLock::new(Client::new);

struct Orders {
    http: Option<Client>,
}

impl Orders {
    #[transaction]
    async fn place(&self, _: &mut MemoryTransaction) -> Result<usize> {
        let mut sent = HTTP.get("https://a.example").await;
        if let Some(client) = &self.http {
            sent += client.get("https://b.example").await;
        }
        match self.http.as_ref() {
            Some(client) if sent > 0 => sent += client.get("https://c.example").await,
            _ => {}
        }
        for client in self.http.iter() {
            sent += client.get("https://d.example").await;
        }
        let get = reqwest::get;
        Ok(sent + get("https://e.example").await)
    }
}

fn main() {}
