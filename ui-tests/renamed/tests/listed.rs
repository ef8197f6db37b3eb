//! The handlers that a library lists for itself.

#[test]
fn a_library_lists_its_handlers() {
    let ids: Vec<_> = relaybus_ui_renamed::all().entries().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["renamed.ship", "renamed.bill"]);
}

#[test]
fn a_library_describes_its_catalogs() {
    let snapshot = bus::catalog::schema::CatalogSnapshot::of::<relaybus_ui_renamed::ParcelEvents>();
    assert_eq!(snapshot.events["parcel.sent.v1"].key.as_deref(), Some("parcel"));
    assert_eq!(snapshot.events["parcel.sent.v1"].reads["required"][0], "parcel");
}
