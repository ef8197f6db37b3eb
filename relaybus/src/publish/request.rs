//! The builders that `publish` and `publish_all` return. Awaiting one writes the events.

use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::batch::EventBatch;
use super::prepare::{Draft, Prepared, PublishSettings, prepare};
use crate::bus::{Announcement, Engine, Isolated};
use crate::duration::IntoDuration;
use crate::error::{Error, Result};
use crate::event::{EventId, EventType};
use crate::observe::{Interest, PublishFinished};
use crate::store::{AppendBatch, Appended, EventStore, Family, HandleOf};

/// Where the events are written.
pub(crate) enum Target<'a, S: EventStore> {
    /// In the caller's transaction; one at an isolation level holds back what is announced.
    Handle(&'a S, <S::Family as Family>::Handle<'a>, Option<Arc<Isolated>>),
    /// In a transaction of the store's own.
    Alone(&'a S),
    /// In a transaction of another database, which is refused.
    Elsewhere,
}

impl<'a, S: EventStore> Target<'a, S> {
    fn of<H: HandleOf<S::Family> + ?Sized>(store: &'a S, handle: &'a mut H) -> Self {
        if handle.database().zip(store.database()).is_some_and(|(theirs, ours)| theirs != ours) {
            return Self::Elsewhere;
        }
        let isolated = Isolated::at(handle.address());
        Self::Handle(store, handle.handle(), isolated)
    }

    fn is_alone(&self) -> bool {
        matches!(self, Self::Alone(_))
    }

    fn isolated(&self) -> Option<Arc<Isolated>> {
        match self {
            Self::Handle(_, _, isolated) => isolated.clone(),
            Self::Alone(_) | Self::Elsewhere => None,
        }
    }

    async fn append(self, batch: &AppendBatch) -> Result<Appended> {
        match self {
            Self::Handle(store, handle, _) => store.append(handle, batch).await,
            Self::Alone(store) => store.append_alone(batch).await,
            Self::Elsewhere => Err(Error::configuration(
                "this transaction belongs to another database: publish through the bus whose store opened it",
            )),
        }
    }
}

/// A publish that runs when it is awaited.
#[must_use = "a publish does nothing until it is awaited"]
pub struct Publish<'a, S: EventStore> {
    engine: &'a Arc<Engine>,
    target: Target<'a, S>,
    draft: Draft,
    settings: PublishSettings,
}

impl<'a, S: EventStore> Publish<'a, S> {
    pub(crate) fn in_transaction<H: HandleOf<S::Family> + ?Sized>(
        engine: &'a Arc<Engine>,
        store: &'a S,
        handle: &'a mut H,
        draft: Draft,
    ) -> Self {
        Self { engine, target: Target::of(store, handle), draft, settings: PublishSettings::default() }
    }

    pub(crate) fn alone(engine: &'a Arc<Engine>, store: &'a S, draft: Draft) -> Self {
        Self { engine, target: Target::Alone(store), draft, settings: PublishSettings::default() }
    }

    /// The event's id, for idempotent publishing: publishing the same id again stores nothing new and runs no handler again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.settings.id(id.into());
        self
    }
}

/// Several events published together when it is awaited: one call to the store.
#[must_use = "a publish does nothing until it is awaited"]
pub struct PublishAll<'a, S: EventStore> {
    engine: &'a Arc<Engine>,
    target: Target<'a, S>,
    batch: EventBatch,
    settings: PublishSettings,
}

impl<'a, S: EventStore> PublishAll<'a, S> {
    pub(crate) fn in_transaction<H: HandleOf<S::Family> + ?Sized>(
        engine: &'a Arc<Engine>,
        store: &'a S,
        handle: &'a mut H,
        batch: EventBatch,
    ) -> Self {
        Self { engine, target: Target::of(store, handle), batch, settings: PublishSettings::default() }
    }

    pub(crate) fn alone(engine: &'a Arc<Engine>, store: &'a S, batch: EventBatch) -> Self {
        Self { engine, target: Target::Alone(store), batch, settings: PublishSettings::default() }
    }
}

/// The settings that one event and several have in common.
macro_rules! publish_settings {
    ($publish:ident) => {
        impl<S: EventStore> $publish<'_, S> {
            /// The ordering key, in place of the event's own.
            pub fn key(mut self, key: impl Into<String>) -> Self {
                self.settings.key(key.into());
                self
            }

            /// No ordering key, whatever the event's own.
            pub fn without_key(mut self) -> Self {
                self.settings.without_key();
                self
            }

            /// Handlers run this much later: a [`Duration`](std::time::Duration), or text such as `"5m"`.
            pub fn delay(mut self, delay: impl IntoDuration) -> Self {
                self.settings.delay(delay);
                self
            }

            /// A header. A later value of the same name replaces the earlier one.
            pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.settings.header(name.into(), value.into());
                self
            }

            /// Groups the events of one business transaction. Defaults to the event's own id.
            pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
                self.settings.correlation_id(id.into());
                self
            }

            /// The event or command that caused this one.
            pub fn causation_id(mut self, id: impl Into<String>) -> Self {
                self.settings.causation_id(id.into());
                self
            }

            /// When it happened. Defaults to now.
            pub fn occurred_at(mut self, at: crate::Timestamp) -> Self {
                self.settings.occurred_at(at);
                self
            }
        }

        impl<S: EventStore> std::fmt::Debug for $publish<'_, S> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($publish)).field("settings", &self.settings).finish_non_exhaustive()
            }
        }
    };
}
publish_settings!(Publish);
publish_settings!(PublishAll);

impl<'a, S: EventStore> IntoFuture for Publish<'a, S> {
    type Output = Result<EventId>;
    type IntoFuture = BoxFuture<'a, Result<EventId>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let ids = write(self.engine, self.target, vec![self.draft], self.settings).await?;
            ids.into_iter().next().ok_or_else(|| Error::store("the store answered without an id", None))
        })
    }
}

impl<'a, S: EventStore> IntoFuture for PublishAll<'a, S> {
    type Output = Result<Vec<EventId>>;
    type IntoFuture = BoxFuture<'a, Result<Vec<EventId>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { write(self.engine, self.target, self.batch.into_drafts(), self.settings).await })
    }
}

async fn write<S: EventStore>(
    engine: &Arc<Engine>,
    target: Target<'_, S>,
    drafts: Vec<Draft>,
    settings: PublishSettings,
) -> Result<Vec<EventId>> {
    if drafts.is_empty() {
        return Ok(Vec::new());
    }
    let timed = engine.observers.want(Interest::PUBLISH).then(|| engine.clock.monotonic());
    let told = timed.is_some() || engine.tracer.is_some();
    let event_types: Vec<EventType> =
        if told { drafts.iter().map(|draft| draft.event_type().clone()).collect() } else { Vec::new() };
    let span = engine.tracer.as_ref().map(|tracer| tracer.publish(&event_types));
    let headers = span.as_ref().map(|span| span.headers()).unwrap_or_default();
    let isolated = target.isolated();
    engine.know_the_offset().await;
    let result = match prepare(engine, drafts, settings, headers) {
        Ok(prepared) => store(engine, target, prepared).await,
        Err(error) => Err(error),
    };
    if let Some(span) = span {
        span.finish(result.as_ref().err());
    }
    let duration = timed.map(|began| engine.clock.monotonic().saturating_sub(began));
    match isolated {
        Some(isolated) if result.is_ok() => {
            isolated.hold(Announcement { engine: engine.clone(), event_types, duration });
        }
        _ => {
            if let Some(duration) = duration {
                let report = PublishFinished { event_types: &event_types, duration, error: result.as_ref().err() };
                engine.observers.call(Interest::PUBLISH, |observer| observer.publish_finished(&report));
            }
        }
    }
    result
}

async fn store<S: EventStore>(engine: &Arc<Engine>, target: Target<'_, S>, prepared: Prepared) -> Result<Vec<EventId>> {
    let (alone, isolated) = (target.is_alone(), target.isolated().is_some());
    target.append(&prepared.batch).await?;
    if !prepared.delayed {
        if alone {
            engine.wake.wake();
        } else if !isolated {
            engine.look_after_commit();
        }
    }
    Ok(prepared.ids)
}
