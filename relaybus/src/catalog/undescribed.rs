//! What generated code finds without the feature `schema`: a refusal of `#[catalog(schema)]` that says what to switch on.

use super::{Catalog, MemberOf};

/// What `schema` in `#[catalog(schema)]` needs. Nothing implements it without the feature.
#[diagnostic::on_unimplemented(
    message = "`#[catalog(schema)]` needs the feature `schema` of relaybus",
    label = "asks for JSON schemas",
    note = "switch it on where the package depends on relaybus, `features = [\"schema\"]`, or take `schema` out of `#[catalog(..)]`"
)]
pub trait NeedsFeature {}

/// Stands for the trait that the feature `schema` has.
pub trait DescribedCatalog: Catalog + NeedsFeature {
    /// Stands for its schemas.
    const SCHEMAS: &'static [EventSchema];
}

/// Stands for the schema of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventSchema(());

impl EventSchema {
    /// Stands for the schema of `E`. For generated code.
    #[must_use]
    pub const fn of<C, E: MemberOf<C>>() -> Self {
        Self(())
    }
}
