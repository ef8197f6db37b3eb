//! The configurations that are searched.
//!
//! Their names say the workers by their handlers, the deliveries, and what goes wrong, a letter each time: `c` a process dies,
//! `r` it may start again, `p` it stands still, `l` an answer is lost, `f` an attempt fails, `h` a lane is given away, `q` a
//! dead letter is requeued, `x` a worker leaves.

use crate::config::Config;

pub(crate) const A: u8 = 1;
pub(crate) const B: u8 = 2;
pub(crate) const AB: u8 = A | B;

/// A small part, for every run of the tests.
#[must_use]
pub fn few() -> Vec<Config> {
    let mut all = Vec::new();
    for letters in ["cp", "lp", "lfcr", "llh", "x"] {
        all.push(run_of_two(letters));
    }
    for letters in ["cp", "lf"] {
        all.push(run_of_two(letters).replay(A).named(&format!("replayed run of 2, {letters}")));
        all.push(run_of_two(letters).transactional(A).named(&format!("transactional run of 2, {letters}")));
    }
    all.push(handlers_differ("{ab}{b}", &[AB, B], "clr"));
    all.push(handlers_differ("{ab}{b}", &[AB, B], "lx"));
    all.push(handlers_differ("{ab}{a}{b}", &[AB, A, B], "cl"));
    all.push(arrives("l"));
    all.push(key_and_unkeyed("fh"));
    all.push(requeued("cfq"));
    all
}

/// All of them.
#[must_use]
pub fn every() -> Vec<Config> {
    let mut all = few();
    all.extend(deliveries());
    all.extend(keys());
    all.extend(transactions());
    all.extend(lanes());
    all.extend(handlers());
    all.extend(sessions());
    all
}

fn run_of_two(letters: &str) -> Config {
    Config::new(&format!("run of 2, {letters}"), &[A, A]).keyed(0, 0).keyed(0, 0).runs(2).with(letters)
}

fn handlers_differ(name: &str, sets: &[u8], letters: &str) -> Config {
    Config::new(&format!("{name}, {letters}"), sets).unkeyed(0, 0).unkeyed(1, 0).with(letters)
}

fn both_die() -> Config {
    handlers_differ("both die, 2 numbers, {a}{ab}", &[A, AB], "ccr")
}

fn key_and_unkeyed(letters: &str) -> Config {
    let config = Config::new(&format!("key and unkeyed, {letters}"), &[A, A]).keyed(0, 0).keyed(0, 0).unkeyed(0, 0);
    config.runs(2).with(letters)
}

fn requeued(letters: &str) -> Config {
    let config = Config::new(&format!("dead, requeued while hot, {letters}"), &[A, A]).keyed(0, 0).dead();
    config.keyed(0, 0).keyed(0, 0).runs(2).with(letters)
}

/// A second worker comes, and gets one of two lanes.
fn arrives(letters: &str) -> Config {
    let config = Config::new(&format!("rebalancing, 2 lanes {{a}}{{a}}, {letters}"), &[A, A]).absent(1).lanes(2);
    config.keyed_in(0, 0, 1).keyed_in(0, 0, 1).runs(2).with(letters)
}

fn deliveries() -> Vec<Config> {
    let two = |letters: &str| {
        Config::new(&format!("2 unkeyed, 2 lanes, {letters}"), &[A, A]).unkeyed(0, 0).unkeyed(0, 1).with(letters)
    };
    let one =
        |letters: &str| Config::new(&format!("1 lane, {letters}"), &[A, A]).unkeyed(0, 0).unkeyed(0, 0).with(letters);
    let three = |name: &str, letters: &str| Config::new(&format!("3 workers, {name}{letters}"), &[A, A, A]);
    vec![
        two("cf"),
        two("lh"),
        two("clr"),
        one("hlc"),
        one("hlp"),
        one("llc"),
        one("pp"),
        three("", "cp").unkeyed(0, 0).unkeyed(0, 0).with("cp"),
        three("", "lh").unkeyed(0, 0).unkeyed(0, 0).with("lh"),
        three("", "cl").unkeyed(0, 0).unkeyed(0, 0).with("cl"),
        three("run of 2, ", "cc").keyed(0, 0).keyed(0, 0).runs(2).with("cc"),
        Config::new("a commit later than a takeover, p", &[A, A]).unkeyed(0, 0).unkeyed(0, 0).late().with("p"),
        key_and_unkeyed("clfh"),
        Config::new("reading and writing apart, pl", &[A, A]).unkeyed(0, 0).unkeyed(0, 0).apart().with("pl"),
        Config::new("reading and writing apart, run of 2, cl", &[A, A])
            .keyed(0, 0)
            .keyed(0, 0)
            .runs(2)
            .apart()
            .with("cl"),
        Config::new("reading and writing apart, run of 2, llh", &[A, A])
            .keyed(0, 0)
            .keyed(0, 0)
            .runs(2)
            .apart()
            .with("llh"),
    ]
}

fn keys() -> Vec<Config> {
    let chain =
        |name: &str, letters: &str| Config::new(&format!("{name}, {letters}"), &[A, A]).keyed(0, 0).with(letters);
    let mut all: Vec<Config> = ["cf", "ll", "lc", "lf", "lfc", "llp", "ccr", "clfp", "cxr"].map(run_of_two).into();
    for letters in ["cf", "lp", "lfc", "ccr", "clpr"] {
        all.push(run_of_two(letters).replay(A).named(&format!("replayed run of 2, {letters}")));
    }
    for letters in ["cf", "clf"] {
        all.push(chain("run of 3, the third appears", letters).keyed(0, 0).keyed(0, 0).late().runs(3));
        all.push(
            chain("replayed run of 3, the third appears", letters).keyed(0, 0).keyed(0, 0).late().runs(3).replay(A),
        );
    }
    all.push(chain("run of 2, two appear", "pf").keyed(0, 0).late().keyed(0, 0).late().runs(2));
    all.push(chain("run of 3, the second is delayed", "cf").keyed(0, 0).delayed().keyed(0, 0).runs(3));
    all.push(chain("run of 1", "cp").keyed(0, 0));
    all.push(chain("run of 1", "clfr").keyed(0, 0));
    all.push(chain("run of 2, buried", "cf").keyed(0, 0).runs(2).bury());
    all.push(chain("run of 2, buried", "clfq").keyed(0, 0).runs(2).bury());
    all.extend(["q", "clfq"].map(requeued));
    let two = |letters: &str| {
        Config::new(&format!("2 keys, 2 lanes, {letters}"), &[A, A])
            .keyed(0, 0)
            .keyed_in(0, 1, 1)
            .keyed_in(0, 1, 1)
            .runs(2)
            .with(letters)
    };
    all.extend(["clh", "cp", "lp"].map(two));
    all
}

fn transactions() -> Vec<Config> {
    let mut all = Vec::new();
    for letters in ["plf", "clf", "llp", "clpr"] {
        all.push(run_of_two(letters).transactional(A).named(&format!("transactional run of 2, {letters}")));
    }
    all.push(run_of_two("clf").transactional(A).runs(1).named("transactional, run of 1, clf"));
    all.push(Config::new("transactional, unkeyed, clpf", &[A, A]).unkeyed(0, 0).transactional(A).with("clpf"));
    all
}

fn lanes() -> Vec<Config> {
    let ab = |letters: &str| {
        Config::new(&format!("2 lanes {{ab}}{{b}}, {letters}"), &[AB, B])
            .lanes(2)
            .unkeyed(0, 0)
            .unkeyed(1, 1)
            .with(letters)
    };
    vec![
        Config::new("rebalancing, 2 lanes {a}{ab}", &[A, AB]).absent(1).lanes(2).unkeyed(0, 1).unkeyed(1, 0),
        Config::new("rebalancing, 2 lanes {a}{ab}, cr", &[A, AB])
            .absent(1)
            .lanes(2)
            .unkeyed(0, 1)
            .unkeyed(1, 0)
            .with("cr"),
        arrives("ll"),
        ab("ch"),
        ab("cl"),
        ab("cx"),
        Config::new("2 lanes {a}{a}{a}, lh", &[A, A, A]).lanes(2).unkeyed(0, 0).unkeyed(0, 1).with("lh"),
    ]
}

fn handlers() -> Vec<Config> {
    let mut all = Vec::new();
    all.push(handlers_differ("boot from nothing {a}{ab}{b}", &[A, AB, B], "l").absent(0).absent(1).absent(2));
    for letters in ["c", "p", "cp"] {
        all.push(handlers_differ("{ab}{a}{b}", &[AB, A, B], letters));
    }
    for letters in ["c", "cpf", "pl", "clhr"] {
        all.push(handlers_differ("{ab}{b}", &[AB, B], letters));
    }
    for letters in ["p", "lh"] {
        all.push(handlers_differ("{a}{ab}", &[A, AB], letters));
    }
    let unknown = |name: &str, sets: &[u8], letters: &str| {
        Config::new(&format!("handler c known by nobody, {name}, {letters}"), sets)
            .unkeyed(0, 0)
            .unkeyed(2, 0)
            .with(letters)
    };
    all.push(unknown("{a}{ab}", &[A, AB], "c"));
    all.push(unknown("{ab}{b}", &[AB, B], "cpr"));
    let grows = |letters: &str| {
        handlers_differ("restart with a larger set {a} to {ab}, beside {b}", &[A, B], letters).restart(0, AB)
    };
    all.push(grows("cf"));
    let grows = |letters: &str| handlers_differ("{ab}{a}{b} to {ab} each", &[AB, A, B], letters);
    all.push(grows("ch").restart(0, AB).restart(1, AB).restart(2, AB));
    all
}

fn sessions() -> Vec<Config> {
    let same = |letters: &str| {
        Config::new(&format!("{{a}}{{a}}, {letters}"), &[A, A]).unkeyed(0, 0).unkeyed(0, 0).with(letters)
    };
    let mut all: Vec<Config> = ["llh", "cplr", "pplh", "plx", "cllr"].map(same).into();
    all.push(Config::new("alone, 1 number, cr", &[A]).unkeyed(0, 0).unkeyed(0, 0).with("cr"));
    all.push(Config::new("alone, 1 number, clr", &[A]).keyed(0, 0).keyed(0, 0).runs(2).with("clr"));
    all.push(both_die());
    all.push(both_die().with("l").named("both die, 2 numbers, {a}{ab}, cclr"));
    all.push(handlers_differ("a session without lanes, {a}{-} to {b}", &[A, 0], "c").restart(1, B));
    all.push(handlers_differ("a session without lanes, {a}{b}{-}", &[A, B, 0], "cr"));
    all.push(Config::new("{a}{-} to {a}, cplhr", &[A, 0]).unkeyed(0, 0).with("cplh").restart(0, A).restart(1, A));
    all.push(Config::new("{a}{a}{a}, pp", &[A, A, A]).unkeyed(0, 0).with("pp"));
    all.push(handlers_differ("leaving, {ab}{a}{b}", &[AB, A, B], "cxr"));
    all
}
