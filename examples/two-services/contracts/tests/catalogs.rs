//! The catalog keeps what it promised: `cargo relaybus catalog update` writes the file anew.

relaybus_testing::catalog_snapshots! {
    contracts::OrderEvents => "schemas/orders.json",
}
