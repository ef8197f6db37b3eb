//! Names by their hash, as a constant: a contract over 500 events and 1,000 handlers is half a million comparisons without
//! one, which takes the compiler seconds, and so does a catalog of 500 events.

use super::meta::fnv1a;
use super::{Catalog, ContractPart, HashedType};
use crate::registry::Entry;

/// A hash table with open addressing, at most half full. For generated code.
#[derive(Clone, Copy, Debug)]
pub struct TypeTable<const SLOTS: usize> {
    /// A name, and the number it was first inserted with.
    slots: [Option<(HashedType, usize)>; SLOTS],
}

/// The events of a catalog by the names of their variants, and by their types. For generated code.
#[derive(Clone, Copy, Debug)]
pub struct CatalogTable<const SLOTS: usize> {
    variants: TypeTable<SLOTS>,
    types: TypeTable<SLOTS>,
}

impl<const SLOTS: usize> CatalogTable<SLOTS> {
    /// The table of `C`. `SLOTS` is [`catalog_slots`] of it.
    #[must_use]
    pub const fn of<C: Catalog>() -> Self {
        let (mut variants, mut types) = (TypeTable::EMPTY, TypeTable::EMPTY);
        let mut i = 0;
        while i < C::EVENTS.len() {
            variants.insert(variant(C::EVENTS[i].name), i);
            types.insert(C::EVENTS[i].hashed(), i);
            i += 1;
        }
        Self { variants, types }
    }

    /// The place of a variant, and that of the first one with its type.
    pub(super) const fn places<C: Catalog>(&self, name: &'static str) -> Option<(usize, usize)> {
        let Some(place) = self.variants.find(&variant(name)) else { return None };
        match self.types.find(&C::EVENTS[place].hashed()) {
            Some(first) => Some((place, first)),
            None => None,
        }
    }
}

const fn variant(name: &'static str) -> HashedType {
    HashedType { name, hash: fnv1a(name) }
}

impl<const SLOTS: usize> TypeTable<SLOTS> {
    const EMPTY: Self = Self { slots: [None; SLOTS] };

    /// The event types that handlers handle. `SLOTS` is [`handled_slots`] of them.
    #[must_use]
    pub const fn handled(handlers: &[&[Entry]]) -> Self {
        let mut table = Self::EMPTY;
        let mut i = 0;
        while i < handlers.len() {
            let mut j = 0;
            while j < handlers[i].len() {
                let events = handlers[i][j].events;
                let mut k = 0;
                while k < events.len() {
                    table.insert(events[k], i);
                    k += 1;
                }
                j += 1;
            }
            i += 1;
        }
        table
    }

    /// The event types that a contract consumes. `SLOTS` is [`consumed_slots`] of them.
    #[must_use]
    pub const fn consumed(parts: &[ContractPart]) -> Self {
        let mut table = Self::EMPTY;
        let mut i = 0;
        while i < parts.len() {
            let mut j = 0;
            while j < parts[i].events.len() {
                if parts[i].has(&parts[i].events[j]) {
                    table.insert(parts[i].events[j].hashed(), i);
                }
                j += 1;
            }
            i += 1;
        }
        table
    }

    const fn insert(&mut self, event: HashedType, number: usize) {
        let slot = self.slot_of(&event);
        if self.slots[slot].is_none() {
            self.slots[slot] = Some((event, number));
        }
    }

    /// Whether the type is in the table.
    #[must_use]
    pub const fn has(&self, event: &HashedType) -> bool {
        self.find(event).is_some()
    }

    const fn find(&self, event: &HashedType) -> Option<usize> {
        match &self.slots[self.slot_of(event)] {
            Some((_, number)) => Some(*number),
            None => None,
        }
    }

    /// Where the type is, or would be.
    const fn slot_of(&self, event: &HashedType) -> usize {
        #[allow(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
        let mut slot = event.hash as usize % SLOTS;
        while let Some((other, _)) = &self.slots[slot] {
            if other.is(event) {
                return slot;
            }
            slot = (slot + 1) % SLOTS;
        }
        slot
    }
}

/// How many slots the events of a catalog need. For generated code.
#[must_use]
pub const fn catalog_slots<C: Catalog>() -> usize {
    slots(C::EVENTS.len())
}

/// How many slots the types of handlers need. For generated code.
#[must_use]
pub const fn handled_slots(handlers: &[&[Entry]]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < handlers.len() {
        let mut j = 0;
        while j < handlers[i].len() {
            count += handlers[i][j].events.len();
            j += 1;
        }
        i += 1;
    }
    slots(count)
}

/// How many slots the types that a contract consumes need. For generated code.
#[must_use]
pub const fn consumed_slots(parts: &[ContractPart]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < parts.len() {
        count += parts[i].events.len();
        i += 1;
    }
    slots(count)
}

/// At least one stays empty, where a search ends.
const fn slots(count: usize) -> usize {
    (count * 2 + 1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::{HashedType, TypeTable, slots};

    fn event(name: &'static str, hash: u64) -> HashedType {
        HashedType { name, hash }
    }

    #[test]
    fn types_of_one_hash_are_told_apart() {
        let mut table = TypeTable::<{ slots(3) }>::EMPTY;
        for (number, name) in ["a", "b", "a", "c"].into_iter().enumerate() {
            table.insert(event(name, 7), number);
        }
        assert!(table.has(&event("a", 7)) && table.has(&event("b", 7)) && table.has(&event("c", 7)));
        assert_eq!(table.find(&event("a", 7)), Some(0), "the first one stays");
        assert!(!table.has(&event("d", 7)) && !table.has(&event("a", 8)));
    }

    #[test]
    fn an_empty_table_has_nothing() {
        let table = TypeTable::<{ slots(0) }>::EMPTY;
        assert!(!table.has(&event("a", u64::MAX)));
    }
}
