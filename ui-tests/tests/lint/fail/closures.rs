//! The closures of `bus.transaction(..)`, and a transaction by hand, in what `#[lint_transactions]` stands on.

use relaybus::{MemoryStore, RelayBus, Result, lint_transactions};

struct Orders(RelayBus<MemoryStore>);

#[lint_transactions]
impl Orders {
    async fn place(&self, http: &reqwest::Client) -> Result<usize> {
        http.get("https://before.example").await;
        self.0.transaction(async |_| Ok(http.get("https://inside.example").await)).await
    }

    async fn by_hand(&self) -> Result<usize> {
        let tx = self.0.begin().await?;
        let found = reqwest::get("https://inside.example").await;
        tx.commit().await?;
        Ok(found + reqwest::get("https://after.example").await)
    }
}

fn main() {}
