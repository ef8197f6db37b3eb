//! Not public API. Used by generated code.

pub use std;

pub use core;
pub use inventory;
pub use serde;

pub use crate::bus::{TransactionScope, rerun_transaction, run_transaction, run_transaction_at};
#[cfg(feature = "schema")]
pub use crate::catalog::schema::{DescribedCatalog, EventSchema};
#[cfg(not(feature = "schema"))]
pub use crate::catalog::undescribed::{DescribedCatalog, EventSchema};
pub use crate::catalog::{
    ByCatalog, Catalog, CatalogEntry, CatalogId, CatalogTable, Contract, ContractPart, Directly, EntryGroup, EventMeta,
    HandledBy, HandlerResult, HashedType, InTransaction, Includes, MemberOf, Module, SubsetOf, TypeTable, add_member,
    arguments, arguments_in, belongs, catalog_slots, consumed_slots, consumes, decode_as, distinct, distinct_wire,
    entries, handled_slots, ids, not_in_catalog,
};
pub use crate::context::HandlerContext;
pub use crate::envelope::{Envelope, RawPayload};
pub use crate::error::{BoxError, Error, Result};
pub use crate::event::{Event, EventType, OrderingKey, apply, key_of, validated};
pub use crate::publish::EventBatch;
pub use crate::registry::{
    CallFn, Consumable, ConsumerOptions, Consumers, DecodeFn, Entry, FromDelivery, Handler, HandlerList, LentBy, Needs,
    Order, Parts, SetTimeout, boxed, check,
};
pub use crate::retry::{Attempts, RetryOverrides};
pub use crate::store::{Family, IsolationLevel, TypeRef};
pub use futures_util::future::BoxFuture;
pub use relaybus_macros::{handler_list, module_contract};
pub use std::boxed::Box;
pub use std::convert::From;
pub use std::future::Future;
pub use std::marker::{Send, Sync};
pub use std::option::Option;
pub use std::primitive::{bool, str, usize};
pub use std::result::Result as Outcome;
pub use std::sync::Arc;
pub use std::time::Duration;
