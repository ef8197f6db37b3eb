//! What a catalog knows of each of its events, as constants.

use super::MemberOf;
use super::text::Text;
use crate::event::Event;
use crate::registry::type_name_of;
use crate::store::TypeRef;

/// An event type with its hash, which constants compare before the text: a contract over 500 events and 1,000 handlers is
/// half a million comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HashedType {
    /// The event type.
    pub name: &'static str,
    /// Its 64-bit FNV-1a hash.
    pub hash: u64,
}

impl HashedType {
    /// The type of `E`.
    #[must_use]
    pub const fn of<E: Event>() -> Self {
        let name = type_name_of::<E>();
        Self { name, hash: fnv1a(name) }
    }

    /// The type of `E`, which is an event of the catalog `C`. For generated code.
    #[must_use]
    pub const fn member<C, E: MemberOf<C>>() -> Self {
        Self::of::<E>()
    }

    /// Whether both are the same type.
    #[must_use]
    pub const fn is(&self, other: &Self) -> bool {
        self.hash == other.hash && same(self.name, other.name)
    }
}

/// An event of a catalog.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EventMeta {
    /// The name of its variant: `OrderPlaced`.
    pub name: &'static str,
    /// Its event type: `order.placed.v1`.
    pub event_type: &'static str,
    /// The 64-bit FNV-1a hash of the event type.
    pub hash: u64,
    /// The method that handles it: `on_order_placed`.
    pub method: &'static str,
    /// The name under which transports that map names send it; its event type without one.
    pub wire: Option<&'static str>,
    /// Its Rust type.
    pub rust_type: TypeRef,
    /// Its Rust type as the catalog writes it.
    pub spelled: &'static str,
}

impl EventMeta {
    /// What the catalog `C` knows of `E`. For generated code.
    #[must_use]
    pub const fn of<C, E: MemberOf<C>>(
        name: &'static str,
        spelled: &'static str,
        method: &'static str,
        wire: Option<&'static str>,
    ) -> Self {
        let HashedType { name: event_type, hash } = HashedType::of::<E>();
        Self { name, event_type, hash, method, wire, rust_type: TypeRef::of::<E>(), spelled }
    }

    /// Its event type with its hash.
    #[must_use]
    pub const fn hashed(&self) -> HashedType {
        HashedType { name: self.event_type, hash: self.hash }
    }
}

/// 64-bit FNV-1a.
pub(super) const fn fnv1a(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Length of the longest message of a check: two variants and an event type.
const MESSAGE: usize = 2048;

#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
pub(super) const fn refuse_type(event: &EventMeta, earlier: &EventMeta) -> ! {
    let message = Text::<MESSAGE>::new()
        .with("`")
        .with(event.name)
        .with("` has the event type `")
        .with(event.event_type)
        .with("`, as `")
        .with(earlier.name)
        .with("` has: the events of a catalog differ in their types");
    panic!("{}", message.as_str());
}

#[track_caller]
#[allow(clippy::panic, reason = "evaluated in a const, the panic is the compiler's message")]
pub(super) const fn check_wire(other: &EventMeta, wire: &str) {
    if same(other.event_type, wire) {
        let message = Text::<MESSAGE>::new()
            .with("the wire name `")
            .with(wire)
            .with("` is the event type of `")
            .with(other.name)
            .with("`, which travels under it: choose another one");
        panic!("{}", message.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_fnv1a() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
        assert!(same("ab", "ab") && !same("ab", "ac") && !same("ab", "abc"));
    }
}
