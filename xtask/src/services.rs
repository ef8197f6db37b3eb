//! `cargo xtask services`: the servers that tests talk to.
//!
//! Each server has a variable that tests read. A variable that is already set always wins, so that people can point
//! the same tests at the containers of `compose.yaml` or at a server of their own. The embedded stores need none of
//! the servers: a crate that needs one replaces [`NOT_NEEDED`] in [`SERVICES`] by its own actions, and what its `up`
//! starts, its `down` stops.

use crate::{Outcome, postgres};

/// A server that tests may talk to.
struct Service {
    /// Its name, here and in `compose.yaml`.
    name: &'static str,
    /// The variable that tells tests where it is.
    variable: &'static str,
    actions: Actions,
}

/// What can be done with a server; each answers a sentence for the person who asked.
#[derive(Clone, Copy)]
struct Actions {
    up: fn(&Service) -> Outcome,
    down: fn(&Service) -> Outcome,
    status: fn(&Service) -> Outcome,
}

const SERVICES: [Service; 4] = [
    Service { name: "postgres", variable: "RELAYBUS_TEST_POSTGRES_URL", actions: POSTGRES },
    Service { name: "mongodb", variable: "RELAYBUS_TEST_MONGODB_URL", actions: NOT_NEEDED },
    Service { name: "kafka", variable: "RELAYBUS_TEST_KAFKA_BROKERS", actions: NOT_NEEDED },
    Service { name: "rabbitmq", variable: "RELAYBUS_TEST_AMQP_URL", actions: NOT_NEEDED },
];

const POSTGRES: Actions =
    Actions { up: |_| postgres::up(), down: |_| postgres::down(), status: |_| postgres::status() };

/// For a server that no crate of the workspace uses.
const NOT_NEEDED: Actions = Actions { up: not_needed, down: not_needed, status: not_needed };

fn not_needed(service: &Service) -> Outcome {
    Ok(format!("nothing to start, no crate of the workspace uses it ({} is not set)", service.variable))
}

/// Does one action for every service.
///
/// # Errors
///
/// When the action is unknown, or failed for a service (the others are done first).
pub(crate) fn run(action: &str) -> Outcome {
    let action: fn(&Actions) -> fn(&Service) -> Outcome = match action {
        "up" => |actions| actions.up,
        "down" => |actions| actions.down,
        "status" => |actions| actions.status,
        other => return Err(format!("unknown action `{other}`: expected `up`, `down` or `status`").into()),
    };
    let mut failed = Vec::new();
    for service in &SERVICES {
        let answer = match given(service, |name| std::env::var(name).ok()) {
            Some(note) => Ok(note),
            None => action(&service.actions)(service),
        };
        match answer {
            Ok(note) => println!("{:<9} {note}", service.name),
            Err(error) => {
                println!("{:<9} failed: {error}", service.name);
                failed.push(service.name);
            }
        }
    }
    if failed.is_empty() { Ok(String::new()) } else { Err(format!("failed for {}", failed.join(", ")).into()) }
}

/// Tells which servers the tests are going to use.
pub(crate) fn announce() {
    for service in &SERVICES {
        if let Some(note) = given(service, |name| std::env::var(name).ok()) {
            println!("{:<9} {note}", service.name);
        }
    }
}

/// The note for a server that the environment names. The address is not shown: it may hold a password.
fn given(service: &Service, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    variable(service.variable)
        .filter(|value| !value.is_empty())
        .map(|_| format!("{} is set: tests use that server, nothing is started or stopped here", service.variable))
}

#[cfg(test)]
mod tests {
    use super::{SERVICES, given, not_needed, run};

    #[test]
    fn a_variable_wins_over_everything_and_is_not_shown() {
        let service = &SERVICES[0];
        let note = given(service, |_| Some("postgres://app:secret@db/app".to_owned())).unwrap();
        assert!(note.starts_with("RELAYBUS_TEST_POSTGRES_URL is set"), "{note}");
        assert!(!note.contains("secret"), "{note}");
        assert_eq!(given(service, |_| Some(String::new())), None);
        assert_eq!(given(service, |_| None), None);
    }

    #[test]
    fn an_unneeded_server_says_so_in_one_line() {
        for service in SERVICES.iter().filter(|service| service.name != "postgres") {
            let note = not_needed(service).unwrap();
            assert!(note.starts_with("nothing to start") && note.contains(service.variable), "{note}");
            assert_eq!(note.lines().count(), 1);
        }
    }

    #[test]
    fn an_unknown_action_is_refused() {
        assert_eq!(
            run("restart").unwrap_err().to_string(),
            "unknown action `restart`: expected `up`, `down` or `status`"
        );
    }

    #[test]
    fn the_compose_file_has_every_service_and_tells_its_variable() {
        let compose = include_str!("../../compose.yaml");
        for service in &SERVICES {
            assert!(compose.lines().any(|line| line == format!("  {}:", service.name)), "{}", service.name);
            assert!(compose.contains(service.variable), "{}", service.variable);
        }
    }
}
