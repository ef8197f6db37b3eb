//! Runs the two services: `cargo run -p two-services -- [orders] [directory]`.

use std::io::Write;
use std::process::ExitCode;

use relaybus::BoxError;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "two-services: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(20), |count| count.parse())?;
    let own = std::env::temp_dir().join(format!("two-services-{}", std::process::id()));
    let given = arguments.next();
    let directory = given.as_ref().map_or(own, Into::into);
    std::fs::create_dir_all(&directory)?;
    let summary = two_services::run(&directory, count).await?;
    writeln!(
        std::io::stdout(),
        "orders:   {} shipped, {} cancelled\nshipping: {} parcels sent, {} called back or kept",
        summary.shipped,
        summary.cancelled,
        summary.parcels,
        summary.called_back
    )?;
    if given.is_none() {
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}
