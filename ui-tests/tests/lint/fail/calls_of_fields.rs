//! A client in a field of the method's type, or in a field of that.

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

type Http = reqwest::Client;

struct Clients {
    http: Http,
}

struct Orders {
    clients: Clients,
    http: std::sync::Arc<Http>,
}

impl Orders {
    #[transaction]
    async fn place(&self, _: &mut MemoryTransaction) -> Result<usize> {
        Ok(self.http.get("https://a.example").await + self.clients.http.get("https://b.example").await)
    }
}

fn main() {}
