//! The registry: what a handler is, how its arguments are made, and how handlers are collected.
//!
//! The macros write one constant [`Entry`] a handler, without generics: a pointer that decodes the event and a pointer
//! that builds the handler's future. `inventory` collects the entries of every linked crate; it promises no order, so
//! the bus sorts them by id and refuses duplicates.

mod consumable;
mod entry;
mod extract;
mod list;
mod output;
mod state;

pub use consumable::Consumable;
pub(crate) use entry::type_name_of;
pub use entry::{
    CallFn, ConsumerOptions, Consumers, DecodeFn, Entry, Handler, LentBy, Order, SetTimeout, check, decode_any,
};
pub use extract::{FromDelivery, Handle, Needs, Part, Parts, Payload, SameEvent};
pub use list::HandlerList;
pub use output::{HandlerError, HandlerOutput, boxed};
pub use state::{State, States};
