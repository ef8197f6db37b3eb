//! Right uses of the macros: each case is a module, so that it is compiled, linted and run with everything else.

use std::collections::BTreeSet;
use std::path::Path;

mod names;

macro_rules! cases {
    ($($path:literal $name:ident,)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        const CASES: &[&str] = &[$($path),*];
    };
}
cases! {
    "catalog/pass/aliases_and_reexports.rs" catalog_aliases_and_reexports,
    "catalog/pass/cfg.rs" catalog_cfg,
    "catalog/pass/crate_path.rs" catalog_crate_path,
    "catalog/pass/deprecated.rs" catalog_deprecated,
    "catalog/pass/in_function_body.rs" catalog_in_function_body,
    "catalog/pass/macro_by_example.rs" catalog_macro_by_example,
    "catalog/pass/no_implicit_prelude.rs" catalog_no_implicit_prelude,
    "catalog/pass/odd_names.rs" catalog_odd_names,
    "catalog/pass/raw_identifiers.rs" catalog_raw_identifiers,
    "catalog/pass/shadowed_names.rs" catalog_shadowed_names,
    "catalog/pass/strict_lints.rs" catalog_strict_lints,
    "consumer/pass/aliases_and_renamed_imports.rs" consumer_aliases_and_renamed_imports,
    "consumer/pass/arguments_in_any_order.rs" consumer_arguments_in_any_order,
    "consumer/pass/body_with_macros.rs" consumer_body_with_macros,
    "consumer/pass/cfg.rs" consumer_cfg,
    "consumer/pass/companion.rs" consumer_companion,
    "consumer/pass/crate_path.rs" consumer_crate_path,
    "consumer/pass/generic_events.rs" consumer_generic_events,
    "consumer/pass/in_function_body.rs" consumer_in_function_body,
    "consumer/pass/macro_by_example.rs" consumer_macro_by_example,
    "consumer/pass/no_implicit_prelude.rs" consumer_no_implicit_prelude,
    "consumer/pass/own_extractors.rs" consumer_own_extractors,
    "consumer/pass/patterns_and_lifetimes.rs" consumer_patterns_and_lifetimes,
    "consumer/pass/raw_identifiers.rs" consumer_raw_identifiers,
    "consumer/pass/results.rs" consumer_results,
    "consumer/pass/settings_in_any_order.rs" consumer_settings_in_any_order,
    "consumer/pass/shadowed_names.rs" consumer_shadowed_names,
    "consumer/pass/strict_lints.rs" consumer_strict_lints,
    "consumer/pass/visibility.rs" consumer_visibility,
    "consumers/pass/cfg.rs" consumers_cfg,
    "consumers/pass/crate_path.rs" consumers_crate_path,
    "consumers/pass/macro_by_example.rs" consumers_macro_by_example,
    "consumers/pass/methods.rs" consumers_methods,
    "consumers/pass/no_implicit_prelude.rs" consumers_no_implicit_prelude,
    "consumers/pass/raw_identifiers.rs" consumers_raw_identifiers,
    "consumers/pass/several_blocks.rs" consumers_several_blocks,
    "consumers/pass/shadowed_names.rs" consumers_shadowed_names,
    "consumers/pass/strict_lints.rs" consumers_strict_lints,
    "contract/pass/handlers_of_all_kinds.rs" contract_handlers_of_all_kinds,
    "event/pass/crate_path.rs" event_crate_path,
    "event/pass/enum_and_unit.rs" event_enum_and_unit,
    "event/pass/generic.rs" event_generic,
    "event/pass/in_function_body.rs" event_in_function_body,
    "event/pass/keys.rs" event_keys,
    "event/pass/macro_by_example.rs" event_macro_by_example,
    "event/pass/no_implicit_prelude.rs" event_no_implicit_prelude,
    "event/pass/raw_identifiers.rs" event_raw_identifiers,
    "event/pass/renamed_imports.rs" event_renamed_imports,
    "event/pass/several_attributes.rs" event_several_attributes,
    "event/pass/shadowed_names.rs" event_shadowed_names,
    "handlers/pass/paths.rs" handlers_paths,
    "schema/pass/events_of_all_kinds.rs" schema_events_of_all_kinds,
    "schema/pass/strict_lints_and_shadowed_names.rs" schema_strict_lints_and_shadowed_names,
    "view/pass/subsets.rs" view_subsets,
    "lint/pass/allowed.rs" lint_allowed,
    "lint/pass/names_that_call_nobody.rs" lint_names_that_call_nobody,
    "lint/pass/outside_of_transactions.rs" lint_outside_of_transactions,
    "transaction/pass/cfg_and_attributes.rs" transaction_cfg_and_attributes,
    "transaction/pass/crate_path.rs" transaction_crate_path,
    "transaction/pass/generics_and_patterns.rs" transaction_generics_and_patterns,
    "transaction/pass/macro_by_example.rs" transaction_macro_by_example,
    "transaction/pass/no_implicit_prelude.rs" transaction_no_implicit_prelude,
    "transaction/pass/opens_and_joins.rs" transaction_opens_and_joins,
    "transaction/pass/shadowed_names.rs" transaction_shadowed_names,
    "transaction/pass/strict_lints.rs" transaction_strict_lints,
}

#[test]
fn every_file_is_a_case() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = BTreeSet::new();
    for of_macro in std::fs::read_dir(&tests).unwrap() {
        let passing = of_macro.unwrap().path().join("pass");
        for file in std::fs::read_dir(passing).into_iter().flatten() {
            files.insert(file.unwrap().path().strip_prefix(&tests).unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(files, CASES.iter().map(|case| (*case).to_owned()).collect());
}
