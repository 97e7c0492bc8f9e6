//! Controllers as data, and how their caches are wired.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Resource, controller,
    controller::{ControllerSpec, RateLimit, ResourceKind},
    controllers,
};
use serde::Deserialize;

/// As much of a runtime as the attribute speaks to; the example operator uses the real one.
mod runtime {
    use std::sync::Arc;

    pub struct Store<P>(pub String, std::marker::PhantomData<P>);
    pub struct Change;
    #[derive(Default)]
    pub struct Reaction(pub Vec<&'static str>);
    pub type React = Box<dyn Fn(&Change, &mut Reaction)>;
    #[derive(Default)]
    pub struct Wiring<'a>(pub Vec<(String, React)>, pub std::marker::PhantomData<&'a ()>);

    impl Wiring<'_> {
        pub fn reads<P: projection::Projection>(&mut self) -> Arc<Store<P>> {
            self.reads_some(&reflector::Selection::default())
        }
        #[expect(clippy::unused_self, reason = "the real one keeps the cache")]
        pub fn reads_some<P: projection::Projection>(&mut self, selection: &reflector::Selection) -> Arc<Store<P>> {
            let reflector::Selection { namespace, labels, fields } = selection;
            let name = format!("{} {namespace} {labels} {fields}", P::KIND.plural);
            Arc::new(Store(name.trim().to_owned(), std::marker::PhantomData))
        }
        pub fn on<P>(&mut self, store: &Store<P>, react: impl Fn(&Change, &mut Reaction) + 'static) {
            self.0.push((store.0.clone(), Box::new(react)));
        }
    }
    pub mod projection {
        pub trait Projection {
            const KIND: koord_resource::controller::ResourceKind;
        }
    }
    pub mod reflector {
        #[derive(Default)]
        pub struct Selection {
            pub namespace: String,
            pub labels: String,
            pub fields: String,
        }
    }
    pub mod controller {
        pub fn same_key(_: &super::Change, reaction: &mut super::Reaction) {
            reaction.0.push("same");
        }
    }
}

use runtime::{Change, Reaction, Store, Wiring, projection::Projection};

/// A card.
#[derive(Clone, Default, Deserialize, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
struct Card {
    metadata: ObjectMeta,
}

struct NodeView;
struct CardView;

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
}

impl Projection for CardView {
    const KIND: ResourceKind = ResourceKind::of(&Card::INFO);
}

#[controller(
    name = "name-cards",
    for = nodes,
    owns(cards, by = by_name, predicate = never, namespace = "default", labels = "a=b"),
    watches(more),
    concurrency = 4,
    rate_limit(base_ms = 10, burst = 7),
    gate = "NameCards",
    rbac(group = "", resource = "secrets", names = ["one"], verbs = [get], namespace = "."),
    rbac(urls = ["/metrics"], verbs = [get]),
    runtime = crate::controller::runtime,
)]
struct NameCards {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
    more: Arc<Store<CardView>>,
    greeting: &'static str,
}

#[controller(name = "plain", for = ResourceKind::POD, owns(Card))]
struct Plain;

fn by_name(_: &Change, reaction: &mut Reaction) {
    reaction.0.push("by name");
}

fn never(_: &Change) -> bool {
    false
}

const CONTROLLERS: &[ControllerSpec] = controllers![NameCards, Plain];

#[test]
fn a_controller_is_data() {
    let [cards, plain] = CONTROLLERS else { panic!() };
    let card = ResourceKind::of(&Card::INFO);
    assert_eq!((cards.name, cards.for_kind, cards.concurrency), ("name-cards", ResourceKind::NODE, 4));
    assert_eq!((cards.owns, cards.watches), (&[card][..], &[card][..]));
    assert_eq!(cards.rate_limit, RateLimit { base_ms: 10, burst: 7, ..RateLimit::DEFAULT });
    assert_eq!(cards.gate, Some("NameCards"));
    assert_eq!((cards.rbac[0].names, cards.rbac[0].namespace), (&["one"][..], Some(".")));
    assert_eq!(cards.rbac[1].urls, ["/metrics"]);
    assert_eq!((plain.for_kind, plain.owns, plain.gate), (ResourceKind::POD, &[card][..], None));
    let _ = Plain;
}

#[test]
fn the_fields_are_the_caches() {
    let mut wiring = Wiring::default();
    let controller = NameCards::wire(&mut wiring, "hello").unwrap();
    let names = [&controller.nodes.0, &controller.cards.0, &controller.more.0];
    assert_eq!(names, ["nodes", "cards default a=b", "cards"]);
    assert_eq!(controller.greeting, "hello");
    let reactions: Vec<_> = wiring
        .0
        .iter()
        .map(|(store, react)| {
            let mut reaction = Reaction::default();
            react(&Change, &mut reaction);
            (store.as_str(), reaction.0)
        })
        .collect();
    assert_eq!(
        reactions,
        [("nodes", vec!["same"]), ("cards default a=b", vec![]), ("cards", vec!["same"])],
        "a predicate stands before what it maps to"
    );
}
