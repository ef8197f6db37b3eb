//! The explorer: breadth first over every reachable state, hashed to 128 bits, with the shortest trace to a fault.
//!
//! Two kinds of fault end a search. A *broken* rule is found at the step that breaks it. A *stuck* state is one from which no
//! path of helpful steps (no crash, no pause, no lost answer) leads to the end of all work; it is found afterwards, by walking
//! back from the states where all work has ended.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::state::State;
use crate::step::{Next, successors};

/// What a search found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the configuration.
    pub name: String,
    /// States that were reached.
    pub states: usize,
    /// How long it took.
    pub time: Duration,
    /// Whether every reachable state was looked at.
    pub complete: bool,
    /// The first fault, if there is one.
    pub fault: Option<Fault>,
}

/// A rule that did not hold.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What was broken.
    pub rule: &'static str,
    /// The steps from the start, and the state at the end.
    pub trace: String,
    /// How many steps.
    pub steps: usize,
}

/// The rule of states that have no way to the end of all work.
pub const STUCK: &str = "nothing is stuck for ever";

/// Two independent multiply-and-fold hashes of 64 bits.
struct Fingerprint(u64, u64);

impl Fingerprint {
    fn of(state: &State) -> u128 {
        let mut hasher = Self(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
        state.hash(&mut hasher);
        (u128::from(fold(hasher.0, 0xd6e8_feb8_6659_fd93)) << 64) | u128::from(fold(hasher.1, 0xa076_1d64_78bd_642f))
    }

    fn word(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, 0xff51_afd7_ed55_8ccd);
        self.1 = fold(self.1.rotate_left(29) ^ word, 0x8ebc_6af0_9c88_c6e3);
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let [low, high] = split(u128::from(a) * u128::from(b));
    low ^ high ^ a.rotate_left(32)
}

fn split(wide: u128) -> [u64; 2] {
    let bytes = wide.to_le_bytes();
    let half = |from: usize| {
        let mut part = [0; 8];
        part.copy_from_slice(&bytes[from..from + 8]);
        u64::from_le_bytes(part)
    };
    [half(0), half(8)]
}

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.word(u64::from(byte) | 0x100);
    }

    fn write_usize(&mut self, number: usize) {
        self.word(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.word(number as u64);
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
}

struct Graph {
    index: HashMap<u128, u32, BuildHasherDefault<Same>>,
    parents: Vec<u32>,
    /// Helpful steps: from, to.
    edges: Vec<(u32, u32)>,
    ended: Vec<u32>,
}

impl Graph {
    /// The place of a state, and whether it is new.
    fn place(&mut self, state: &State, parent: u32) -> (u32, bool) {
        let next = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        let place = *self.index.entry(Fingerprint::of(state)).or_insert(next);
        if place == next {
            self.parents.push(parent);
        }
        (place, place == next)
    }

    /// The first state from which no helpful path leads to an end.
    fn first_stuck(&self) -> Option<u32> {
        let count = self.parents.len();
        let mut starts = vec![0_u32; count + 2];
        for &(_, to) in &self.edges {
            starts[to as usize + 2] += 1;
        }
        for place in 2..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut back = vec![0_u32; self.edges.len()];
        for &(from, to) in &self.edges {
            let slot = &mut starts[to as usize + 1];
            back[*slot as usize] = from;
            *slot += 1;
        }
        let mut live = vec![false; count];
        let mut open = self.ended.clone();
        for &place in &open {
            live[place as usize] = true;
        }
        while let Some(place) = open.pop() {
            for &from in &back[starts[place as usize] as usize..starts[place as usize + 1] as usize] {
                if !live[from as usize] {
                    live[from as usize] = true;
                    open.push(from);
                }
            }
        }
        live.iter().position(|&live| !live).and_then(|place| u32::try_from(place).ok())
    }
}

/// Searches a configuration, at most `limit` states of it.
#[must_use]
pub fn search(config: &Config, limit: usize) -> Report {
    let began = Instant::now();
    let mut graph = Graph { index: HashMap::default(), parents: Vec::new(), edges: Vec::new(), ended: Vec::new() };
    let start = State::start(config);
    graph.place(&start, u32::MAX);
    let (mut level, mut here) = (vec![start], 0_u32);
    let mut next_level = Vec::new();
    let mut found = Vec::new();
    let mut fault = None;
    let mut complete = true;
    'search: while !level.is_empty() {
        for state in level.drain(..) {
            if state.has_ended(config) {
                graph.ended.push(here);
            } else if graph.parents.len() >= limit {
                // Not looked at any further: what is behind it is taken for good.
                graph.ended.push(here);
                complete = false;
                here += 1;
                continue;
            }
            found.clear();
            successors(config, &state, &mut found);
            for next in found.drain(..) {
                if let Some(rule) = next.broken {
                    fault = Some(traced(config, &graph, here, rule, Some(next)));
                    break 'search;
                }
                let (place, new) = graph.place(&next.state, here);
                if next.helpful && place != here {
                    graph.edges.push((here, place));
                }
                if new {
                    next_level.push(next.state);
                }
            }
            here += 1;
        }
        std::mem::swap(&mut level, &mut next_level);
    }
    if fault.is_none() {
        fault = graph.first_stuck().map(|place| traced(config, &graph, place, STUCK, None));
    }
    Report { name: config.name.clone(), states: graph.parents.len(), time: began.elapsed(), complete, fault }
}

/// The steps to a state, found again from the start, and one more.
fn traced(config: &Config, graph: &Graph, to: u32, rule: &'static str, last: Option<Next>) -> Fault {
    let mut path = vec![to];
    while let Some(&parent) = path.last().and_then(|&place| graph.parents.get(place as usize)) {
        if parent == u32::MAX {
            break;
        }
        path.push(parent);
    }
    path.reverse();
    let mut text = String::new();
    let mut state = State::start(config);
    let mut steps = path.len() - 1;
    for (number, &place) in path.iter().enumerate().skip(1) {
        let mut found = Vec::new();
        successors(config, &state, &mut found);
        let wanted = |next: &Next| graph.index.get(&Fingerprint::of(&next.state)) == Some(&place);
        let Some(next) = found.into_iter().find(wanted) else { break };
        let _ = writeln!(text, "{number:>3}  {}", next.step);
        state = next.state;
    }
    if let Some(last) = last {
        steps += 1;
        let _ = writeln!(text, "{steps:>3}  {}", last.step);
        state = last.state;
    }
    let _ = write!(text, "{state}");
    Fault { rule, trace: text, steps }
}
