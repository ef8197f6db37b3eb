//! Arguments of the user's own: owned, borrowed and generic.

use relaybus::{Event, consumer};
use relaybus::{FromDelivery, HandlerContext, Needs, Parts, Result};
use serde::{Deserialize, Serialize};

#[derive(Event, Serialize, Deserialize)]
#[event("order.placed.v1")]
struct OrderPlaced {}

struct Attempt(u32);
impl<'p, E> FromDelivery<'p, E> for Attempt {
    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        Ok(Self(parts.context().attempt()))
    }
}

struct Context<'p>(&'p HandlerContext);
impl<'p, E> FromDelivery<'p, E> for Context<'p> {
    const NEEDS: Needs = Needs::Nothing;

    fn from_delivery(parts: &mut Parts<'p>) -> Result<Self> {
        Ok(Self(parts.context()))
    }
}

struct Only<T>(std::marker::PhantomData<T>);
impl<'p> FromDelivery<'p, OrderPlaced> for Only<OrderPlaced> {
    fn from_delivery(_: &mut Parts<'p>) -> Result<Self> {
        Ok(Self(std::marker::PhantomData))
    }
}

#[consumer(OrderPlaced)]
async fn record(Attempt(attempt): Attempt, context: Context<'_>, _: Only<OrderPlaced>, _: OrderPlaced) {
    assert_eq!(context.0.attempt(), attempt);
}
