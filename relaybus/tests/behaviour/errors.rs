//! Errors: their codes, their words, and what is kept of them.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::time::Duration;

use relaybus::{BoxError, Error, ErrorInfo, EventType};

fn source() -> Option<BoxError> {
    Some("connection refused".into())
}

/// One of each kind.
fn one_of_each() -> Vec<Error> {
    let event_type = EventType::new("order.placed.v1").unwrap();
    let message = || "two names for one event".to_owned();
    vec![
        Error::UnknownCatalogEvent { message: message() },
        Error::DuplicateRouteEvent { message: message() },
        Error::WireTypeCollision { message: message() },
        Error::WireTypesUnsupported { message: message() },
        Error::configuration("option `x` is 0, expected at least 1"),
        Error::TransactionRequired { message: message() },
        Error::TransactionTimeout { budget: Duration::from_secs(5), source: source() },
        Error::TransactionIsolationConflict { wanted: "serializable", running: "read committed" },
        Error::non_retryable("no such account"),
        Error::EventValidation { event_type, reason: "its validation refused it".to_owned(), source: source() },
        Error::InvalidEnvelope { reason: "it has no id".to_owned() },
        Error::LeaseLost,
        Error::HandlerTimeout { timeout: Duration::from_millis(250) },
        Error::DispatcherStopped,
        Error::AttemptsExhausted { attempts: 3, max_attempts: 3 },
        Error::lifecycle("the bus cannot be started: it is running"),
        Error::DrainIncomplete { batches: 10_000 },
        Error::HandlerPanicked { message: "boom".to_owned() },
        Error::ObserverPanicked { message: "boom".to_owned() },
        Error::Handler { source: "card declined".into() },
        Error::store_retryable("the store is away", "connection refused"),
        Error::store("the file is not a store", source()),
        Error::SessionLost,
        Error::SerializationFailure { source: source() },
        Error::Transport {
            message: "the broker did not confirm".to_owned(),
            code: "RELAYBUS_KAFKA_PUBLISH_TIMEOUT",
            retryable: true,
            source: source(),
        },
    ]
}

#[test]
fn the_codes_are_those_of_the_specification() {
    let codes: BTreeSet<&str> = one_of_each().iter().map(Error::code).filter(|code| !code.contains("KAFKA")).collect();
    let specified = BTreeSet::from([
        "RELAYBUS_ERROR",
        "RELAYBUS_CONFIGURATION",
        "RELAYBUS_CATALOG_UNKNOWN_EVENT",
        "RELAYBUS_ROUTE_DUPLICATE_EVENT",
        "RELAYBUS_WIRE_TYPE_COLLISION",
        "RELAYBUS_WIRE_TYPES_UNSUPPORTED",
        "RELAYBUS_TRANSACTION_REQUIRED",
        "RELAYBUS_TRANSACTION_TIMEOUT",
        "RELAYBUS_TRANSACTION_ISOLATION_CONFLICT",
        "RELAYBUS_NON_RETRYABLE",
        "RELAYBUS_EVENT_VALIDATION",
        "RELAYBUS_INVALID_ENVELOPE",
        "RELAYBUS_LEASE_LOST",
        "RELAYBUS_HANDLER_TIMEOUT",
        "RELAYBUS_DISPATCHER_STOPPED",
        "RELAYBUS_ATTEMPTS_EXHAUSTED",
        "RELAYBUS_LIFECYCLE",
        "RELAYBUS_DRAIN_INCOMPLETE",
    ]);
    assert_eq!(codes, specified);
}

#[test]
fn classes_are_named_as_in_the_specification() {
    for error in one_of_each() {
        let specified = error.code().strip_prefix("RELAYBUS_").unwrap();
        let name = match specified {
            "ERROR" => continue,
            kafka if kafka.starts_with("KAFKA") => continue,
            // The two whose classes are not spelled as their codes.
            "CATALOG_UNKNOWN_EVENT" => "UnknownCatalogEvent".to_owned(),
            "ROUTE_DUPLICATE_EVENT" => "DuplicateRouteEvent".to_owned(),
            words => words.split('_').map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect(),
        };
        assert_eq!(error.name(), name + "Error");
    }
}

#[test]
fn only_what_can_never_succeed_is_not_retried() {
    let never: Vec<&str> = one_of_each().iter().filter(|error| !error.is_retryable()).map(Error::name).collect();
    assert_eq!(never, ["NonRetryableError", "EventValidationError", "InvalidEnvelopeError", "AttemptsExhaustedError"]);
    let refused = Error::Transport { message: String::new(), code: "X", retryable: false, source: None };
    assert!(!refused.is_retryable());
}

#[test]
fn messages_are_lower_case_without_a_full_stop_and_with_paired_backticks() {
    for error in one_of_each() {
        let text = error.to_string();
        let first = text.chars().next().unwrap();
        assert!(first.is_lowercase() || first == '`', "{text}");
        assert!(!text.ends_with(['.', '!', ' ', '\n']), "{text}");
        assert_eq!(text.matches('`').count() % 2, 0, "{text}");
        assert!(!text.contains("  ") && !text.contains("{"), "{text}");
    }
}

#[test]
fn a_chain_tells_every_line_once() {
    for error in one_of_each() {
        let text = error.to_string();
        if let Some(cause) = error.source() {
            assert!(!text.contains(&cause.to_string()), "{text}");
        }
        let message = ErrorInfo::of(&error).message;
        let lines: Vec<&str> = message.split(": ").collect();
        let distinct: BTreeSet<&str> = lines.iter().copied().collect();
        assert_eq!(lines.len(), distinct.len(), "{message}");
    }
}

#[test]
fn what_is_kept_has_a_code_only_when_it_is_ours() {
    for error in one_of_each() {
        let info = ErrorInfo::of(&error);
        let foreign = matches!(error, Error::Handler { .. } | Error::HandlerPanicked { .. });
        assert_eq!(info.code.is_none(), foreign, "{info:?}");
        let back: ErrorInfo = serde_json::from_str(&info.to_json()).unwrap();
        assert_eq!(back, info);
    }
    let handler = Error::Handler { source: "card declined".into() };
    assert_eq!(ErrorInfo::of(&handler).to_json(), r#"{"name":"Error","message":"card declined"}"#);
    let ours = Error::Handler { source: Box::new(Error::non_retryable("no")) };
    assert_eq!(ErrorInfo::of(&ours).code.as_deref(), Some("RELAYBUS_NON_RETRYABLE"));
}

#[test]
fn what_is_kept_is_short_and_can_be_stored_anywhere() {
    let info = ErrorInfo::of(&Error::Handler { source: "ä\0".repeat(10_000).into() });
    assert!(info.message.len() <= 4096 && info.message.len() > 4000);
    assert!(!info.message.contains('\0') && info.message.starts_with("ä\u{FFFD}"));
}
