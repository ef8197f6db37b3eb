//! From each transaction to what it reaches through functions and methods of the same target.

use std::collections::{HashMap, HashSet, VecDeque};

use proc_macro2::TokenStream;
use relaybus_lint::{Allowed, Call, Event, Function, Names, RegionKind, Scan, What};
use syn::{FnArg, Signature, Type};

use super::sources::{Located, Sources, name_of};
use super::{Finding, Place, Rule, Step};

/// A function, scanned.
struct Node<'s> {
    located: &'s Located,
    scan: Scan,
    /// The full path of its type, if it is a method.
    this: Option<Vec<String>>,
    /// Why all of it is inside a transaction.
    whole: Option<&'static str>,
    /// All it calls is allowed.
    allowed: bool,
}

impl Node<'_> {
    /// `Orders::place`, or `place`.
    fn name(&self) -> String {
        let name = &self.located.function.signature.ident;
        match self.this.as_ref().and_then(|this| this.last()) {
            Some(this) => format!("{this}::{name}"),
            None => name.to_string(),
        }
    }
}

/// Everything that is found in a target, and how many transactions it has.
pub(crate) fn findings(sources: &Sources) -> (Vec<Finding>, usize) {
    let nodes: Vec<Node<'_>> = sources.functions.iter().map(|located| node(sources, located)).collect();
    let graph = Graph::new(sources, &nodes);
    let mut findings = Vec::new();
    let mut seen = HashSet::new();
    let mut transactions = 0;
    // A transaction is the nearest one to what it has itself: those are reported before what is reached from others.
    for (number, node) in nodes.iter().enumerate() {
        for region in 0..node.scan.regions.len() {
            transactions += 1;
            graph.walk(number, region, &mut seen, &mut findings);
        }
    }
    for node in &nodes {
        findings.extend(faults(sources, node).map(without_reason));
    }
    for file in &sources.files {
        findings.extend(file.comments.without_reason().map(|(line, column, length)| {
            let place = Place { file: file.path.clone(), line, column, end_line: line, end_column: column + length };
            without_reason(place)
        }));
    }
    (findings, transactions)
}

fn node<'s>(sources: &'s Sources, located: &'s Located) -> Node<'s> {
    let function = &located.function;
    let names = Names::new(&sources.index, &function.module, function.this.as_ref());
    let whole = whole(function);
    let at = whole.map(|_| name_of(function));
    let scan = Scan::of(function.body.clone(), Some(&function.signature), &names, at);
    let this = names.this().cloned();
    let allowed = Allowed::among(&function.attrs).is_some_and(|allowed| allowed.fault().is_none());
    Node { located, scan, this, whole, allowed }
}

/// Why all of a function is inside a transaction, if it is.
fn whole(function: &Function) -> Option<&'static str> {
    for attr in &function.attrs {
        let name = attr.path().segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let arguments = match &attr.meta {
            syn::Meta::List(list) => list.tokens.clone(),
            syn::Meta::Path(_) | syn::Meta::NameValue(_) => TokenStream::new(),
        };
        let is_transactional = || arguments.clone().into_iter().any(|tree| tree.to_string() == "transactional");
        match name.as_str() {
            "transaction" => return Some("is a `#[transaction]`"),
            "consumer" if is_transactional() => return Some("is a transactional consumer"),
            _ => {}
        }
    }
    takes_transaction(&function.signature).then_some("is given the handle of a transaction")
}

/// Whether a parameter is `&mut` some transaction.
fn takes_transaction(signature: &Signature) -> bool {
    signature.inputs.iter().any(|input| match input {
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Reference(reference) if reference.mutability.is_some() => match &*reference.elem {
                Type::Path(path) => {
                    path.path.segments.last().is_some_and(|last| last.ident.to_string().ends_with("Transaction"))
                }
                _ => false,
            },
            _ => false,
        },
        FnArg::Receiver(_) => false,
    })
}

struct Graph<'a, 's> {
    sources: &'s Sources,
    nodes: &'a [Node<'s>],
    functions: HashMap<Vec<String>, Vec<usize>>,
}

impl<'a, 's> Graph<'a, 's> {
    fn new(sources: &'s Sources, nodes: &'a [Node<'s>]) -> Self {
        let mut functions: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        for (number, node) in nodes.iter().enumerate() {
            let function = &node.located.function;
            let owner = node.this.as_ref().unwrap_or(&function.module);
            let path = owner.iter().cloned().chain([function.signature.ident.to_string()]).collect();
            functions.entry(path).or_default().push(number);
        }
        Self { sources, nodes, functions }
    }

    /// The functions that a call may mean.
    fn targets(&self, call: &Call) -> Vec<usize> {
        let of = |path: &Vec<String>| self.functions.get(path).into_iter().flatten().copied();
        match call {
            Call::Function(path) => of(path).collect(),
            Call::Method(types, name) => types
                .iter()
                .flat_map(|owner| of(&owner.iter().cloned().chain([name.clone()]).collect()).collect::<Vec<_>>())
                .collect(),
        }
    }

    /// Reports what a transaction does, itself and through others; each place once.
    fn walk(&self, start: usize, region: usize, seen: &mut HashSet<Place>, findings: &mut Vec<Finding>) {
        let begins = self.begins(start, region);
        let mut visited = HashSet::from([start]);
        let mut next = VecDeque::from([(start, Some(region), vec![begins])]);
        while let Some((number, region, path)) = next.pop_front() {
            let node = &self.nodes[number];
            if node.allowed {
                continue;
            }
            for event in node.scan.events.iter().filter(|event| region.is_none() || event.region == region) {
                let place = self.sources.place(node.located.file, &event.tokens);
                match &event.what {
                    What::Call(call) => {
                        for target in self.targets(call) {
                            if visited.insert(target) {
                                let text = format!("which calls `{}`", self.nodes[target].name());
                                let step = Step { text, place: place.clone() };
                                let path = path.iter().cloned().chain([step]).collect();
                                next.push_back((target, None, path));
                            }
                        }
                    }
                    What::External(_) | What::Detached => {
                        self.report(node, event, place, &path, seen, findings);
                    }
                }
            }
        }
    }

    /// The first step: why there is a transaction.
    fn begins(&self, number: usize, region: usize) -> Step {
        let node = &self.nodes[number];
        let region = &node.scan.regions[region];
        let text = match region.kind {
            RegionKind::Whole => format!("`{}` {}", node.name(), node.whole.unwrap_or_default()),
            RegionKind::Closure => format!("`{}` opens a transaction", node.name()),
            RegionKind::ByHand => format!("`{}` opens a transaction by hand", node.name()),
        };
        Step { text, place: self.sources.place(node.located.file, &region.tokens) }
    }

    fn report(
        &self,
        node: &Node<'_>,
        event: &Event,
        place: Place,
        path: &[Step],
        seen: &mut HashSet<Place>,
        findings: &mut Vec<Finding>,
    ) {
        let (rule, message, help) = words(event);
        let allowed = self.sources.files[node.located.file].comments.allow(rule, place.line);
        if !allowed && seen.insert(place.clone()) {
            findings.push(Finding { place, rule, message, path: path.to_vec(), help });
        }
    }
}

/// The words of a finding.
fn words(event: &Event) -> (Rule, String, Vec<String>) {
    match &event.what {
        What::External(service) => (
            Rule::ExternalCall,
            format!("{} {} inside a transaction", event.shown(), service.does),
            vec![
                "the transaction keeps its locks and its connection until the answer comes, and the call is not undone \
                 when it rolls back"
                    .to_owned(),
                "call it before the transaction, or in a consumer of the transaction's event".to_owned(),
            ],
        ),
        What::Detached | What::Call(_) => (
            Rule::PublishDetached,
            format!("{} publishes outside of the transaction that is open here", event.shown()),
            vec![
                "the event is stored even when the transaction rolls back".to_owned(),
                "use `publish` with the handle of the transaction".to_owned(),
            ],
        ),
    }
}

/// The places of allowances in attributes that lack a reason.
fn faults<'n>(sources: &'n Sources, node: &'n Node<'_>) -> impl Iterator<Item = Place> + 'n {
    let on_function = Allowed::among(&node.located.function.attrs);
    let in_body = node.scan.allowed.iter().filter(|allowed| allowed.fault().is_some());
    let on_function = on_function.filter(|allowed| allowed.fault().is_some()).map(|allowed| allowed.tokens);
    let tokens: Vec<TokenStream> = in_body.map(|allowed| allowed.tokens.clone()).chain(on_function).collect();
    tokens.into_iter().map(|tokens| sources.place(node.located.file, &tokens))
}

fn without_reason(place: Place) -> Finding {
    Finding {
        place,
        rule: Rule::MissingReason,
        message: "this allows something without saying why".to_owned(),
        path: Vec::new(),
        help: vec![
            "write `#[allow_external_call(reason = \"..\")]` or `// relaybus-lint: allow(external_call): ..`"
                .to_owned(),
        ],
    }
}
