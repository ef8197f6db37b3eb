//! Registering the handlers of a catalog at run time.

use std::time::Duration;

use super::{Catalog, CatalogEntry};
use crate::bus::{Given, Kind};
use crate::event::EventType;
use crate::registry::{ConsumerOptions, Order, SetTimeout};
use crate::retry::RetryOverrides;

/// Settings of `RelayBusBuilder::subscribe_catalog`, the same for every event.
///
/// ```
/// use relaybus::catalog::CatalogOptions;
/// let options = CatalogOptions::new().prefix("fulfilment").concurrency(4);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CatalogOptions {
    prefix: Option<String>,
    options: Option<ConsumerOptions>,
}

impl CatalogOptions {
    /// Ids under the catalog's name; everything else from the bus.
    pub fn new() -> Self {
        Self::default()
    }

    /// The beginning of the handler ids, `<prefix>.on_<event>`. They are stored with deliveries: keep it. Defaults to the
    /// name of the catalog.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Retry settings; the rest comes from the bus.
    pub fn retry(self, retry: RetryOverrides) -> Self {
        self.set(|options| options.retry = retry)
    }

    /// A handler's future is dropped after this time and the attempt fails. Defaults to the bus's.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|options| options.timeout = Some(SetTimeout::After(timeout)))
    }

    /// No timeout, whatever the bus's default.
    pub fn without_timeout(self) -> Self {
        self.set(|options| options.timeout = Some(SetTimeout::Never))
    }

    /// Most runs of each handler at once in this process. Defaults to the dispatcher's concurrency.
    pub fn concurrency(self, concurrency: usize) -> Self {
        self.set(|options| options.concurrency = Some(concurrency))
    }

    /// How runs of one key go on. Defaults to [`Order::Strict`].
    pub fn order(self, order: Order) -> Self {
        self.set(|options| options.order = order)
    }

    fn set(mut self, change: impl FnOnce(&mut ConsumerOptions)) -> Self {
        change(self.options.get_or_insert(ConsumerOptions::NONE));
        self
    }

    /// The handlers of the catalog `C` with these settings.
    pub(crate) fn given<C: Catalog>(&self, entries: &[CatalogEntry]) -> Vec<Given> {
        let prefix = self.prefix.as_deref().unwrap_or(C::NAME);
        let given = |entry: &CatalogEntry| Given {
            id: format!("{prefix}.{}", entry.method),
            event_types: entry.events.iter().map(|event| EventType::from_static(event.name)).collect(),
            needs: entry.needs.to_vec(),
            transactional: entry.transactional,
            options: self.options.unwrap_or(ConsumerOptions::NONE),
            kind: Kind::Entry { decode: entry.decode, call: entry.call },
            location: "",
        };
        entries.iter().map(given).collect()
    }
}
