//! Whatever has happened, what is kept of a class is what its pods match.

use std::collections::{BTreeMap, BTreeSet};

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    AttemptState,
    hold::Holds,
    labels::Labels,
    object::Object,
    pod::{Pod, Template},
};
use koord_scheduler_testing::{labelled, node};
use koord_types::reservation::Reservation;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::Allocated, *};
use crate::ReservePod;

#[derive(Clone, Debug)]
enum Delta {
    /// The reservation of this number is for these owners, on this node, and of this form.
    Reservation(usize, usize, usize, usize),
    NoReservation(usize),
    Node(usize, usize),
    NoNode(usize),
    ReservePodState(usize),
    Owner(usize, usize),
    NoOwner(usize),
    Keeper(usize, usize, bool),
    NoKeeper(usize),
    /// An owner is tried, all pods ask meanwhile, and it is gone again.
    Trial(usize, usize),
    Often(usize, usize),
    Ask(usize),
}

fn deltas() -> impl Strategy<Value = Vec<Delta>> {
    let delta = prop_oneof![
        6 => (0..6_usize, 0..4_usize, 0..4_usize, 0..7_usize).prop_map(|(r, owners, node, form)| Delta::Reservation(r, owners, node, form)),
        1 => (0..6_usize).prop_map(Delta::NoReservation),
        3 => (0..4_usize, 0..3_usize).prop_map(|(node, zone)| Delta::Node(node, zone)),
        1 => (0..4_usize).prop_map(Delta::NoNode),
        1 => (0..6_usize).prop_map(Delta::ReservePodState),
        3 => (0..8_usize, 0..6_usize).prop_map(|(pod, of)| Delta::Owner(pod, of)),
        2 => (0..8_usize).prop_map(Delta::NoOwner),
        1 => (0..3_usize, 0..4_usize, any::<bool>()).prop_map(|(pod, node, is_ready)| Delta::Keeper(pod, node, is_ready)),
        1 => (0..3_usize).prop_map(Delta::NoKeeper),
        1 => (0..8_usize, 0..6_usize).prop_map(|(pod, of)| Delta::Trial(pod, of)),
        1 => (0..6_usize, 0..4_usize).prop_map(|(r, node)| Delta::Often(r, node)),
        8 => (0..8_usize).prop_map(Delta::Ask),
    ];
    proptest::collection::vec(delta, 0..80)
}

fn reservation(number: usize, owners: usize, on: usize, form: usize) -> Object {
    let app = |app: usize| json!({"labelSelector": {"matchLabels": {"app": format!("a{app}")}}});
    let owners = match owners {
        0 | 1 => json!([app(owners)]),
        2 => json!([{"object": {"name": "named"}}]),
        _ => json!([{}]),
    };
    let (name, template) = (format!("r{number}"), json!({"spec": requesting()}));
    let mut object = json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"owners": owners, "template": template, "allocateOnce": form != 1},
        "status": {"phase": "Available", "nodeName": format!("n{on}")},
    });
    match form {
        2 => object["status"]["phase"] = json!("Succeeded"),
        3 => object["spec"]["unschedulable"] = json!(true),
        4 => object["metadata"]["labels"] = json!({"zone": "z1"}),
        5 => object["status"]["nodeName"] = json!(""),
        6 => object["status"]["allocatable"] = json!({"cpu": "2"}),
        _ => {}
    }
    let object: Reservation = serde_json::from_value(object).unwrap();
    Object::new(ObjectKey::cluster(&name), Uid::from(&*name), false, Arc::new(object))
}

fn requesting() -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]})
}

/// A label or an annotation.
type Said = Option<(&'static str, &'static str)>;

/// Templates of owners: of one kind and of another, that want a zone, an exact match, a name, a node, that ignore all.
fn templates() -> Vec<Arc<Template>> {
    let affinity = "scheduling.koordinator.sh/reservation-affinity";
    let zone = r#"{"reservationSelector":{"zone":"z1"}}"#;
    let exact = ("scheduling.koordinator.sh/exact-match-reservation", r#"{"resourceNames":["cpu"]}"#);
    let ignored = ("scheduling.koordinator.sh/reservation-ignored", "true");
    let on_zone = || json!({"nodeSelector": {"zone": "z0"}});
    let none = || json!({});
    let cases: [(&str, Said, Said, Value); 7] = [
        ("a0", None, None, none()),
        ("a1", None, None, none()),
        ("a0", None, Some((affinity, zone)), none()),
        ("a0", None, Some(exact), none()),
        ("a0", None, Some((affinity, r#"{"name":"r1"}"#)), none()),
        ("a1", None, None, on_zone()),
        ("a0", Some(ignored), None, none()),
    ];
    let template = |(app, label, annotation, members): (&str, Said, Said, Value)| {
        let mut spec = requesting();
        spec.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let labels: Labels = [("app", app)].into_iter().chain(label).collect();
        let annotations: BTreeMap<&str, &str> = annotation.into_iter().collect();
        Arc::new(Template::of("ns", labels, &annotations, &serde_json::from_value(spec).unwrap()).unwrap())
    };
    cases.into_iter().map(template).collect()
}

fn owner(number: usize) -> Arc<Pod> {
    labelled("ns", &format!("p{number}"), &[("app", "a0")], &requesting())
}

fn allocated(of: usize) -> Holds {
    let name = format!("r{of}");
    let mut holds = Holds::default();
    holds.set(Allocated { name: (&*name).into(), uid: Uid::from(&*name) });
    holds
}

fn holder(number: usize, on: usize, is_ready: bool) -> Arc<Pod> {
    let labels = [("app", "keeper"), ("scheduling.koordinator.sh/operating-mode", "Reservation")];
    let pod = labelled("ns", &format!("k{number}"), &labels, &requesting());
    let owners =
        ("scheduling.koordinator.sh/reservation-owners", r#"[{"labelSelector":{"matchLabels":{"app":"a0"}}}]"#);
    let mut template = Template::clone(&pod.template);
    template.annotations = [owners].into_iter().collect();
    let (node, template) = (Some(format!("n{on}").into()), Arc::new(template));
    Arc::new(Pod { template, node, is_running: true, is_ready, ..Pod::clone(&pod) })
}

/// Asks for a pod of each template, and for one that reservations name. Gives how many reservations were matched.
fn ask(cluster: &mut Cluster, templates: &[Arc<Template>]) -> Result<usize, TestCaseError> {
    let mut found = 0;
    let cache = cluster.state::<ReservationCache>().unwrap();
    let is_shared = |known: &Known| known.info.is_matchable() && known.info.assigned_count() > 0;
    let shared: BTreeSet<&Uid> = cache.infos.iter().filter(|(_, known)| is_shared(known)).map(|(uid, _)| uid).collect();
    prop_assert_eq!(cache.shared.iter().collect::<BTreeSet<_>>(), shared);
    for (template, name) in templates.iter().flat_map(|template| [(template, "p"), (template, "named")]) {
        let key = ObjectKey::new("ns", name);
        let pod = Arc::new(Pod { key, uid: Uid::from(name), template: Arc::clone(template), ..Pod::default() });
        let class = cluster.class(template);
        let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
        let selector = ReservationSelector::new(&template.labels, &template.annotations).unwrap();
        let cache = cluster.state::<ReservationCache>().unwrap();
        for has_node_labels in [true, false] {
            let query = ReservationQuery { request: &request, selector: &selector, cluster, has_node_labels };
            let matched = cache.matched(&query);
            prop_assert_eq!(&matched, &cache.matched_anew(&query), "{:?} {}", template, name);
            found += matched.all().len();
        }
    }
    Ok(found)
}

fn apply(cluster: &mut Cluster, templates: &[Arc<Template>], delta: &Delta) -> Result<(), TestCaseError> {
    match *delta {
        Delta::Reservation(number, owners, on, form) => {
            cluster.set_object(reservation(number, owners, on, form));
        }
        Delta::NoReservation(number) => {
            cluster.remove_object(std::any::TypeId::of::<Reservation>(), &format!("r{number}"));
        }
        Delta::Node(number, zone) => {
            let labels = json!({"zone": format!("z{zone}")});
            cluster.set_node(node(&format!("n{number}"), &json!({"metadata": {"labels": labels}})));
        }
        Delta::NoNode(number) => _ = cluster.remove_node(&format!("n{number}")),
        Delta::ReservePodState(number) => {
            let name = format!("r{number}");
            let object = cluster.objects().get::<Reservation>(&name);
            let reserve_pod =
                object.map(|object| (ReservePod::new(object).unwrap().pod, object.status.node_name.clone()));
            if let Some((pod, on)) = reserve_pod.filter(|(_, on)| !on.is_empty()) {
                cluster.place(Arc::new(pod), &on.into(), Holds::default());
            }
        }
        Delta::Owner(number, of) => cluster.place(owner(number), &"n0".into(), allocated(of)),
        Delta::NoOwner(number) => _ = cluster.remove_pod(&Uid::from(&*format!("p{number}"))),
        Delta::Keeper(number, on, is_ready) => {
            cluster.place(holder(number, on, is_ready), &format!("n{on}").into(), Holds::default());
        }
        Delta::NoKeeper(number) => _ = cluster.remove_pod(&Uid::from(&*format!("k{number}"))),
        Delta::Trial(number, of) => {
            let Some(row) = cluster.row("n0") else { return Ok(()) };
            let classes: Vec<Arc<koord_scheduler_framework::cluster::Class>> =
                templates.iter().map(|template| cluster.class(template)).collect();
            let mut trial = cluster.trial();
            trial.place(owner(number), row, allocated(of));
            for class in &classes {
                let template = class.template();
                let pod = Arc::new(Pod { template: Arc::clone(template), ..Pod::default() });
                let request = Request { pod: &pod, class, plugins: &[], state: &AttemptState::default() };
                let selector = ReservationSelector::new(&template.labels, &template.annotations).unwrap();
                let query =
                    ReservationQuery { request: &request, selector: &selector, cluster: &trial, has_node_labels: true };
                let cache = trial.state::<ReservationCache>().unwrap();
                prop_assert_eq!(cache.matched(&query), cache.matched_anew(&query), "{:?} in a trial", template);
            }
        }
        Delta::Often(number, on) => {
            for time in 0..=Changes::CHANGES_MAX {
                cluster.set_object(reservation(number, 0, on, time % 2));
            }
        }
        Delta::Ask(template) => {
            ask(cluster, &templates[template.min(templates.len() - 1)..])?;
        }
    }
    Ok(())
}

fn empty() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.add_state(Box::<ReservationCache>::default());
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_of_a_class_is_what_its_pods_match(deltas in deltas()) {
        let (mut cluster, templates) = (empty(), templates());
        for delta in &deltas {
            apply(&mut cluster, &templates, delta)?;
        }
        ask(&mut cluster, &templates)?;
    }
}

#[test]
fn owners_match_by_what_changes_between_two_questions() {
    let (mut cluster, templates) = (empty(), templates());
    let mut found = |delta: Delta| {
        apply(&mut cluster, &templates, &delta).unwrap();
        ask(&mut cluster, &templates[..1]).unwrap()
    };
    // Each of two pods asks twice.
    assert_eq!(found(Delta::Reservation(0, 0, 0, 0)), 0, "its node is not known");
    assert_eq!(found(Delta::Node(0, 0)), 4);
    assert_eq!(found(Delta::Reservation(1, 0, 0, 1)), 8);
    assert_eq!(found(Delta::Owner(0, 0)), 4, "r0 is used up");
    assert_eq!(found(Delta::Owner(1, 1)), 4, "r1 has room for more");
    assert_eq!(found(Delta::NoOwner(0)), 8);
    assert_eq!(found(Delta::Keeper(0, 0, false)), 8);
    assert_eq!(found(Delta::Keeper(0, 0, true)), 12);
    assert_eq!(found(Delta::NoKeeper(0)), 8);
    assert_eq!(found(Delta::NoNode(0)), 0);
}

#[test]
fn the_oldest_of_too_many_classes_are_dropped() {
    let mut cluster = empty();
    apply(&mut cluster, &[], &Delta::Node(0, 0)).unwrap();
    apply(&mut cluster, &[], &Delta::Reservation(0, 0, 0, 0)).unwrap();
    for _ in 0..2 * Matching::CLASSES_MAX {
        assert_eq!(ask(&mut cluster, &templates()[..1]).unwrap(), 4);
    }
    assert_eq!(cluster.state::<ReservationCache>().unwrap().matching.0.lock().classes.len(), Matching::CLASSES_MAX);
}
