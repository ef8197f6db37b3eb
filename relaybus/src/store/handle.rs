//! Families of transaction handles: which connection and transaction types a store can write through.

use std::any::TypeId;
use std::fmt;

use super::Database;

/// A family of handles that one kind of store writes through, such as SQLite's.
///
/// A store names its family, so that a store which wraps another accepts the same handles.
pub trait Family: Send + Sync + 'static {
    /// What a statement of the store needs while it runs.
    type Handle<'c>: Send;
    /// The name of the family, for messages.
    const NAME: &'static str;
}

/// A connection or transaction type that users hold and that the stores of family `F` can write through.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handle of a `{F}` transaction",
    label = "this store cannot write through it",
    note = "pass the transaction of `bus.transaction`, or a connection or transaction of the store's own database client",
    note = "a `RelayBus` without the type of its store publishes through `&mut AnyTransaction`; beside a database client's connection take `State<RelayBus<TheStore>>`"
)]
pub trait HandleOf<F: Family>: Send {
    /// Lends the handle for one statement.
    fn handle(&mut self) -> F::Handle<'_>;

    /// The database that the handle writes to, where it can tell; see [`EventStore::database`](super::EventStore::database).
    ///
    /// Defaults to none: it is not compared with the store's.
    fn database(&self) -> Option<&Database> {
        None
    }

    /// Where the handle itself is: what tells running transactions apart.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl<F: Family, H: HandleOf<F> + ?Sized> HandleOf<F> for &mut H {
    fn handle(&mut self) -> F::Handle<'_> {
        (**self).handle()
    }

    fn database(&self) -> Option<&Database> {
        (**self).database()
    }

    fn address(&self) -> usize {
        (**self).address()
    }
}

/// A family whose transactions lend handlers a value of type `H`: what [`StoreTransaction::lend`] does, for the compiler.
///
/// A store implements it for its family once for each type that its `lend` knows. It is what `handlers![..]` checks.
///
/// [`StoreTransaction::lend`]: super::StoreTransaction::lend
#[diagnostic::on_unimplemented(
    message = "`{H}` is not a transaction handle of this bus's store (`{Self}`)",
    label = "takes `&mut {H}`, which this store does not lend",
    note = "take the handle of the bus's own store, or leave a consumer of another store out of this bus"
)]
pub trait Lends<H>: Family {}

/// A type by identity and name, to compare in a constant and to name in a message.
#[derive(Clone, Copy)]
pub struct TypeRef {
    id: fn() -> TypeId,
    name: fn() -> &'static str,
}

impl TypeRef {
    /// The reference of `T`.
    #[must_use]
    pub const fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>, name: std::any::type_name::<T> }
    }

    /// The identity of the type.
    #[must_use]
    pub fn id(&self) -> TypeId {
        (self.id)()
    }

    /// The name of the type, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        (self.name)()
    }
}

impl fmt::Debug for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for TypeRef {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}
