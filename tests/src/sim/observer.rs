//! What the bus reports: written into the story, and compared with what the store says.

use std::sync::Arc;
use std::time::Duration;

use relaybus::store::DeliveryId;
use relaybus::{Error, ErrorInfo, Interest, Observer, Stage};

use super::process::Process;

pub(crate) struct SimObserver(pub(crate) Arc<Process>);

fn name(delivery: &DeliveryId) -> (String, String) {
    (delivery.handler().to_string(), delivery.event_id().to_string())
}

impl Observer for SimObserver {
    fn interest(&self) -> Interest {
        Interest::DELIVERY | Interest::FAILURE
    }

    fn delivery_completed(&self, delivery: &DeliveryId) {
        self.ended(delivery, false);
    }

    fn retry_scheduled(&self, delivery: &DeliveryId, attempt: u32, delay: Duration, error: &ErrorInfo) {
        if !self.0.gate.is_dead() {
            let message = &error.message;
            self.0.say(format_args!("reports {delivery}: attempt {attempt} failed, again in {delay:?}: {message}"));
        }
    }

    fn delivery_dead(&self, delivery: &DeliveryId, _attempt: u32, _error: &ErrorInfo) {
        self.ended(delivery, true);
    }

    fn lease_lost(&self, delivery: &DeliveryId) {
        if !self.0.gate.is_dead() {
            self.0.say(format_args!("reports {delivery}: lease lost"));
        }
    }

    fn failure(&self, stage: Stage, error: &Error) {
        if !self.0.gate.is_dead() {
            self.0.say(format_args!("reports failure at {}: {}", stage.as_str(), ErrorInfo::of(error).message));
        }
    }
}

impl SimObserver {
    fn ended(&self, delivery: &DeliveryId, dead: bool) {
        if self.0.gate.is_dead() {
            return;
        }
        self.0.say(format_args!("reports {delivery}: {}", if dead { "dead" } else { "completed" }));
        self.0.world.model(|model| model.reported(&name(delivery), dead, &self.0.name));
    }
}
