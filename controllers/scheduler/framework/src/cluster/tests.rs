use k8s_openapi::api::core::v1::Taint;
use koord_scheduling::Effect;
use proptest::prelude::*;

use super::*;
use crate::{
    affinity::{PodAffinity, PodTerm},
    labels::Labels,
};
use koord_core::key::ObjectKey;

fn node(name: u8, cpu: i64) -> Arc<Node> {
    let gpus = (cpu % 7 == 0).then(|| ("example.com/gpu", "4".to_owned()));
    let allocatable = [("cpu", format!("{cpu}m")), ("pods", "10".to_owned())].into_iter().chain(gpus);
    let allocatable: Vec<(&str, String)> = allocatable.collect();
    let allocatable = allocatable.iter().map(|(resource, amount)| (*resource, amount.parse().unwrap())).collect();
    let effect = if cpu % 2 == 0 { Effect::PreferNoSchedule } else { Effect::NoSchedule };
    let taints = vec![Taint { effect: effect.as_str().to_owned(), ..Taint::default() }];
    let zone = format!("z{}", cpu % 3);
    let labels = if cpu % 5 == 0 { Labels::default() } else { [("zone", &*zone)].into_iter().collect() };
    let images = [("web", 10), ("db", 20)].into_iter().take(usize::try_from(cpu % 3).unwrap());
    let images = images.map(|(image, size)| (image.into(), size)).collect();
    Arc::new(Node { name: format!("n{name}").into(), allocatable, taints, labels, images, ..Node::default() })
}

fn pod(number: u8, template: &Arc<Template>, node: u8) -> Arc<Pod> {
    let name = format!("p{number}");
    Arc::new(Pod {
        key: ObjectKey::new("ns", &name),
        uid: Uid::from(&*name),
        template: Arc::clone(template),
        node: Some(format!("n{node}").into()),
        deleting: number.is_multiple_of(3),
        ..Pod::default()
    })
}

fn templates() -> Vec<Arc<Template>> {
    let template = |cpu: &str, terms: usize| {
        let requests = [("cpu", cpu.parse().unwrap()), ("example.com/gpu", "1".parse().unwrap())].into_iter().collect();
        let term = PodTerm { topology_key: "zone".into(), ..PodTerm::default() };
        let pod_affinity = PodAffinity { forbidden: vec![term; terms].into(), ..PodAffinity::default() };
        let labels = [("cpu", cpu)].into_iter().collect();
        Arc::new(Template { requests, assumed_usage: [100, 200], pod_affinity, labels, ..Template::default() })
    };
    vec![template("250m", 0), template("3", 1)]
}

#[derive(Clone, Debug)]
enum Delta {
    SetNode(u8, i64),
    RemoveNode(u8),
    Place { pod: u8, template: usize, node: u8 },
    RemovePod(u8),
    ForgetIdle,
}

fn delta() -> impl Strategy<Value = Delta> {
    prop_oneof![
        (0..4_u8, 0..9000_i64).prop_map(|(name, cpu)| Delta::SetNode(name, cpu)),
        (0..4_u8).prop_map(Delta::RemoveNode),
        (0..8_u8, 0..2_usize, 0..5_u8).prop_map(|(pod, template, node)| Delta::Place { pod, template, node }),
        (0..8_u8).prop_map(Delta::RemovePod),
        Just(Delta::ForgetIdle),
    ]
}

fn apply(cluster: &mut Cluster, templates: &[Arc<Template>], delta: &Delta) {
    match delta {
        Delta::SetNode(name, cpu) => _ = cluster.set_node(node(*name, *cpu)),
        Delta::RemoveNode(name) => _ = cluster.remove_node(&format!("n{name}")),
        Delta::Place { pod: number, template, node } => {
            let pod = pod(*number, &templates[*template], *node);
            let name = pod.node.clone().unwrap();
            cluster.place(pod, &name, Holds::default());
        }
        Delta::ForgetIdle => cluster.forget_idle_resources(),
        Delta::RemovePod(number) => _ = cluster.remove_pod(&Uid::from(&*format!("p{number}"))),
    }
}

/// A node by name, whether it exists, its sums, and its pods.
type Shown = (Arc<str>, bool, BTreeMap<String, i64>, Vec<String>);

/// The classes that have pods, those among them that say something about others, and the nodes of each image.
fn known(cluster: &Cluster) -> (Vec<ClassId>, Vec<ClassId>, Vec<Option<usize>>) {
    let sorted = |mut ids: Vec<ClassId>| {
        ids.sort_unstable();
        ids
    };
    let classes = cluster.classes().flatten().map(|class| class.id()).collect();
    let classes_with_pod_affinity = cluster.classes_with_pod_affinity().map(|class| class.id()).collect();
    let images = ["web", "db"].map(|image| cluster.image(image).map(|image| image.rows.len()));
    (sorted(classes), sorted(classes_with_pod_affinity), images.into())
}

/// The nodes of each domain, by the number of the row.
fn domains(cluster: &Cluster) -> Vec<Vec<usize>> {
    let mut domains = BTreeMap::<Domain, Vec<usize>>::new();
    if let Some(zone) = cluster.topology("zone") {
        let rows = (0..cluster.width()).filter_map(Row::at);
        for (row, domain) in rows.filter_map(|row| Some((row, cluster.domain(zone, row)?))) {
            domains.entry(domain).or_default().push(row.index());
        }
    }
    let mut domains: Vec<Vec<usize>> = domains.into_values().collect();
    domains.sort();
    domains
}

/// What an audit finds of all rows and of the cluster as a whole.
fn audited(cluster: &mut Cluster) -> Vec<Mismatch> {
    let rows: Vec<Row> = (0..cluster.width()).filter_map(Row::at).collect();
    let mut found: Vec<Mismatch> = rows.into_iter().flat_map(|row| cluster.audit(row)).collect();
    found.extend((0..cluster.audit_parts()).flat_map(|part| cluster.audit_whole(part)));
    found
}

/// With how many nodes and pods there are, and which node is in which domain.
fn everything(cluster: &Cluster) -> (Vec<Shown>, Sizes, usize, Vec<Vec<usize>>) {
    (shown(cluster), cluster.sizes(), cluster.softly_tainted(), domains(cluster))
}

/// Everything that can be read of a cluster.
fn shown(cluster: &Cluster) -> Vec<Shown> {
    let rows = cluster.rows.iter().map(|(name, row)| {
        let pods = cluster.pods_on(*row).map(|placed| placed.pod.key.to_string()).collect();
        // A column of zeros appears with the first pod that requests the resource.
        let sums = cluster.sums(*row).into_iter().filter(|(_, amount)| *amount != 0).collect();
        (Arc::clone(name), cluster.node(*row).is_some(), sums, pods)
    });
    rows.collect()
}

proptest! {
    #[test]
    fn sums_are_what_the_objects_amount_to_after_any_history(deltas in proptest::collection::vec(delta(), 0..60)) {
        let (mut cluster, templates) = (Cluster::default(), templates());
        for delta in &deltas {
            apply(&mut cluster, &templates, delta);
            prop_assert_eq!(cluster.discrepancies(), []);
            prop_assert_eq!(cluster.len(), cluster.rows().count());
            let mut zones = BTreeMap::<&str, Vec<usize>>::new();
            for (row, node) in cluster.rows().filter(|_| cluster.topology("zone").is_some()) {
                node.labels.get("zone").into_iter().for_each(|zone| zones.entry(zone).or_default().push(row.index()));
            }
            let mut zones: Vec<Vec<usize>> = zones.into_values().collect();
            zones.sort();
            prop_assert_eq!(domains(&cluster), zones);
            for (name, count) in ["web", "db"].into_iter().zip(known(&cluster).2) {
                let has = |node: &Arc<Node>| node.images.iter().any(|(image, _)| &**image == name);
                let nodes = cluster.rows().filter(|(_, node)| has(node)).count();
                prop_assert_eq!(count, (nodes > 0).then_some(nodes));
            }
            let soft = cluster.rows().filter(|(_, node)| node.is_softly_tainted()).count();
            prop_assert_eq!(cluster.softly_tainted(), soft);
        }
    }

    #[test]
    fn an_audit_finds_nothing_after_any_history_and_sets_right_what_is_wrong(
        deltas in proptest::collection::vec(delta(), 0..60),
        row in 0..4_usize,
        which in 0..13_usize,
    ) {
        let (mut cluster, templates) = (Cluster::default(), templates());
        for delta in &deltas {
            apply(&mut cluster, &templates, delta);
        }
        prop_assert_eq!(audited(&mut cluster), []);
        let rows: Vec<Row> = (0..cluster.width()).filter_map(Row::at).collect();
        let Some(row) = rows.get(row).copied() else { return Ok(()) };
        let (before, position) = ((everything(&cluster), known(&cluster)), cluster.position());
        let mut wrong = ResourceVector::default();
        wrong.set(ResourceId::CPU, 17);
        let domain = || Some((cluster.topology("zone")?, cluster.domain(cluster.topology("zone")?, row)?));
        let (resident, domain) = (cluster.pods_on(row).next().cloned(), domain());
        let sum = match (which, resident, domain) {
            (0, ..) => { cluster.allocatable.add(row, &wrong); "allocatable" }
            (1, ..) => { cluster.requested.subtract(row, &wrong); "requested" }
            (2, ..) => { cluster.assumed_usage[1][row.index()] += 17; "assumed_usage" }
            (3, Some(placed), _) => { cluster.population.add(&placed); "pods_by_class" }
            (4, Some(_), _) => { cluster.slots[row.index()].pods.clear(); "pods_by_row" }
            (5, ..) => { cluster.nodes += 1; "nodes" }
            (6, ..) => { cluster.softly_tainted += 1; "softly_tainted" }
            (7, ..) => { cluster.assumed += 1; "assumed" }
            (8, _, Some(_)) => { cluster.topologies.set_node(row, None); "domains" }
            (9, ..) if cluster.node(row).is_some_and(|node| !node.images.is_empty()) => {
                let node = cluster.node(row).cloned();
                cluster.images.change(row, node.as_ref(), None);
                "images"
            }
            (10, ..) => {
                let extra = Node { images: Box::new([("web".into(), 1)]), ..Node::default() };
                let free = Row::at(cluster.width()).unwrap();
                cluster.images.change(free, None, Some(&Arc::new(extra)));
                "images"
            }
            (11, ..) => { cluster.numbering.spoil(); "nodes_by_resource" }
            (12, Some(_), _) => { cluster.population.spoil(); "classes" }
            _ => return Ok(()),
        };
        let found = audited(&mut cluster);
        prop_assert!(found.iter().any(|one| one.sum == sum), "{}: {:?}", sum, found);
        // A row whose pods are lost has wrong sums too.
        prop_assert!(found.len() == 1 || sum == "pods_by_row", "{:?}", found);
        prop_assert!(found[0].details.contains("instead of"), "{}", found[0].details);
        let after = (everything(&cluster), known(&cluster));
        prop_assert_eq!(after, before);
        prop_assert_eq!(cluster.discrepancies(), []);
        let is_live = cluster.rows.values().any(|live| *live == row);
        let changed = |changed: Row| changed == row;
        prop_assert!(!is_live || cluster.changed_since(position).is_some_and(|mut rows| rows.any(changed)));
        prop_assert_eq!(audited(&mut cluster), []);
    }

    #[test]
    fn a_trial_shows_what_a_rebuilt_cluster_would_and_leaves_no_trace(
        history in proptest::collection::vec(delta(), 0..40),
        tried in proptest::collection::vec((0..8_u8, 0..2_usize, proptest::option::of(0..4_u8)), 0..10),
        half in 0..10_usize,
    ) {
        let (mut cluster, templates) = (Cluster::default(), templates());
        for delta in &history {
            apply(&mut cluster, &templates, delta);
        }
        let (before, position) = ((shown(&cluster), known(&cluster)), cluster.position());
        let mut rebuilt = cluster.clone();
        let mut trial = cluster.trial();
        let mut marked = None;
        for (index, (number, template, to)) in tried.iter().enumerate() {
            if index == half {
                marked = Some((trial.mark(), (shown(&trial), known(&trial))));
            }
            let uid = Uid::from(&*format!("p{number}"));
            let to = to.and_then(|to| Some((to, trial.row(&format!("n{to}"))?)));
            if let Some((to, row)) = to {
                trial.place(pod(*number, &templates[*template], to), row, Holds::default());
                apply(&mut rebuilt, &templates, &Delta::Place { pod: *number, template: *template, node: to });
            } else {
                trial.remove(&uid);
                // A node that is gone and loses its last pod is forgotten for good, and in a trial for its duration only.
                rebuilt.take(&uid);
            }
            let remembered = |shown: Vec<Shown>| -> Vec<_> {
                shown.into_iter().filter(|(_, exists, _, pods)| *exists || !pods.is_empty()).collect()
            };
            prop_assert_eq!(remembered(shown(&trial)), remembered(shown(&rebuilt)));
            prop_assert_eq!(known(&trial), known(&rebuilt));
            prop_assert_eq!(trial.discrepancies(), []);
        }
        if let Some((mark, then)) = marked {
            trial.back_to(mark);
            prop_assert_eq!((shown(&trial), known(&trial)), then);
        }
        drop(trial);
        prop_assert_eq!(((shown(&cluster), known(&cluster)), cluster.position()), (before, position));
    }
}

#[test]
fn a_pod_may_come_before_its_node_and_stay_after_it() {
    let (mut cluster, templates) = (Cluster::default(), templates());
    cluster.place(pod(1, &templates[0], 7), &Arc::from("n7"), Holds::default());
    assert_eq!((cluster.len(), cluster.row("n7")), (0, None));
    cluster.set_node(node(7, 1000));
    let row = cluster.row("n7").unwrap();
    assert_eq!(cluster.requested(ResourceId::CPU, row), 250);
    cluster.remove_node("n7");
    assert_eq!((cluster.row("n7"), cluster.pod(&Uid::from("p1")).unwrap().row), (None, row));
    cluster.remove_pod(&Uid::from("p1"));
    assert_eq!(cluster.free, [row], "its row is used again");
    assert_eq!(cluster.requested(ResourceId::PODS, row), 0);
}

#[test]
fn a_sum_that_overflowed_is_exact_again_when_a_pod_goes() {
    let mut cluster = Cluster::default();
    cluster.set_node(node(1, 1000));
    let huge = || "9223372036854775807".parse().unwrap();
    let requests = [("memory", huge()), ("example.com/gpu", huge())].into_iter().collect();
    let template = Arc::new(Template { requests, assumed_usage: [i64::MAX; 2], ..Template::default() });
    for (number, template) in [(1, &template), (2, &template), (4, &templates()[0])] {
        cluster.place(pod(number, template, 1), &"n1".into(), Holds::default());
    }
    let row = cluster.row("n1").unwrap();
    let sums = |cluster: &Cluster| (cluster.requested(ResourceId::MEMORY, row), cluster.assumed_usage(row));
    assert_eq!(sums(&cluster), (i64::MAX, [i64::MAX; 2]));
    for number in ["p1", "p2"] {
        assert_eq!(audited(&mut cluster), []);
        cluster.remove_pod(&Uid::from(number));
    }
    assert_eq!((sums(&cluster), audited(&mut cluster)), ((0, [100, 200]), vec![]));
}

#[test]
fn a_nomination_to_a_node_that_is_gone_is_none_to_the_node_that_gets_its_row() {
    let (mut cluster, templates) = (Cluster::default(), templates());
    cluster.set_node(node(1, 1000));
    let waiting = Arc::new(Pod { node: None, ..Pod::clone(&pod(1, &templates[0], 1)) });
    cluster.nominate(&waiting, cluster.row("n1"));
    cluster.remove_node("n1");
    cluster.set_node(node(2, 1000));
    assert_eq!((cluster.row("n2").map(Row::index), cluster.nominated().count()), (Some(0), 0));
}

/// The names of the pods that it was told of and that are not gone, with how often each was told of.
#[derive(Clone, Debug, Default)]
struct Changes(BTreeMap<String, i32>);

impl State for Changes {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn pod(&mut self, _: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let changes = [(old, -1), (new, 1)].into_iter().filter_map(|(pod, change)| Some((pod?, change)));
        for (pod, change) in changes {
            *self.0.entry(format!("{} {}", pod.key.name(), pod.template.priority)).or_default() += change;
        }
        self.0.retain(|_, times| *times != 0);
    }
}

#[test]
fn the_event_handler_of_a_state_is_called_once_for_each_change_of_a_pod() {
    let mut cluster = Cluster::default();
    cluster.add_state(Box::<Changes>::default());
    cluster.set_node(node(1, 1000));
    let version = |priority, node: Option<&str>| {
        let template = Arc::new(Template { priority, ..Template::default() });
        Arc::new(Pod { template, node: node.map(Arc::from), ..Pod::clone(&pod(1, &templates()[0], 1)) })
    };
    let changes = |cluster: &Cluster| cluster.state::<Changes>().unwrap().0.keys().cloned().collect::<Vec<_>>();
    cluster.know(&version(1, None));
    cluster.place(version(1, None), &Arc::from("n1"), Holds::default());
    cluster.know(&version(2, None));
    cluster.know(&version(3, None));
    assert_eq!(changes(&cluster), ["p1 3"], "while it is assumed to be there");
    cluster.know(&version(4, Some("n1")));
    cluster.place(version(4, Some("n1")), &Arc::from("n1"), Holds::default());
    assert_eq!(changes(&cluster), ["p1 4"]);
    assert!(cluster.forget(&Uid::from("p1")).is_some());
    assert_eq!(changes(&cluster), [""; 0]);
}

#[test]
fn a_pod_with_thousands_of_resources_costs_no_column_of_the_nodes() {
    let mut cluster = Cluster::default();
    let named = |name: String| Node { name: name.into(), ..Node::clone(&node(1, 1000)) };
    (0..3000).for_each(|number| _ = cluster.set_node(Arc::new(named(format!("n{number}")))));
    let requests = (0..4000).map(|number| (format!("example.com/{number}"), "1".parse().unwrap())).collect();
    let template = Arc::new(Template { requests, ..Template::default() });
    cluster.place(pod(1, &template, 7), &"n7".into(), Holds::default());
    let row = cluster.row("n7").unwrap();
    assert!(cluster.resources().len() == 4 && cluster.requested.row(row).count() <= 4);
    let unoffered = cluster.pod(&Uid::from("p1")).unwrap().class.unoffered().cloned().unwrap();
    assert_eq!((unoffered.names().count(), audited(&mut cluster)), (4000, vec![]));
    // One of them is offered later: that one counts from then on.
    let allocatable = [("pods", "9"), ("example.com/3", "2")].map(|(name, amount)| (name, amount.parse().unwrap()));
    cluster.set_node(Arc::new(Node { allocatable: allocatable.into_iter().collect(), ..named("n7".to_owned()) }));
    let id = cluster.resources().get("example.com/3").unwrap();
    assert_eq!((cluster.requested(id, row), cluster.allocatable(id, row)), (1, 2));
    assert_eq!(audited(&mut cluster), []);
    cluster.remove_pod(&Uid::from("p1"));
    assert_eq!((cluster.requested(id, row), cluster.unoffered(unoffered.number()).is_some()), (0, true));
    let number = unoffered.number();
    drop(unoffered);
    assert!(cluster.unoffered(number).is_none(), "nothing is left of their names");
}
