//! Pods of which plugins name the only nodes.

use super::*;

/// Names the only nodes of every pod, by a code of its own or not. What it has refused may be helped by these events.
struct Names {
    name: &'static str,
    nodes: &'static [&'static str],
    code: ReasonCode,
    events: Events,
}

impl Plugin for Names {
    fn name(&self) -> &'static str {
        self.name
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).enqueue_extensions(&self).filter(&self)
    }
}

impl EnqueueExtensions for Names {
    fn events_to_register(&self) -> Events {
        self.events
    }
}

impl Filter for Names {
    fn prepare_filter(&self, _: &Request<'_>, _: &Cluster) -> PreparedFilter {
        PreparedFilter::NodeNames(self.nodes.iter().map(|name| Box::<str>::from(*name)).collect(), None)
    }

    fn names_nodes(&self) -> bool {
        true
    }

    fn unnamed_node_code(&self) -> ReasonCode {
        self.code
    }
}

/// An engine with node n1, whose plugins A and B name these nodes. After a node is added, A may let in what it has refused; B never does.
fn named(by_first: &'static [&'static str], by_second: &'static [&'static str]) -> Engine {
    let first =
        Names { name: "A", nodes: by_first, code: ReasonCode::ReservationNotMatched, events: Events::NODE_ADDED };
    let second = Names { name: "B", nodes: by_second, code: ReasonCode::NodeNameMismatch, events: Events::NONE };
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(first), Arc::new(second)];
    let profile = Profile { filters: vec![0, 1], ..Profile::of("test", plugins) };
    let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
    engine.set_node(node("n1", 1), at(0));
    engine.set_pod(pod("p", "test", None), at(0));
    engine
}

#[test]
fn a_pod_of_which_plugins_name_no_node_together_is_tried_again_after_what_helps_the_first_of_them() {
    let mut engine = named(&["n1"], &["n2"]);
    let none = "p: 0/1 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.";
    assert_eq!(next(&mut engine, at(0)), none);
    assert_eq!(next(&mut engine, at(9)), "-");
    engine.set_node(node("n2", 1), at(10));
    assert_eq!(next(&mut engine, at(20)), none.replace("0/1", "0/2"), "A was among those that left none");
}

#[test]
fn the_diagnosis_says_that_plugins_name_no_node_together() {
    let why = |engine: Engine| engine.why(&Uid::from("p"), at(0)).unwrap().decision.unwrap();
    let decision = why(named(&["n1"], &["n2"]));
    let (plugin, rejection) = decision.rejected.unwrap();
    let said = "node(s) didn't satisfy plugin(s) [A B] simultaneously";
    assert_eq!((plugin, rejection.message().as_str()), ("B", said));
    assert!(matches!(decision.outcome, Some(Outcome::Refused(refused)) if refused.message.contains(said)));
    assert!(why(named(&["n1"], &["n1", "n2"])).rejected.is_none());
}

#[test]
fn a_node_that_a_plugin_has_not_named_has_the_code_of_that_plugin() {
    let codes = |engine: Engine| -> Vec<(&'static str, ReasonCode)> {
        let nodes = engine.on_nodes(&Uid::from("p")).unwrap();
        let refusals = nodes.iter().flat_map(|on| &on.refusals);
        refusals.flat_map(|one| one.reasons.iter().map(move |reason| (one.plugin, reason.code))).collect()
    };
    assert_eq!(codes(named(&["n2"], &["n1", "n2"])), [("A", ReasonCode::ReservationNotMatched)]);
    assert_eq!(codes(named(&["n1", "n2"], &["n2"])), [("B", ReasonCode::NodeNameMismatch)]);
}
