//! The handlers of a library whose only mention is `use .. as _` are registered: nothing else keeps it linked.

use bus::registry::Entry;
use relaybus_ui_renamed as _;

#[test]
fn handlers_of_a_library_are_registered() {
    let mut ids: Vec<_> = bus::__private::inventory::iter::<Entry>().map(|entry| entry.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["renamed.bill", "renamed.ship"]);
}
