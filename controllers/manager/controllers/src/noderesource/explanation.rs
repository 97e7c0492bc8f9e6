//! How the amounts of a node come about, from the same functions that compute them.

use koord_resource::Quantity;
use koord_types::{
    node_annotations::{CPU_NORMALIZATION_RATIO, THIRD_PARTY_ALLOCATIONS},
    resource_names::{BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY},
};
use serde_json::{Value, json};

use super::{
    Decision, Facts, Plugins,
    batch::{self, Place},
    decide,
    decision::{Reset, taken_by_others},
    mid,
    waterfall::{Listener as _, Operation, Source, Term, add_term},
};
use crate::amount::{Amount, Native};

/// What can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// What batch pods may use of the node.
    Batch,
    /// What mid pods may use of the node.
    Mid,
    /// What batch pods may use of each of its zones.
    Zones,
}

/// How one amount comes about.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The resource, such as `kubernetes.io/batch-cpu`, with its zone where it is of one.
    pub resource: String,
    /// CPU or memory.
    pub native: Native,
    /// What the node shall have; none where it shall have none.
    pub amount: Option<Quantity>,
    /// Why it shall have none.
    pub reset: Option<Reset>,
    /// The terms in order.
    pub terms: Vec<Term>,
}

/// How amounts of a node come about.
pub fn explain(facts: &Facts<'_>, plugins: &Plugins, about: About) -> Vec<Explanation> {
    let decision = decide(facts, plugins);
    let names = match about {
        About::Batch | About::Zones => [(Native::Cpu, BATCH_CPU), (Native::Memory, BATCH_MEMORY)],
        About::Mid => [(Native::Cpu, MID_CPU), (Native::Memory, MID_MEMORY)],
    };
    let places: Vec<Option<usize>> = match about {
        About::Batch | About::Mid => vec![None],
        About::Zones => (0..facts.zones.len()).map(Some).collect(),
    };
    let explained = places.into_iter().flat_map(|zone| names.map(|(native, name)| (zone, native, name)));
    explained.map(|(zone, native, name)| one(facts, &decision, about, zone, (native, name))).collect()
}

fn one(
    facts: &Facts<'_>,
    decision: &Decision,
    about: About,
    zone: Option<usize>,
    (native, name): (Native, &'static str),
) -> Explanation {
    let (resource, amount) = match zone {
        None => (name.to_owned(), decision.resources.get(name).cloned().flatten()),
        Some(index) => {
            let label = facts.zones.get(index).map_or("", |zone| zone.name.as_str());
            let of_zone = decision.zones.as_ref().and_then(|zones| zones.get(index));
            let amount = of_zone.map(|zone| if native == Native::Cpu { &zone.cpu } else { &zone.memory });
            (format!("{name} of zone {label}"), amount.cloned())
        }
    };
    let mut terms = Vec::new();
    if let (None, Ok(trusted)) = (decision.reset, facts.trusted()) {
        let place = zone.map_or(Place::Node, Place::Zone);
        let _ = match about {
            About::Mid => mid::available(native, facts, trusted, &mut terms),
            About::Batch | About::Zones => batch::available(native, place, facts, trusted, &mut terms),
        };
    }
    if about != About::Mid && !terms.is_empty() {
        after_formula(facts, decision, (native, name), zone.is_none(), &mut terms);
    }
    Explanation { resource, native, amount, reset: decision.reset, terms }
}

/// What is done to the amount of batch pods after its formula: faster CPUs give more, others may take some.
fn after_formula(
    facts: &Facts<'_>,
    decision: &Decision,
    (native, name): (Native, &str),
    of_node: bool,
    terms: &mut Vec<Term>,
) {
    let Some(Term { amount: mut number, .. }) = terms.pop() else { return };
    let ratio = decision.annotations.get(CPU_NORMALIZATION_RATIO.name()).and_then(Option::as_deref);
    let ratio = ratio.and_then(koord_types::go_text::parse_float).filter(|ratio| *ratio > 1.0);
    if let (Native::Cpu, Some(ratio)) = (native, ratio) {
        let count = Quantity::new(number.milli(), koord_resource::quantity::Format::DecimalSI);
        let faster = count.milli_scaled_by(ratio);
        // Zones are exact, nodes count in whole thousandths of cores.
        number = if of_node {
            Amount::from_milli(faster.value())
        } else {
            Amount::from_nano(i128::from(faster.milli_value()) * 1000)
        };
        add_term(terms, Operation::Times, number, format!("times {ratio:.2}, the normalization ratio"), || {
            facts.node_source(format!("annotation {}", CPU_NORMALIZATION_RATIO.name()))
        });
    }
    if let Some(others) = taken_by_others(facts).filter(|_| of_node) {
        let taken = others.amount(name).value();
        let taken = if native == Native::Cpu { Amount::from_milli(taken) } else { Amount::from_units(taken) };
        number = (number - taken).max(Amount::ZERO);
        add_term(terms, Operation::Minus, taken, "taken by others", || {
            facts.node_source(format!("annotation {}", THIRD_PARTY_ALLOCATIONS.name()))
        });
        add_term(terms, Operation::AtLeast, Amount::ZERO, "never less than nothing", Source::derived);
    }
    terms.term(|| Term {
        operation: Operation::Result,
        amount: number,
        what: "for batch pods".into(),
        source: Source::derived(),
    });
}

impl Explanation {
    /// As JSON: `{resource, amount, reason, terms: [{operation, amount, what, object, field}]}`.
    pub fn to_json(&self) -> Value {
        let term = |term: &Term| {
            json!({
                "operation": term.operation, "amount": self.native.quantity(term.amount).to_string(), "what": term.what,
                "object": term.source.object, "field": term.source.field,
            })
        };
        json!({
            "resource": self.resource, "amount": self.amount.as_ref().map(Quantity::to_string),
            "reason": self.reset.map(|reset| reset.to_string()),
            "terms": self.terms.iter().map(term).collect::<Vec<_>>(),
        })
    }
}
