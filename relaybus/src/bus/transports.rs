//! The transports of a bus, checked together with its subscriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::Subscription;
use crate::transport::Transport;

/// The transports by their names, and those whose name another one has.
pub(super) fn named(transports: Vec<Arc<dyn Transport>>) -> (BTreeMap<String, Arc<dyn Transport>>, Vec<String>) {
    let mut named: BTreeMap<String, Arc<dyn Transport>> = BTreeMap::new();
    let mut faults = Vec::new();
    for transport in transports {
        let name = transport.name().to_owned();
        if named.insert(name.clone(), transport).is_some() {
            faults.push(format!("two transports are called `{name}`: give one another name"));
        }
    }
    (named, faults)
}

/// The subscriptions that nothing can be received from.
pub(super) fn check_subscriptions(
    subscriptions: &[Subscription],
    transports: &BTreeMap<String, Arc<dyn Transport>>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for Subscription { transport, destinations } in subscriptions {
        if !transports.contains_key(transport) {
            faults.push(format!(
                "a subscription needs the transport `{transport}`, which the bus does not have: add it with `.transport(..)`"
            ));
        }
        if destinations.is_empty() {
            faults.push(format!("a subscription to `{transport}` has no destinations: name at least one"));
        }
    }
    faults
}
