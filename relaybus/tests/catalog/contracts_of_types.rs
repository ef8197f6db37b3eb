//! As `contracts`, for types that schemas describe by more than fields: maps by numbers, generics, names with spaces, sets,
//! alternatives of each tagging, and types whose two sides differ.

use crate::contracts::{CatalogSnapshot, Decodes, Value, said};

cases! {
    values_of_a_map_by_numbers:
        { struct E { m: BTreeMap<u32, V> } struct V { x: u8 } } [E { m: [(1, V { x: 1 })].into() }]
        => { struct E { m: BTreeMap<u32, V> } struct V { x: String } } [E { m: [(1, V { x: "x".into() })].into() }]
        "`m{}.x` changed from an integer to a text"
    a_map_by_texts_for_numbers:
        { struct E { m: BTreeMap<u32, u8> } } [E { m: [(1, 1)].into() }]
        => { struct E { m: BTreeMap<String, u8> } } [E { m: [("k".to_owned(), 1)].into() }]
        "`m` changed from an object with listed fields to one with any fields"
    a_map_by_signed_numbers:
        { struct E { m: BTreeMap<u32, u8> } } [E { m: [(1, 1)].into() }]
        => { struct E { m: BTreeMap<i32, u8> } } [E { m: [(-1, 1)].into() }]
        "the names of fields in `m` changed from `^\\d+$` to `^-?\\d+$`"
    an_optional_field_in_a_map_by_numbers:
        { struct E { m: BTreeMap<u32, V> } struct V { x: u8 } } [E { m: [(1, V { x: 1 })].into() }]
        => { struct E { m: BTreeMap<u32, V> } struct V { x: u8, y: Option<u8> } } [E { m: [(1, V { x: 1, y: None })].into() }]
        "the optional field `m{}.y` was added"
    a_key_more_in_a_map_by_names:
        { struct E { m: BTreeMap<K, u8> } #[derive(PartialEq, Eq, PartialOrd, Ord)] enum K { A } } [E { m: [(K::A, 1)].into() }]
        => { struct E { m: BTreeMap<K, u8> } #[derive(PartialEq, Eq, PartialOrd, Ord)] enum K { A, B } } [E { m: [(K::B, 1)].into() }]
        "the field `m.B` was added, and deployed consumers refuse fields that they do not know; the optional field `m.B` was added"
    a_field_of_a_generic_type:
        { struct E { a: G<u8> } struct G<T> { x: T } } [E { a: G { x: 1 } }]
        => { struct E { a: G<u8> } struct G<T> { x: T, y: T } } [E { a: G { x: 1, y: 1 } }]
        "the required field `a.y` was added"
    the_parameter_of_a_generic_type:
        { struct E { a: G<u8> } struct G<T> { x: T } } [E { a: G { x: 1 } }]
        => { struct E { a: G<String> } struct G<T> { x: T } } [E { a: G { x: "x".into() } }]
        "`a.x` changed from an integer to a text"
    a_field_of_a_type_with_a_name_in_words:
        { struct E { a: N } #[schemars(rename = "The Name<%>/~")] struct N { x: u8 } } [E { a: N { x: 1 } }]
        => { struct E { a: N } #[schemars(rename = "The Name<%>/~")] struct N { x: u8, y: u8 } } [E { a: N { x: 1, y: 1 } }]
        "the required field `a.y` was added"
    a_type_of_another_name:
        { struct E { a: N } struct N { x: u8 } } [E { a: N { x: 1 } }]
        => { struct E { a: M } #[schemars(rename = "The Name")] struct M { x: u8 } } [E { a: M { x: 1 } }]
        ""
    a_list_for_a_set:
        { struct E { a: BTreeSet<u8> } } [E { a: [1].into() }]
        => { struct E { a: Vec<u8> } } [E { a: vec![1, 1] }]
        "the uniqueness of `a` changed from `true` to none"
    a_list_for_a_tuple:
        { struct E { a: (u8, u8) } } [E { a: (1, 2) }]
        => { struct E { a: Vec<u8> } } [E { a: vec![1] }]
        "the largest length of `a` changed from `2` to none; the least length of `a` changed from `2` to none"
    an_array_for_a_tuple:
        { struct E { a: (u8, u8) } } [E { a: (1, 2) }]
        => { struct E { a: [u8; 2] } } [E { a: [1, 2] }]
        ""
    may_be_zero_no_longer:
        { struct E { a: u8 } } [E { a: 0 }]
        => { struct E { a: std::num::NonZeroU8 } } [E { a: std::num::NonZeroU8::MIN }]
        "the range of `a` changed from 0 to 255 to 1 to 255"
    signed_and_may_be_zero_no_longer:
        { struct E { a: i8 } } [E { a: 0 }]
        => { struct E { a: std::num::NonZeroI8 } } [E { a: std::num::NonZeroI8::MIN }]
        "the exclusion of `a` changed from none to `{\"const\":0}`"
    nothing_in_nothing:
        { struct E { a: Option<u8> } } [E { a: None }, E { a: Some(1) }]
        => { struct E { a: Option<Option<u8>> } } [E { a: None }, E { a: Some(Some(1)) }]
        ""
    never_written_and_must_be_there:
        { struct E { #[serde(skip_serializing_if = "Vec::is_empty")] a: Vec<u8> } } [E { a: vec![1] }]
        => { struct E { #[serde(skip_serializing_if = "Vec::is_empty")] a: Vec<u8> } } [E { a: vec![1] }]
        ""
    left_out_when_empty:
        { struct E { a: Vec<u8> } } [E { a: vec![1] }]
        => { struct E { #[serde(default, skip_serializing_if = "Vec::is_empty")] a: Vec<u8> } } [E { a: vec![] }]
        "the field `a` may be left out now"
    only_written:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8, #[serde(skip_deserializing)] b: u8 } } [E { a: 1, b: 2 }]
        ""
    only_read:
        { struct E { a: u8, b: Option<u8> } } [E { a: 1, b: None }, E { a: 1, b: Some(1) }]
        => { struct E { a: u8, #[serde(skip_serializing)] #[expect(dead_code, reason = "it is only read")] b: Option<u8> } } [E { a: 1, b: None }]
        "the field `b` was removed"
    skipped:
        { struct E { a: u8, b: u8 } } [E { a: 1, b: 1 }]
        => { struct E { a: u8, #[serde(skip)] #[expect(dead_code, reason = "nobody sees it")] b: u8 } } [E { a: 1, b: 1 }]
        "the field `b` was removed"
    names_in_other_case:
        { struct E { my_field: u8 } } [E { my_field: 1 }]
        => { #[serde(rename_all = "camelCase")] struct E { my_field: u8 } } [E { my_field: 1 }]
        "the required field `myField` was added; the field `my_field` was removed"
    everything_has_a_default:
        { struct E { a: u8, b: String } } [E { a: 1, b: "x".into() }]
        => { #[derive(Default)] #[serde(default)] struct E { a: u8, b: String, c: u8 } } [E { a: 1, b: "x".into(), c: 1 }]
        "the optional field `c` was added"
    flattened_fields_that_may_be_absent:
        { struct E { a: u8, #[serde(flatten)] f: F } struct F { x: u8 } } [E { a: 1, f: F { x: 1 } }]
        => { struct E { a: u8, #[serde(flatten)] f: Option<F> } struct F { x: u8 } } [E { a: 1, f: None }]
        "the field `x` may be left out now"
    a_flattened_map_more:
        { struct E { a: u8 } } [E { a: 1 }]
        => { struct E { a: u8, #[serde(flatten)] f: BTreeMap<String, u8> } } [E { a: 1, f: [("k".to_owned(), 1)].into() }]
        ""
    a_field_beside_a_flattened_map:
        { struct E { a: u8, #[serde(flatten)] f: BTreeMap<String, u8> } } [E { a: 1, f: [("b".to_owned(), 1)].into() }]
        => { struct E { a: u8, b: Option<String>, #[serde(flatten)] f: BTreeMap<String, u8> } } [E { a: 1, b: Some("x".into()), f: BTreeMap::new() }]
        "`b` changed from an integer to a text"
    a_field_in_a_flattened_variant:
        { struct E { a: u8, #[serde(flatten)] f: F } #[serde(tag = "t")] enum F { X { x: u8 } } } [E { a: 1, f: F::X { x: 1 } }]
        => { struct E { a: u8, #[serde(flatten)] f: F } #[serde(tag = "t")] enum F { X { x: u8, y: u8 } } } [E { a: 1, f: F::X { x: 1, y: 1 } }]
        "the required field `y` was added"
    a_flattened_variant_more:
        { struct E { a: u8, #[serde(flatten)] f: F } enum F { X(u8), Y(u8) } } [E { a: 1, f: F::X(1) }, E { a: 1, f: F::Y(1) }]
        => { struct E { a: u8, #[serde(flatten)] f: F } enum F { X(u8), Y(u8), Z(u8) } } [E { a: 1, f: F::Z(1) }]
        "the alternative with `Z`, `a` of the payload was added"
    a_content_in_a_variant_that_had_none:
        { struct E { s: S } enum S { A, B } } [E { s: S::A }, E { s: S::B }]
        => { struct E { s: S } enum S { A(u8), B } } [E { s: S::A(1) }]
        "the value `A` of `s` was removed; the variant `A` of `s` was added"
    a_named_field_in_an_untagged_alternative:
        { #[serde(untagged)] enum E { A { x: u8 }, B { y: u8 } } } [E::A { x: 1 }, E::B { y: 1 }]
        => { #[serde(untagged)] enum E { A { x: u8, z: u8 }, B { y: u8 } } } [E::A { x: 1, z: 1 }]
        "the required field `z` was added"
    a_tag_around_a_struct:
        { #[serde(tag = "t")] enum E { A(X) } struct X { x: u8 } } [E::A(X { x: 1 })]
        => { #[serde(tag = "t")] enum E { A(X) } struct X { x: u8, y: u8 } } [E::A(X { x: 1, y: 1 })]
        "the required field `y` was added"
    another_name_of_the_content:
        { #[serde(tag = "t", content = "c")] enum E { A { x: u8 }, B } } [E::A { x: 1 }, E::B]
        => { #[serde(tag = "t", content = "d")] enum E { A { x: u8 }, B } } [E::A { x: 1 }]
        "the field `<A>.c` was removed; the required field `<A>.d` was added"
    a_tag_in_place_of_none:
        { enum E { A { x: u8 } } } [E::A { x: 1 }]
        => { #[serde(untagged)] enum E { A { x: u8 } } } [E::A { x: 1 }]
        "the field `A` was removed; the field `x` was added, and deployed consumers refuse fields that they do not know; the required field `x` was added"
    a_longer_variant:
        { enum E { A(u8, u8), B } } [E::A(1, 1)]
        => { enum E { A(u8, u8, u8), B } } [E::A(1, 1, 1)]
        "the largest length of `A` changed from `2` to `3`; the least length of `A` changed from `2` to `3`"
    a_letter_for_a_text:
        { struct E { a: char } } [E { a: 'x' }]
        => { struct E { a: String } } [E { a: "xy".into() }]
        "the largest length of `a` changed from `1` to none; the least length of `a` changed from `1` to none"
    nothing_for_a_unit:
        { struct E { a: () } } [E { a: () }]
        => { struct E { a: Option<u8> } } [E { a: Some(1) }]
        "`a` changed from null to an integer"
    any_json:
        { struct E { a: Vec<u8> } } [E { a: vec![1] }]
        => { struct E { a: serde_json::Value } } [E { a: serde_json::json!("x") }]
        "`a` changed from a list to any value"
    refused_in_a_field:
        { struct E { a: F } struct F { x: u8 } } [E { a: F { x: 1 } }]
        => { struct E { a: F } #[serde(deny_unknown_fields)] struct F { x: u8 } } [E { a: F { x: 1 } }]
        "`a` refuses fields that it does not know now"
    refused_and_less:
        { #[serde(deny_unknown_fields)] struct E { a: u8, b: u8 } } [E { a: 1, b: 1 }]
        => { #[serde(deny_unknown_fields)] struct E { a: u8 } } [E { a: 1 }]
        "the field `b` was removed; the field `b` was removed, and consumers of this version refuse fields that they do not know"
    types_that_have_each_other:
        { struct E { a: Vec<F> } struct F { e: Vec<E>, x: u8 } } [E { a: vec![F { e: vec![], x: 1 }] }]
        => { struct E { a: Vec<F> } struct F { e: Vec<E>, x: u16 } } [E { a: vec![F { e: vec![], x: 300 }] }]
        "the range of `a[].x` changed from 0 to 255 to 0 to 65535"
}
