//! Calls to other services, by several names.

use std::process::Command;

use relaybus::memory::MemoryTransaction;
use relaybus::{Result, transaction};
use reqwest::{self as web, Client as Http};

#[transaction]
async fn place(_: &mut MemoryTransaction, http: &Http) -> Result<usize> {
    use std::net::TcpStream as Stream;
    let found = reqwest::get("https://fraud.example").await + web::get("https://b.example").await;
    let again = http.clone();
    let (stream, listing) = (Stream::connect("127.0.0.1:80"), Command::new("ls").output());
    drop((stream, listing));
    Ok(found + http.get("https://c.example").await + again.get("https://d.example").await)
}

fn main() {}
