//! The search: what holds, and what does not when a rule is left out.
//!
//! `RELAYBUS_MODEL=all` searches every configuration (minutes), any other value those whose names contain it. With
//! `--nocapture` the tests print what they searched, and the shortest trace to each fault.

use relaybus_lease_model::{Config, Mutant, Report, catches, every, few, made_up_for, search};

/// States that are looked at in one configuration at most.
const MOST: usize = 12_000_000;

fn wanted() -> Vec<Config> {
    match std::env::var("RELAYBUS_MODEL") {
        Err(_) => few(),
        Ok(all) if all == "all" => every(),
        Ok(part) => every().into_iter().filter(|config| config.name.contains(&part)).collect(),
    }
}

fn print(report: &Report) {
    let part = if report.complete { "" } else { "  (a part)" };
    println!("{:55} {:>10} states {:>9.1?}{part}", report.name, report.states, report.time);
    if let Some(fault) = &report.fault {
        println!("  broken in {} steps: {}\n{}", fault.steps, fault.rule, fault.trace);
    }
}

#[test]
fn the_protocol_holds() {
    let mut broken = Vec::new();
    for config in wanted() {
        assert!(config.fits(), "`{}` is larger than the model", config.name);
        let report = search(&config, MOST);
        print(&report);
        broken.extend(report.fault.map(|fault| (config.name, fault.rule, fault.trace)));
    }
    assert!(broken.is_empty(), "{} configurations are broken: {broken:#?}", broken.len());
}

#[test]
fn each_rule_is_needed() {
    let mut missed = Vec::new();
    for catch in catches() {
        println!("without {:?}", catch.mutants);
        let report = search(&catch.config, MOST);
        print(&report);
        if report.fault.is_none() {
            missed.push((catch.mutants, report.name));
        }
    }
    assert!(missed.is_empty(), "the model does not see that these rules are left out: {missed:?}");
}

#[test]
fn what_two_rules_stop_needs_one_of_them() {
    let pairs: Vec<Vec<Mutant>> =
        catches().into_iter().map(|catch| catch.mutants).filter(|all| all.len() > 1).collect();
    let all = std::env::var_os("RELAYBUS_MODEL").is_some();
    for catch in made_up_for() {
        println!("without {:?}", catch.mutants);
        let report = search(&catch.config, if all { MOST } else { 150_000 });
        print(&report);
        assert!(report.fault.is_none() && (report.complete || !all), "`{:?}` is needed alone", catch.mutants);
        assert!(pairs.iter().any(|pair| pair.contains(&catch.mutants[0])), "`{:?}` is in no pair", catch.mutants);
    }
}
