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
        use super::{Change, Reaction};

        pub fn same_key(_: &Change, reaction: &mut Reaction) {
            reaction.0.push("same");
        }
        pub fn its_owner(_: koord_resource::controller::ResourceKind) -> impl Fn(&Change, &mut Reaction) {
            |_, reaction| reaction.0.push("owner")
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
struct HandView;

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
}

impl Projection for CardView {
    const KIND: ResourceKind = ResourceKind::of(&Card::INFO);
}

impl Projection for HandView {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
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

#[controller(
    name = "plain",
    for = ResourceKind::POD,
    watches(Card, writes = [status]),
    rate_limit(base_ms = 1, max_ms = 60000, per_second = 20, burst = 2),
)]
struct Plain;

/// A controller that makes fields of its own, and writes.
#[controller(
    name = "dealer",
    for(cards, writes = [finalizers, patch, status, delete]),
    owns(cards),
    owns(hands),
    reads(nodes, namespace = &table.name, fields = format!("metadata.name={}", table.name), writes = [patch]),
    arguments(table: &Table, seats: Result<u32, String>),
    init(dealt, seats = seats? + u32::try_from(wiring.0.len()).unwrap_or_default()),
    error = String,
    runtime = crate::controller::runtime,
)]
struct Dealer {
    cards: Arc<Store<CardView>>,
    hands: Arc<Store<HandView>>,
    nodes: Arc<Store<NodeView>>,
    dealt: Vec<u32>,
    seats: u32,
    greeting: &'static str,
}

/// Where cards are dealt.
struct Table {
    name: String,
}

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
    assert_eq!(plain.rate_limit, RateLimit { base_ms: 1, max_ms: 60_000, per_second: 20, burst: 2 });
    assert_eq!(cards.gate, Some("NameCards"));
    assert_eq!((cards.rbac[0].names, cards.rbac[0].namespace), (&["one"][..], Some(".")));
    assert_eq!(cards.rbac[1].urls, ["/metrics"]);
    assert_eq!((plain.for_kind, plain.watches, plain.gate), (ResourceKind::POD, &[card][..], None));
    let _ = Plain;
}

#[test]
fn what_a_controller_writes_is_permitted() {
    let shown = |spec: &ControllerSpec| -> Vec<String> {
        spec.rbac_rules().iter().map(|rule| format!("{}: {}", rule.resource, rule.verbs.join(" "))).collect()
    };
    assert_eq!(shown(&Plain::SPEC), ["pods: list watch", "cards: list watch", "cards/status: patch"]);
    assert_eq!(
        shown(&Dealer::SPEC),
        [
            "nodes: list watch",
            "cards: create delete list patch watch",
            "configmaps: create delete list patch watch",
            "cards: patch delete",
            "cards/status: patch",
            "nodes: patch",
            "cards/finalizers: update",
        ],
        "the owner of children may block its own deletion"
    );
}

#[test]
fn what_is_no_cache_is_an_argument_or_made() {
    let (mut wiring, table) = (Wiring::default(), Table { name: "green".to_owned() });
    let dealer = Dealer::wire(&mut wiring, &table, Ok(4), "hello").unwrap();
    assert_eq!((&dealer.dealt[..], dealer.seats, dealer.greeting), (&[][..], 4, "hello"));
    let names = [&dealer.cards.0, &dealer.hands.0, &dealer.nodes.0];
    assert_eq!(names, ["cards", "configmaps", "nodes green  metadata.name=green"]);
    let followed: Vec<&str> = wiring.0.iter().map(|(store, _)| store.as_str()).collect();
    assert_eq!(followed, ["cards", "configmaps"], "what is only read leads to nothing");
    let refused = Dealer::wire(&mut wiring, &table, Err("no seats".to_owned()), "hello");
    assert_eq!(refused.err().as_deref(), Some("no seats"));
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
