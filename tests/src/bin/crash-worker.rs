//! A process of the crash test: a worker or a publisher. The test starts it, and kills it.

#[cfg(unix)]
fn main() -> Result<(), relaybus::BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    relaybus_tests::crash::main_of_process(&arguments)
}

#[cfg(not(unix))]
fn main() {}
