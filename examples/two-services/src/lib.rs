//! Runs the two services in one process, each with a database of its own and a wire between them.

mod wire;

pub use wire::Wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use relaybus::BoxError;

/// What became of the orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Orders that the orders service knows to be on their way.
    pub shipped: i64,
    /// Orders that were cancelled.
    pub cancelled: i64,
    /// Parcels of the shipping service that are on their way.
    pub parcels: i64,
    /// Parcels that it called back or never sent.
    pub called_back: i64,
}

/// Places `count` orders, cancels every fourth of them, and waits until both services know.
///
/// # Errors
/// A service's, or that they did not come to an end within a minute.
///
/// # Cancel safety
/// Dropping the future leaves the services running until the program ends.
pub async fn run(directory: &Path, count: i64) -> Result<Summary, BoxError> {
    let wire = Wire::default();
    let orders = orders::Service::start(directory, Arc::new(wire.end())).await?;
    let shipping = shipping::Service::start(directory, Arc::new(wire.end())).await?;
    for number in 0..count {
        let order_id = format!("order-{number}");
        orders.place(&order_id, "a kettle").await?;
        if number % 4 == 3 {
            orders.cancel(&order_id).await?;
        }
    }
    let cancelled = count / 4;
    let expected =
        Summary { shipped: count - cancelled, cancelled, parcels: count - cancelled, called_back: cancelled };
    let summary = async {
        loop {
            let summary = Summary {
                shipped: orders.count("shipped").await?,
                cancelled: orders.count("cancelled").await?,
                parcels: shipping.count("shipped").await?,
                called_back: shipping.count("cancelled").await?,
            };
            if summary == expected {
                return Ok::<_, BoxError>(summary);
            }
            pause().await;
        }
    };
    let summary = within_a_minute(summary).await?;
    orders.stop().await?;
    shipping.stop().await?;
    Ok(summary)
}

#[allow(clippy::disallowed_methods, reason = "a program runs in real time")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[allow(clippy::disallowed_methods, reason = "a program runs in real time")]
async fn within_a_minute<T>(work: impl Future<Output = Result<T, BoxError>>) -> Result<T, BoxError> {
    let timed = tokio::time::timeout(Duration::from_secs(60), work).await;
    timed.unwrap_or_else(|_| Err("the services did not come to an end within a minute".into()))
}
