//! What a comparison of snapshots says, beside what serde then does: values of the one version, decoded by the other.

pub(crate) use relaybus::catalog::schema::CatalogSnapshot;
use relaybus::catalog::schema::{Audience, Comparison, Severity};
pub(crate) use serde_json::Value;

/// Whether a side can be decoded by the other: what serde does, and what the comparison says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decodes {
    /// New events, by consumers already deployed.
    pub(crate) new: bool,
    /// Stored events, by consumers of the new version.
    pub(crate) stored: bool,
}

pub(crate) fn said(comparison: &Comparison) -> Decodes {
    let concerns = |wanted: Audience| {
        comparison.changes.iter().any(|change| {
            let why = change.affects.iter().find(|(who, _)| *who == wanted).map(|(_, why)| why.as_str());
            why.is_some_and(|why| why.contains("cannot decode"))
        })
    };
    Decodes { new: !concerns(Audience::DeployedConsumers), stored: !concerns(Audience::StoredEvents) }
}

macro_rules! cases {
    ($($name:ident: { $($old:item)+ } [$($stored:expr),+] => { $($new:item)+ } [$($written:expr),+] $what:literal)+) => {
        $(
            mod $name {
                pub(super) mod old {
                    cases!(@version { $($old)+ } [$($stored),+]);
                }
                pub(super) mod new {
                    cases!(@version { $($new)+ } [$($written),+]);
                }

                #[test]
                fn is_what_serde_does() {
                    let comparison = super::CatalogSnapshot::of::<old::Events>()
                        .compare(&super::CatalogSnapshot::of::<new::Events>());
                    let all = |values: Vec<super::Value>, decodes: fn(super::Value) -> bool| values.into_iter().all(decodes);
                    assert!(all(old::values(), old::decodes) && all(new::values(), new::decodes));
                    let done =
                        super::Decodes { new: all(new::values(), old::decodes), stored: all(old::values(), new::decodes) };
                    assert_eq!(super::said(&comparison), done, "{comparison}");
                    let what: Vec<&str> = comparison.changes.iter().map(|change| change.what.as_str()).collect();
                    assert_eq!(what.join("; "), $what);
                }
            }
        )+
    };
    (@version { $($item:item)+ } [$($value:expr),+]) => {
        #[allow(unused_imports, reason = "not every case needs all")]
        use std::collections::{BTreeMap, BTreeSet};

        use relaybus::{Event, catalog};
        use schemars::JsonSchema;
        use serde::{Deserialize, Serialize};

        $(
            #[derive(Serialize, Deserialize, JsonSchema)]
            $item
        )+

        #[derive(Event, Serialize, Deserialize, JsonSchema)]
        #[event("changed.v1")]
        #[serde(transparent)]
        pub(in super::super) struct Changed(E);

        #[catalog(schema)]
        pub(in super::super) enum Events {
            Changed(Changed),
        }

        pub(in super::super) fn values() -> Vec<serde_json::Value> {
            let values: Vec<E> = vec![$($value),+];
            values.into_iter().map(|value| serde_json::to_value(Changed(value)).unwrap()).collect()
        }

        pub(in super::super) fn decodes(value: serde_json::Value) -> bool {
            serde_json::from_value::<Changed>(value).is_ok()
        }
    };
}

cases! {
    nothing_changed:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8 } } [E { a: 1 }]
        ""
    an_optional_field_more:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8, b: Option<String> } } [E { a: 1, b: None }, E { a: 1, b: Some("x".into()) }]
        "the optional field `b` was added"
    a_field_with_a_default_more:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8, #[serde(default)] b: Vec<u8> } } [E { a: 1, b: vec![1] }]
        "the optional field `b` was added"
    a_required_field_more:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8, b: u8 } } [E { a: 1, b: 2 }]
        "the required field `b` was added"
    a_field_less:
        { struct E { a: u8, b: u8 } } [E { a: 1, b: 2 }]
        => { struct E { a: u8 } } [E { a: 1 }]
        "the field `b` was removed"
    an_optional_field_less:
        { struct E { a: u8, b: Option<u8> } } [E { a: 1, b: Some(2) }]
        => { struct E { a: u8 } } [E { a: 1 }]
        "the field `b` was removed"
    a_field_of_another_name:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { #[serde(rename = "alpha")] a: u8 } } [E { a: 1 }]
        "the field `a` was removed; the required field `alpha` was added"
    may_be_absent_now:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { #[serde(skip_serializing_if = "Option::is_none")] a: Option<u8> } } [E { a: None }, E { a: Some(1) }]
        "`a` may be null now; the field `a` may be left out now"
    may_be_null_now:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: Option<u8> } } [E { a: None }, E { a: Some(1) }]
        "`a` may be null now"
    must_be_there_now:
        { struct E { a: Option<u8> } } [E { a: None }]
        => { struct E { a: u8 } } [E { a: 1 }]
        "`a` may no longer be null; the field `a` became required"
    has_a_default_now:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { #[serde(default)] a: u8 } } [E { a: 0 }, E { a: 1 }]
        ""
    larger_numbers:
        { struct E { a: u8 } } [E { a: 255 }]
        => { struct E { a: u16 } } [E { a: 256 }]
        "the range of `a` changed from 0 to 255 to 0 to 65535"
    signed_numbers:
        { struct E { a: u64 } } [E { a: u64::MAX }]
        => { struct E { a: i64 } } [E { a: -1 }]
        "the range of `a` changed from 0 to 18446744073709551615 to -9223372036854775808 to 9223372036854775807"
    fractions:
        { struct E { a: i64 } } [E { a: 1 }]
        => { struct E { a: f64 } } [E { a: 1.5 }]
        "`a` changed from an integer to a number"
    texts_for_numbers:
        { struct E { a: i64 } } [E { a: 1 }]
        => { struct E { a: String } } [E { a: "1".into() }]
        "`a` changed from an integer to a text"
    a_value_more:
        { struct E { s: S } enum S { A } } [E { s: S::A }]
        => { struct E { s: S } enum S { A, B } } [E { s: S::A }, E { s: S::B }]
        "the value `B` of `s` was added"
    a_value_less:
        { struct E { s: S } enum S { A, B } } [E { s: S::A }, E { s: S::B }]
        => { struct E { s: S } enum S { A } } [E { s: S::A }]
        "the value `B` of `s` was removed"
    a_value_of_another_name:
        { struct E { s: S } enum S { InTransit } } [E { s: S::InTransit }]
        => { struct E { s: S } #[serde(rename_all = "snake_case")] enum S { InTransit } } [E { s: S::InTransit }]
        "the value `InTransit` of `s` was removed; the value `in_transit` of `s` was added"
    a_closed_set_of_texts:
        { struct E { s: String } } [E { s: "x".into() }]
        => { struct E { s: S } enum S { A } } [E { s: S::A }]
        "`s` changed from a text to always `A`"
    data_in_a_variant:
        { enum E { A, B(u8) } } [E::A, E::B(1)]
        => { enum E { A, B(String) } } [E::A, E::B("x".into())]
        "`B` changed from an integer to a text"
    a_variant_more:
        { #[serde(tag = "t")] enum E { A { x: u8 }, B } } [E::A { x: 1 }, E::B]
        => { #[serde(tag = "t")] enum E { A { x: u8 }, B, C { y: u8 } } } [E::C { y: 1 }]
        "the variant `C` of the payload was added"
    a_field_more_in_a_variant:
        { #[serde(tag = "t", content = "c")] enum E { A { x: u8 }, B } } [E::A { x: 1 }, E::B]
        => { #[serde(tag = "t", content = "c")] enum E { A { x: u8, y: u8 }, B } } [E::A { x: 1, y: 2 }, E::B]
        "the required field `<A>.c.y` was added"
    another_tag:
        { #[serde(tag = "t")] enum E { A { x: u8 }, B } } [E::A { x: 1 }, E::B]
        => { #[serde(tag = "kind")] enum E { A { x: u8 }, B } } [E::A { x: 1 }, E::B]
        "the required field `kind` was added; the field `t` was removed"
    an_alternative_more:
        { #[serde(untagged)] enum E { A { x: u8 }, B { y: u8 } } } [E::A { x: 1 }, E::B { y: 1 }]
        => { #[serde(untagged)] enum E { A { x: u8 }, B { y: u8 }, C { z: u8 } } } [E::C { z: 1 }]
        "the alternative with `z` of the payload was added"
    fields_that_are_not_known_are_refused:
        { #[serde(deny_unknown_fields)] struct E { a: u8 } } [E { a: 1 }]
        => { #[serde(deny_unknown_fields)] struct E { a: u8, b: Option<u8> } } [E { a: 1, b: None }]
        "the field `b` was added, and deployed consumers refuse fields that they do not know; the optional field `b` was added"
    a_longer_tuple:
        { struct E(u8, u8); } [E(1, 2)]
        => { struct E(u8, u8, u8); } [E(1, 2, 3)]
        "the largest length of the payload changed from `2` to `3`; the least length of the payload changed from `2` to `3`"
    values_of_a_map:
        { struct E { m: BTreeMap<String, u8> } } [E { m: [("k".to_owned(), 1)].into() }]
        => { struct E { m: BTreeMap<String, String> } } [E { m: [("k".to_owned(), "v".to_owned())].into() }]
        "`m{}` changed from an integer to a text"
    fields_of_a_flattened_struct:
        { struct E { a: u8, #[serde(flatten)] f: F } struct F { x: u8 } } [E { a: 1, f: F { x: 1 } }]
        => { struct E { a: u8, #[serde(flatten)] f: F } struct F { x: u8, y: u8 } } [E { a: 1, f: F { x: 1, y: 1 } }]
        "the required field `y` was added"
    a_struct_that_is_flat_now:
        { struct E { f: F } struct F { x: u8 } } [E { f: F { x: 1 } }]
        => { struct E { #[serde(flatten)] f: F } struct F { x: u8 } } [E { f: F { x: 1 } }]
        "the field `f` was removed; the required field `x` was added"
    a_newtype_is_its_content:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: N } struct N(u8); } [E { a: N(1) }]
        ""
    a_type_that_has_itself:
        { struct E { v: u8, next: Option<Box<E>> } } [E { v: 1, next: Some(Box::new(E { v: 2, next: None })) }]
        => { struct E { v: u8, next: Option<Box<E>>, w: u8 } } [E { v: 1, next: None, w: 1 }]
        "the required field `w` was added"
    one_for_many:
        { struct E { a: Vec<u8> } } [E { a: vec![1] }]
        => { struct E { a: u8 } } [E { a: 1 }]
        "`a` changed from a list to an integer"
}

#[test]
fn a_field_that_nobody_decodes_is_a_loss_all_the_same() {
    let comparison = CatalogSnapshot::of::<an_optional_field_less::old::Events>()
        .compare(&CatalogSnapshot::of::<an_optional_field_less::new::Events>());
    assert_eq!(comparison.worst(), Some(Severity::Breaking));
}
