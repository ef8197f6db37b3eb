//! Values that handlers ask for by their type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::extract::missing_state;
use crate::error::Result;

/// A value of the application that a handler takes as an argument: `mailer: State<Mailer>`.
///
/// Give it to the bus with `provide`. The bus itself is always there: `State<RelayBus>`.
#[derive(Debug)]
pub struct State<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The provided values, one a type.
#[derive(Clone, Default)]
pub struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: Arc<T>) -> bool {
        self.0.insert(TypeId::of::<T>(), value).is_none()
    }

    /// Counts `T` as provided: it will be when handlers run.
    pub(crate) fn promise<T: Send + Sync + 'static>(&mut self) {
        self.0.insert(TypeId::of::<T>(), Arc::new(()));
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }

    /// The value of type `T`.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }

    pub(crate) fn state<T: Send + Sync + 'static>(&self) -> Result<State<T>> {
        self.get().map(State).ok_or_else(|| missing_state(std::any::type_name::<T>()))
    }

    /// A reference to the value of type `T`.
    #[must_use]
    pub fn get_ref<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}
