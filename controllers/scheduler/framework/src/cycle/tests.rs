use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduling::ResourceId;
use proptest::prelude::*;

use super::*;
use crate::{
    AttemptState, BeforePreFilter, Filter, FindOneNode, NodeFilter, NodeScore, Plugin, PreFilter, PreferNodes,
    PreparedFilter, Reason, ReasonCode, Refusal, Registration, Reserve, SCORE_MAX, Scale, Score, Searched,
    hold::Holds,
    lowest_is_best,
    node::Node,
    normalize,
    pod::{Pod, Template},
    timing::Untimed,
};

impl Profile {
    /// Searches a node in an attempt of its own, without measurements.
    pub(super) fn search(
        &self,
        pod: &Arc<Pod>,
        cluster: &mut Cluster,
        cache: &mut CandidateCache,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        self.search_timed(pod, &AttemptState::default(), cluster, cache, draw, &mut Untimed)
    }
}

/// Fits by CPU, and prefers the emptiest node; `is_local` may be denied, which must change nothing.
struct Cpu {
    is_local: bool,
}

/// Prefers nodes with fewer taints, as long as any has one; `is_scaled` may be denied, which must change nothing.
#[derive(Clone, Copy)]
struct Taints {
    is_scaled: bool,
}

impl Plugin for Taints {
    fn name(&self) -> &'static str {
        "Taints"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).score(&self)
    }
}

impl Score for Taints {
    fn prepare_score(&self, _: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        Some(Box::new(*self))
    }
}

impl NodeScore for Taints {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.node(row).map_or(0, |node| i64::try_from(node.taints.len()).unwrap())
    }

    fn normalize(&self, scores: &mut [i64]) {
        normalize(scores, lowest_is_best);
    }

    fn scale(&self) -> Option<Scale> {
        self.is_scaled.then_some(lowest_is_best)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn uniform(&self, cluster: &Cluster) -> Option<i64> {
        cluster.rows().all(|(_, node)| node.taints.is_empty()).then_some(SCORE_MAX)
    }
}

/// Sends every pod where it was told to.
struct Guide(Plan);

impl Plugin for Guide {
    fn name(&self) -> &'static str {
        "Guide"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).find_one_node(&self).prefer_nodes(&self)
    }
}

impl FindOneNode for Guide {
    fn find_one_node(&self, _: &Request<'_>, _: &Profile, _: &mut Cluster) -> Option<Result<Row, Rejection>> {
        match &self.0 {
            Plan::Any | Plan::Prefer(_) => None,
            Plan::Only(row) => Some(Ok(*row)),
            Plan::Nowhere(rejection) => Some(Err(rejection.clone())),
        }
    }

    fn reasons(&self) -> Vec<Reason> {
        Vec::new()
    }
}

impl PreferNodes for Guide {
    fn prefer_nodes(&self, _: &Request<'_>, _: &Cluster) -> Vec<Row> {
        if let Plan::Prefer(rows) = &self.0 { rows.clone() } else { Vec::new() }
    }
}

struct CopiedRequest {
    request: i64,
    is_local: bool,
}

impl Plugin for Cpu {
    fn name(&self) -> &'static str {
        "Cpu"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).filter(&self).score(&self)
    }
}

impl Filter for Cpu {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        let request = request.class.requests().get(ResourceId::CPU);
        if request > 100_000 {
            return PreparedFilter::None(Refusal::unresolvable(9));
        }
        PreparedFilter::Nodes(Box::new(CopiedRequest { request, is_local: self.is_local }))
    }
}

impl Score for Cpu {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        let request = request.class.requests().get(ResourceId::CPU);
        Some(Box::new(CopiedRequest { request, is_local: self.is_local }))
    }
}

impl NodeFilter for CopiedRequest {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let (offered, used) = (cluster.allocatable(ResourceId::CPU, row), cluster.requested(ResourceId::CPU, row));
        if self.request > offered {
            return Err(Refusal::unresolvable(0));
        }
        if self.request > offered - used { Err(Refusal::resolvable(1, 0)) } else { Ok(()) }
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

impl NodeScore for CopiedRequest {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let (offered, used) = (cluster.allocatable(ResourceId::CPU, row), cluster.requested(ResourceId::CPU, row));
        (offered - used - self.request) * SCORE_MAX / offered.max(1)
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

fn profile(is_local: bool) -> Profile {
    Profile {
        filters: vec![0],
        scores: vec![(0, 3), (1, 1)],
        ..Profile::of("test", vec![Arc::new(Cpu { is_local }), Arc::new(Taints { is_scaled: is_local })])
    }
}

fn node(number: usize, cpu: i64) -> Arc<Node> {
    let allocatable = [("cpu", format!("{cpu}m").parse().unwrap())].into_iter().collect();
    Arc::new(Node { name: format!("n{number}").into(), allocatable, ..Node::default() })
}

fn template(cpu: &str) -> Arc<Template> {
    let requests = [("cpu", cpu.parse().unwrap())].into_iter().collect();
    Arc::new(Template { requests, ..Template::default() })
}

fn pod(number: usize, template: &Arc<Template>) -> Arc<Pod> {
    let name = format!("p{number}");
    Arc::new(Pod {
        key: ObjectKey::new("ns", &name),
        uid: Uid::from(&*name),
        template: Arc::clone(template),
        ..Pod::default()
    })
}

/// Each verdict with the number of its nodes and the first row.
fn refusals(found: Found) -> Vec<(Verdict, u32, usize)> {
    let Found::Nothing(refusals) = found else { panic!("{found:?}") };
    refusals.iter().map(|(verdict, alike)| (*verdict, alike.nodes, alike.example.index())).collect()
}

#[test]
fn a_class_that_no_node_can_take_is_refused_by_reason() {
    let (mut cluster, mut cache) = (Cluster::default(), CandidateCache::default());
    for (number, cpu) in [1000, 2000, 2000].into_iter().enumerate() {
        cluster.set_node(node(number, cpu));
    }
    cluster.place(pod(0, &template("1")), &"n1".into(), Holds::default());
    let large = pod(9, &template("2"));
    let verdict = |refusal| Verdict { plugin: 0, refusal };
    let Found::Node { row, score, ties, .. } = profile(true).search(&large, &mut cluster, &mut cache, |_| 0) else {
        panic!()
    };
    assert_eq!((row, score, ties), (cluster.row("n2").unwrap(), SCORE_MAX, 1));
    cluster.place(pod(1, &template("1")), &"n2".into(), Holds::default());
    let expected = [(verdict(Refusal::unresolvable(0)), 1, 0), (verdict(Refusal::resolvable(1, 0)), 2, 1)];
    assert_eq!(refusals(profile(true).search(&large, &mut cluster, &mut cache, |_| 0)), expected);
    assert_eq!(refusals(profile(false).search(&large, &mut cluster, &mut CandidateCache::default(), |_| 0)), expected);
    let class = cluster.class(&large.template);
    let request = Request { pod: &large, class: &class, plugins: &[], state: &AttemptState::default() };
    assert_eq!(profile(true).evaluate(&request, &cluster, row), Err(verdict(Refusal::resolvable(1, 0))));
    let found = profile(true).search(&pod(9, &template("200")), &mut cluster, &mut cache, |_| 0);
    assert_eq!(found, Found::Never(0, Rejection::unresolvable(Vec::new())));
}

/// Rejects every pod as a whole, with this code.
struct Rejects(&'static str, Code);

/// Rejects every pod beforehand, with this code.
struct Screens(&'static str, Code);

impl Plugin for Screens {
    fn name(&self) -> &'static str {
        self.0
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).before_pre_filter(&self)
    }
}

impl BeforePreFilter for Screens {
    fn before_pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        let reasons = vec![ReasonCode::TooManyPods.reason(self.0)];
        Err(Rejection { code: self.1, reasons })
    }
}

impl Plugin for Rejects {
    fn name(&self) -> &'static str {
        self.0
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).pre_filter(&self)
    }
}

impl PreFilter for Rejects {
    fn pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        let reasons = vec![ReasonCode::TooManyPods.reason(self.0)];
        Err(Rejection { code: self.1, reasons })
    }
}

#[test]
fn who_might_help_by_evictions_is_remembered_until_somebody_rejects_the_pod_for_good() {
    let said = |rejecting: &[Rejects]| {
        let plugins = rejecting.iter().map(|Rejects(name, code)| Arc::new(Rejects(name, *code)) as Arc<dyn Plugin>);
        let profile = Profile::of("test", plugins.collect());
        let pod = pod(1, &template("1"));
        let mut cluster = Cluster::default();
        let class = cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
        let (plugin, rejection) = profile.admit(&request, &cluster).unwrap();
        (profile.plugins[usize::from(plugin)].name(), rejection.code)
    };
    let (maybe, never) = (Code::Unschedulable, Code::Unresolvable);
    assert_eq!(said(&[Rejects("a", maybe), Rejects("b", never), Rejects("c", maybe)]), ("b", never));
    assert_eq!(said(&[Rejects("a", never), Rejects("b", Code::Error)]), ("a", never), "nobody is asked after that");
    assert_eq!(said(&[Rejects("a", maybe), Rejects("b", Code::Error)]), ("b", Code::Error));
    assert_eq!(said(&[Rejects("a", maybe), Rejects("b", maybe)]).1, maybe);
}

#[test]
fn who_rejects_a_pod_beforehand_comes_before_all_others() {
    let plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(Rejects("a", Code::Unresolvable)),
        Arc::new(Screens("b", Code::Unschedulable)),
        Arc::new(Screens("c", Code::Error)),
    ];
    let profile = Profile::of("test", plugins);
    let pod = pod(1, &template("1"));
    let mut cluster = Cluster::default();
    let class = cluster.class(&pod.template);
    let request = Request { pod: &pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
    let (plugin, rejection) = profile.admit(&request, &cluster).unwrap();
    assert_eq!((profile.plugins[usize::from(plugin)].name(), rejection.code), ("b", Code::Unschedulable));
}

/// Names the only nodes that are filtered.
struct Names(&'static str, &'static [&'static str]);

impl Plugin for Names {
    fn name(&self) -> &'static str {
        self.0
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).filter(&self)
    }
}

impl Filter for Names {
    fn prepare_filter(&self, _: &Request<'_>, _: &Cluster) -> PreparedFilter {
        PreparedFilter::NodeNames(self.1.iter().map(|name| Box::<str>::from(*name)).collect(), None)
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

#[test]
fn a_plugin_that_is_added_is_called_at_what_it_implements_and_may_name_the_only_nodes() {
    let mut profile = Profile::default();
    profile.add(Arc::new(Names("names", &[])).register(), 1).unwrap();
    profile.add(Arc::new(Screens("screens", Code::Unschedulable)).register(), 1).unwrap();
    assert_eq!((&*profile.admits, &*profile.filters, &*profile.scores), (&[0, 1][..], &[0][..], &[][..]));
    assert!(profile.reserves.is_empty() && profile.permits.is_empty() && profile.post_filters.is_empty());
    let (pod, mut cluster) = (pod(1, &template("1")), Cluster::default());
    cluster.set_node(node(0, 1000));
    let class = cluster.class(&pod.template);
    let request = Request { pod: &pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
    let (plugin, rejection) = profile.unnamed(&request, &cluster).unwrap();
    assert_eq!((plugin, &*rejection.message()), (0, "node(s) didn't satisfy plugin names"));
}

#[test]
fn where_plugins_name_no_node_together_no_eviction_helps_whoever_else_rejects_the_pod() {
    let said = |plugins: Vec<Arc<dyn Plugin>>| {
        let filters: Vec<u8> = (0..).zip(&plugins).map(|(index, _)| index).collect();
        let profile = Profile { filters, ..Profile::of("test", plugins) };
        let mut cluster = Cluster::default();
        cluster.set_node(node(1, 2000));
        match profile.search(&pod(1, &template("1")), &mut cluster, &mut CandidateCache::default(), |_| 0) {
            Found::Never(_, rejection) => (rejection.message(), rejection.code),
            other => panic!("{other:?}"),
        }
    };
    let named =
        |name: &'static str, nodes: &'static [&'static str]| -> Arc<dyn Plugin> { Arc::new(Names(name, nodes)) };
    let (a, b) = (|| named("A", &["n1"]), || named("B", &["n2"]));
    let rejects = |code| -> Arc<dyn Plugin> { Arc::new(Rejects("rejected", code)) };
    let (maybe, never) = (|| rejects(Code::Unschedulable), || rejects(Code::Unresolvable));
    let words = |words: &str, code| (words.to_owned(), code);
    let none = words("node(s) didn't satisfy plugin(s) [A B] simultaneously", Code::Unresolvable);
    assert_eq!(said(vec![a(), b()]), none);
    assert_eq!(said(vec![maybe(), b(), a()]), none);
    assert_eq!(said(vec![a(), b(), maybe()]), none);
    assert_eq!(said(vec![a(), b(), never()]), none, "nobody is asked after that");
    assert_eq!(said(vec![a(), b(), rejects(Code::Error)]), none);
    assert_eq!(said(vec![a(), never(), b()]), words("rejected", Code::Unresolvable), "nor after this");
    assert_eq!(said(vec![a(), maybe()]), words("rejected", Code::Unschedulable));
    let alone = words("node(s) didn't satisfy plugin C", Code::Unresolvable);
    assert_eq!(said(vec![maybe(), named("C", &[])]), alone);
    let beforehand: Arc<dyn Plugin> = Arc::new(Screens("beforehand", Code::Unschedulable));
    assert_eq!(said(vec![a(), b(), beforehand]), words("beforehand", Code::Unschedulable));
}

#[test]
fn plugins_that_leave_no_node_are_those_that_were_called_up_to_then_in_the_order_of_pre_filter() {
    const NAMES: [(&str, &[&str]); 3] = [("C", &["n1"]), ("B", &["n1", "n2"]), ("A", &["n2"])];
    let said = |admits: &[u8]| {
        let plugins = NAMES.map(|(name, nodes)| Arc::new(Names(name, nodes)) as Arc<dyn Plugin>).to_vec();
        let profile = Profile { filters: vec![0, 1, 2], admits: admits.to_vec(), ..Profile::of("test", plugins) };
        let mut cluster = Cluster::default();
        cluster.set_node(node(1, 2000));
        let pod = pod(1, &template("1"));
        let class = cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
        let whole = profile.unnamed(&request, &cluster).unwrap();
        let rejecting = profile.rejecting(whole.0, &request, &cluster);
        let rejecting: String = rejecting.iter().map(|plugin| profile.name_of(plugin)).collect();
        let found = profile.search(&pod, &mut cluster, &mut CandidateCache::default(), |_| 0);
        assert_eq!(found, Found::Never(whole.0, whole.1.clone()), "who asks why is answered as the attempt is");
        assert_eq!(profile.rejecting(1, &request, &cluster).iter().count(), 1, "B alone has left some");
        (whole.1.message(), rejecting)
    };
    let words = |text: &str, rejecting: &str| (text.to_owned(), rejecting.to_owned());
    let both = "node(s) didn't satisfy plugin(s) [A C] simultaneously";
    assert_eq!(said(&[2, 0, 1]), words(both, "CA"));
    let all = "node(s) didn't satisfy plugin(s) [A B C] simultaneously";
    assert_eq!(said(&[0, 1, 2]), words(all, "CBA"));
}

#[test]
fn the_nominated_node_is_one_of_those_that_plugins_name_or_plan() {
    let mut cluster = Cluster::default();
    (0..2).for_each(|number| _ = cluster.set_node(node(number, 2000)));
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    let pod = pod(9, &template("2"));
    cluster.nominate(&pod, Some(rows[0]));
    let mut found = |plugin: Arc<dyn Plugin>| {
        let mut profile = profile(true);
        profile.filters.push(2);
        profile.plugins.push(plugin.register());
        match profile.search(&pod, &mut cluster, &mut CandidateCache::default(), |_| 0) {
            Found::Node { row, .. } => rows.iter().position(|known| *known == row),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found(Arc::new(Guide(Plan::Any))), Some(0));
    assert_eq!(found(Arc::new(Guide(Plan::Only(rows[1])))), Some(1));
    assert_eq!(found(Arc::new(Names("Names", &["n1"]))), Some(1));
}

#[test]
fn a_plan_decides_before_nodes_are_compared() {
    let mut cluster = Cluster::default();
    for (number, cpu) in [1000, 2000, 3000].into_iter().enumerate() {
        cluster.set_node(node(number, cpu));
    }
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    let mut found = |plans: Vec<Plan>| {
        let mut profile = profile(true);
        profile.plugins.extend(plans.into_iter().map(|plan| Arc::new(Guide(plan)).register()));
        profile.search(&pod(9, &template("2")), &mut cluster, &mut CandidateCache::default(), |_| 0)
    };
    let at = |row: usize| Found::Node {
        row: rows[row],
        score: 0,
        ties: 1,
        searched: Searched { evaluated: 1, feasible: 1 },
    };
    assert_eq!(found(vec![Plan::Only(rows[1])]), at(1));
    assert_eq!(found(vec![Plan::Prefer(vec![rows[0], rows[1]]), Plan::Prefer(vec![rows[2]])]), at(1));
    assert_eq!(found(vec![Plan::Prefer(vec![rows[2]]), Plan::Only(rows[1])]), at(1));
    let Found::Node { row, score, .. } = found(vec![Plan::Prefer(vec![rows[0]])]) else { panic!() };
    assert_eq!((row, score > 0), (rows[2], true), "none of them takes it");
    let refused = |plugin, refusal| Verdict { plugin, refusal };
    let small = [(refused(0, Refusal::unresolvable(0)), 1, 0), (refused(2, Refusal::UNPLANNED), 2, 1)];
    assert_eq!(refusals(found(vec![Plan::Only(rows[0])])), small);
    let never = Rejection::unschedulable(ReasonCode::PluginSpecific.reason("no"));
    assert_eq!(found(vec![Plan::Nowhere(never.clone())]), Found::Never(2, never));
}

#[test]
fn the_nominated_node_goes_before_those_that_a_plugin_prefers() {
    let mut cluster = Cluster::default();
    for (number, cpu) in [2000, 2000, 1000].into_iter().enumerate() {
        cluster.set_node(node(number, cpu));
    }
    let rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
    let pod = pod(9, &template("2"));
    let mut found = |nominated: usize| {
        let mut profile = profile(true);
        profile.plugins.push(Arc::new(Guide(Plan::Prefer(vec![rows[1]]))).register());
        cluster.nominate(&pod, Some(rows[nominated]));
        match profile.search(&pod, &mut cluster, &mut CandidateCache::default(), |_| 0) {
            Found::Node { row, .. } => rows.iter().position(|known| *known == row),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([found(0), found(2)], [Some(0), Some(1)], "unless it does not take the pod");
}

#[test]
fn a_sample_ends_with_enough_nodes_and_the_next_one_goes_on_there() {
    let nodes = |cluster: &mut Cluster| {
        for number in 0..250 {
            // Every fifth node takes no pod, the last takes it best.
            let cpu = if number == 249 {
                9000
            } else if number % 5 == 0 {
                100
            } else {
                2000
            };
            cluster.set_node(node(number, cpu));
        }
    };
    for is_local in [true, false] {
        let (mut cluster, mut cache) = (Cluster::default(), CandidateCache::default());
        nodes(&mut cluster);
        let sampling = Profile { sampled_percent: Some(10), ..profile(is_local) };
        let mut next = |profile: &Profile| {
            let found = profile.search(&pod(1, &template("1")), &mut cluster, &mut cache, |_| 0);
            let Found::Node { row, searched, .. } = found else { panic!("{found:?}") };
            (&*cluster.node(row).unwrap().name == "n249", searched.evaluated, searched.feasible)
        };
        // Of 125 nodes 100 take the pod; the first of a sample that takes none is part of the one before.
        assert_eq!(next(&sampling), (false, 125, 100));
        assert_eq!(next(&sampling), (true, 125, 100), "the other half");
        assert_eq!(next(&sampling), (false, 125, 100), "from the beginning again");
        assert_eq!(next(&profile(is_local)), (true, 250, 200), "all are compared unless a share is configured");
        assert_eq!(next(&sampling), (true, 125, 100), "which does not move the samples");
    }
}

#[test]
fn a_sample_that_finds_nothing_has_evaluated_every_node() {
    let mut cluster = Cluster::default();
    (0..150).for_each(|number| _ = cluster.set_node(node(number, 1000)));
    let sampling = Profile { sampled_percent: Some(1), ..profile(true) };
    let mut cache = CandidateCache::default();
    cache.pass_over(120);
    let found = sampling.search(&pod(1, &template("2")), &mut cluster, &mut cache, |_| 0);
    let verdict = Verdict { plugin: 0, refusal: Refusal::unresolvable(0) };
    let refusals: Vec<(Verdict, u32)> =
        refusals(found).into_iter().map(|(verdict, nodes, _)| (verdict, nodes)).collect();
    assert_eq!((refusals, cache.passed_over()), (vec![(verdict, 150)], 120));
}

/// Has one thing to give on each node.
struct Single;

impl Plugin for Single {
    fn name(&self) -> &'static str {
        "Single"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).reserve(&self)
    }
}

impl Reserve for Single {
    fn reserve(&self, _: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        if cluster.pods_on(row).any(|placed| placed.holds.get::<&str>().is_some()) {
            return Err(Rejection::unschedulable(ReasonCode::PluginSpecific.reason("it is given")));
        }
        holds.set("it");
        Ok(())
    }
}

#[test]
fn what_plugins_reserve_counts_in_a_rehearsal() {
    let mut cluster = Cluster::default();
    cluster.set_node(node(0, 3000));
    let row = cluster.row("n0").unwrap();
    let profile = Profile::of("test", vec![Arc::new(Single)]);
    let mut rehearsal = Rehearsal::new(&profile, &mut cluster, &[pod(1, &template("1")), pod(2, &template("1"))]);
    rehearsal.place(0, row).unwrap();
    assert_eq!(
        rehearsal.place(1, row),
        Err(Rejection::unschedulable(ReasonCode::PluginSpecific.reason("it is given")))
    );
    rehearsal.remove(&Uid::from("p1"));
    assert_eq!(rehearsal.place(1, row), Ok(()));
}

#[test]
fn pods_are_tried_beside_each_other_and_leave_no_trace() {
    let mut cluster = Cluster::default();
    cluster.set_node(node(0, 3000));
    cluster.place(pod(0, &template("1")), &"n0".into(), Holds::default());
    let row = cluster.row("n0").unwrap();
    let (profile, pods) = (profile(true), [pod(1, &template("1")), pod(2, &template("1")), pod(3, &template("2"))]);
    let mut rehearsal = Rehearsal::new(&profile, &mut cluster, &pods);
    let point = rehearsal.point();
    assert!(rehearsal.takes(2, row).is_ok());
    rehearsal.place(0, row).unwrap();
    assert!(rehearsal.takes(1, row).is_ok() && rehearsal.takes(2, row).is_err());
    rehearsal.remove(&Uid::from("p0"));
    assert!(rehearsal.takes(2, row).is_ok());
    rehearsal.back_to(point);
    assert_eq!((rehearsal.cluster().pods_on(row).count(), rehearsal.takes(2, row).is_ok()), (1, true));
    rehearsal.place(2, row).unwrap();
    drop(rehearsal);
    assert_eq!((cluster.pods_on(row).count(), cluster.discrepancies()), (1, vec![]));
    // Room that is being made for others is not theirs.
    cluster.nominate(&pod(4, &template("1")), Some(row));
    let mut rehearsal = Rehearsal::new(&profile, &mut cluster, &pods);
    assert!(rehearsal.takes(0, row).is_ok() && rehearsal.takes(2, row).is_err());
}

#[derive(Clone, Debug)]
enum Delta {
    Node(usize, i64),
    Taint(usize, usize),
    Gone(usize),
    Remove(usize),
    Schedule(usize, usize, u32),
}

proptest! {
    /// The answers that are kept and repaired are those of a search that asks every node.
    #[test]
    fn kept_candidates_answer_as_a_search_of_all_nodes_does(deltas in proptest::collection::vec(prop_oneof![
        (0..6_usize, 0..4_i64).prop_map(|(node, cpu)| Delta::Node(node, cpu * 1000)),
        (0..6_usize, 0..4_usize).prop_map(|(node, taints)| Delta::Taint(node, taints)),
        (0..6_usize).prop_map(Delta::Gone),
        (0..9_usize).prop_map(Delta::Remove),
        (0..9_usize, 0..2_usize, 0..4_u32).prop_map(|(pod, template, draw)| Delta::Schedule(pod, template, draw)),
    ], 0..80)) {
        let templates = [template("500m"), template("1500m")];
        let (mut cluster, mut cache) = (Cluster::default(), CandidateCache::default());
        let (kept, all) = (profile(true), profile(false));
        for delta in deltas {
            match delta {
                Delta::Node(number, cpu) => _ = cluster.set_node(node(number, cpu)),
                Delta::Taint(number, taints) => {
                    let tainted = Node { taints: vec![Taint::default(); taints], ..Node::clone(&node(number, 2000)) };
                    cluster.set_node(Arc::new(tainted));
                }
                Delta::Gone(number) => _ = cluster.remove_node(&format!("n{number}")),
                Delta::Remove(number) => _ = cluster.remove_pod(&Uid::from(&*format!("p{number}"))),
                Delta::Schedule(number, template, draw) => {
                    let pod = pod(number, &templates[template]);
                    let found = kept.search(&pod, &mut cluster, &mut cache, |ties| draw % ties);
                    let expected = all.search(&pod, &mut cluster, &mut CandidateCache::default(), |ties| draw % ties);
                    prop_assert_eq!(&found, &expected);
                    if let Found::Node { row, .. } = found {
                        let name = Arc::clone(&cluster.node(row).unwrap().name);
                        cluster.place(pod, &name, Holds::default());
                    }
                }
            }
        }
    }
}
