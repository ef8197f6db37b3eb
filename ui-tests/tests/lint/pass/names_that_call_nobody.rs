//! What looks like a call to another service and is none.

#![allow(dead_code, reason = "that it compiles is what it is for")]

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};

mod reqwest {
    pub(super) async fn get(url: &str) -> usize {
        std::future::ready(url.len()).await
    }
}

struct Command(usize);

impl Command {
    fn new(name: &str) -> Self {
        Self(name.len())
    }
}

#[transaction]
async fn place(_: &mut MemoryTransaction, client: usize) -> Result<usize> {
    fn get(client: usize) -> usize {
        client.pow(2)
    }
    let stdio = std::process::Stdio::null();
    drop(stdio);
    let address = std::net::Ipv4Addr::new(127, 0, 0, 1);
    let text = "reqwest::get";
    Ok(self::reqwest::get(text).await
        + reqwest::get(text).await
        + Command::new("ls").0
        + get(client)
        + address.octets().len())
}
