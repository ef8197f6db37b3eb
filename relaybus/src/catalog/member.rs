//! Which events a catalog has, and which of them a list has: what the compiler checks by trait.

use super::HashedType;
use crate::event::Event;

/// An event of the catalog `C`. `#[catalog]` implements it for each event of the enum.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event of the catalog `{C}`",
    label = "not in `{C}`",
    note = "publish it with `bus.publish(..)`, through a catalog that has it, or add it to `{C}`"
)]
pub trait MemberOf<C>: Event {}

/// A list of events of the catalog `C`: a tuple of event types such as `(OrderPlaced, OrderShipped)`, or a catalog with
/// `#[catalog(of = C)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of events of the catalog `{C}`",
    label = "expected a tuple of events of `{C}`",
    note = "write a tuple of at most 16 events, `(OrderPlaced,)` with a comma for a single one, or an enum with `#[catalog(of = ..)]`"
)]
pub trait SubsetOf<C> {
    /// Their types.
    const TYPES: &'static [HashedType];
}

/// A list of events that has `E`; `I` is where, which the compiler finds out.
#[diagnostic::on_unimplemented(
    message = "`{E}` is not in this view, which publishes only `{Self}`",
    label = "not in `{Self}`",
    note = "add it to the view's `.only::<(..)>()`, or publish it with `bus.publish(..)`"
)]
pub trait Includes<E, I> {}

/// The place of an event in a list that is itself a catalog.
#[derive(Debug)]
pub enum ByCatalog {}

/// The place of an event in a tuple.
#[derive(Debug)]
pub enum At<const N: usize> {}

macro_rules! tuple {
    ($($event:ident $index:literal),+) => {
        impl<C, $($event: MemberOf<C>),+> SubsetOf<C> for ($($event,)+) {
            const TYPES: &'static [HashedType] = &[$(HashedType::of::<$event>()),+];
        }
        tuple!(@includes ($($event)+) $($event $index),+);
    };
    (@includes $all:tt $($event:ident $index:literal),+) => {
        $(tuple!(@one $all $event $index);)+
    };
    (@one ($($all:ident)+) $event:ident $index:literal) => {
        impl<$($all),+> Includes<$event, At<$index>> for ($($all,)+) {}
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, D 2);
tuple!(A 0, B 1, D 2, E 3);
tuple!(A 0, B 1, D 2, E 3, F 4);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11, N 12);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11, N 12, O 13);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11, N 12, O 13, P 14);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11, N 12, O 13, P 14, Q 15);
