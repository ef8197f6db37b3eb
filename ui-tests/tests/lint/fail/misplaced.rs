//! The attribute of the lint on something else, or with arguments.

use relaybus::lint_transactions;

#[lint_transactions(strict)]
struct Orders;

fn main() {}
