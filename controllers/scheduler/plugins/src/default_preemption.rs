//! DefaultPreemption: pods of lower priority are evicted where that makes room.

use std::sync::Arc;

use std::collections::BTreeSet;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use koord_config::scheduler::DefaultPreemptionArgs;
use koord_core::uid::Uid;
use koord_engine::{
    cluster::{Cluster, Placed},
    columns::Row,
    cycle::{Found, Profile},
    event::Events,
    framework::{
        Code, Plugin, PostFilter, PostFilterResult, PreEnqueue, Reason, ReasonCode, Registration, Rejection, Request,
    },
    pod::Pod,
    preemption::{Attempted, Candidate, NoCandidate, Rules, Width, least_harm},
};
use koord_resource::controller::ResourceKind;
use koord_scheduling::Selector;

use crate::Extenders;

/// Evicts the least important pods of the node where that does the least harm, for a pod of higher priority.
#[derive(Clone, Copy, Debug)]
pub struct DefaultPreemption {
    /// How many candidates are looked for.
    pub width: Width,
}

impl DefaultPreemption {
    /// With these arguments.
    pub fn new(args: &DefaultPreemptionArgs) -> Self {
        let of =
            |configured: Option<i64>, default: u32| configured.and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let percent = of(args.min_candidate_nodes_percentage, 10);
        Self { width: Width { percent, at_least: of(args.min_candidate_nodes_absolute, 100) as usize } }
    }
}

impl DefaultPreemption {
    /// Makes room by evictions that these rules allow, for the plugin of this name.
    pub(crate) fn make_room(
        &self,
        request: &Request<'_>,
        attempted: &mut Attempted<'_>,
        rules: impl Rules,
        name: &str,
    ) -> PostFilterResult {
        if !request.template().preempts {
            return not_eligible("preemptionPolicy=Never.");
        }
        if waits_for_victims(request, attempted, &rules) {
            return not_eligible("a terminating pod on the nominated node.");
        }
        if is_refused_by_another(attempted, name) {
            // Who refused it knows which pods may go, so that evictions by others would be in vain.
            let (nodes, words) = (attempted.cluster.len(), rules.no_victims(""));
            let found = attempted.candidates(request, &OnNodesAlone(rules), self.width);
            let words = format!("preemption: 0/{nodes} nodes are available: {nodes} {words}.");
            return found.map_or_else(no_room, |_| PostFilterResult::NoCandidate(words));
        }
        let found = attempted.candidates(request, &rules, self.width);
        found.map_or_else(no_room, |candidates| nominate(request, attempted, candidates))
    }
}

/// Room is made where that does the least harm, among the nodes that extenders leave.
pub(crate) fn nominate(
    request: &Request<'_>,
    attempted: &Attempted<'_>,
    candidates: Vec<Candidate>,
) -> PostFilterResult {
    let left = match request.plugin::<Extenders>() {
        Some(extenders) => extenders.choose(request, attempted.cluster, candidates),
        None => Ok(candidates),
    };
    let candidates = match left {
        Ok(candidates) => candidates,
        Err(instead) => return instead,
    };
    least_harm(candidates).map_or_else(
        || PostFilterResult::NoCandidate("preemption: no candidate node for preemption".to_owned()),
        |best| PostFilterResult::Nominate {
            row: best.row,
            victims: best.victims.iter().map(|placed| placed.pod.uid.clone()).collect(),
        },
    )
}

/// No room is looked for.
pub(crate) fn not_eligible(due_to: &str) -> PostFilterResult {
    PostFilterResult::Nothing(format!("preemption: not eligible due to {due_to}"))
}

/// No room can be made.
pub(crate) fn no_room(why: NoCandidate) -> PostFilterResult {
    match why {
        NoCandidate::Helpless(words) => PostFilterResult::NoCandidate(format!("preemption: {words}")),
        NoCandidate::NoVictim(words) => PostFilterResult::Stop(format!("preemption: {words}")),
    }
}

/// The same rules for a pod that another plugin refused as a whole: nodes alone are asked.
struct OnNodesAlone<R>(R);

/// Pods of a lower priority may go, within their disruption budgets where that can be.
pub(crate) struct LowerPriority {
    pub(crate) priority: i32,
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<PodDisruptionBudget>()] })
            .pre_enqueue(&self)
            .retried_after(Events::POD_REMOVED)
            .post_filter(&self)
    }
}

impl PreEnqueue for DefaultPreemption {
    /// A pod for which several others are evicted is not tried after the first of them is gone.
    fn pre_enqueue(&self, pod: &Pod, cluster: &Cluster) -> Result<(), Reason> {
        if cluster.awaits_evictions(&pod.uid) {
            const WORDS: &str = "waiting for the preemption for this pod to be finished";
            return Err(ReasonCode::PreemptionPending.says(WORDS));
        }
        Ok(())
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        if let Some(stop) = no_pod(request) {
            return stop;
        }
        let rules = LowerPriority { priority: request.template().priority };
        self.make_room(request, attempted, rules, self.name())
    }
}

/// The answer for a reserve pod, which its own plugin alone preempts for.
pub(crate) fn no_pod(request: &Request<'_>) -> Option<PostFilterResult> {
    let Pod { uid, .. } = &**request.pod;
    request.pod.is_reservation().then(|| PostFilterResult::Stop(format!("preemption: pod \"{uid}\" not found")))
}

/// Whether the pod was refused as a whole by a plugin that makes room itself: that one knows which pods may go.
fn is_refused_by_another(attempted: &Attempted<'_>, name: &str) -> bool {
    let Found::Never(plugin, Rejection { code: Code::Unschedulable, .. }) = attempted.found else { return false };
    let Some(refusing) = attempted.profile.plugins.get(usize::from(*plugin)) else { return false };
    let preempts = refusing.post_filter.as_ref().is_some_and(|point| point.preempts_for_rejected());
    attempted.profile.post_filters.contains(plugin) && preempts && refusing.name() != name
}

/// Whether room is being made for the pod already, on a node that will take it.
fn waits_for_victims(request: &Request<'_>, attempted: &Attempted<'_>, rules: &dyn Rules) -> bool {
    let cluster = &*attempted.cluster;
    waits_for(request, attempted, |placed| rules.may_evict(placed, cluster) && cluster.is_evicted(placed))
}

/// Whether such pods go from the node where room is being made for the pod, and that node will take it.
pub(crate) fn waits_for(request: &Request<'_>, attempted: &Attempted<'_>, is_going: impl Fn(&Placed) -> bool) -> bool {
    let cluster = &*attempted.cluster;
    let Some(row) = cluster.nomination(&request.pod.uid) else { return false };
    !is_hopeless(request, attempted, row) && cluster.pods_on(row).any(is_going)
}

/// Whether the removal of pods from a node does not help.
pub(crate) fn is_hopeless(request: &Request<'_>, attempted: &Attempted<'_>, row: Row) -> bool {
    match attempted.found {
        Found::Never(_, rejection) => rejection.code != Code::Unschedulable,
        Found::Node { .. } | Found::Nothing(_) => {
            let refused = attempted.profile.prepare(request, attempted.cluster).filter(attempted.cluster, row).err();
            refused.is_some_and(|verdict| !verdict.refusal.resolvable)
        }
    }
}

impl Rules for LowerPriority {
    fn may_evict(&self, placed: &Placed, _: &Cluster) -> bool {
        placed.pod.template.priority < self.priority
    }

    fn has_victims(&self, cluster: &Cluster) -> bool {
        cluster.classes().flatten().any(|class| class.template().priority < self.priority)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        let mut budgets: Vec<(&str, Selector, i32, &PodDisruptionBudget)> = cluster
            .objects()
            .of::<PodDisruptionBudget>()
            .filter_map(|(key, budget)| {
                // Without a selector, or with an empty one, it is about no pod.
                let selector = Selector::stored(budget.spec.as_ref()?.selector.as_ref()?)?;
                let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
                (!selector.is_everything()).then_some((key.namespace(), selector, allowed, budget))
            })
            .collect();
        let mut protected = BTreeSet::new();
        for placed in pods {
            let (template, name) = (&placed.pod.template, placed.pod.key.name());
            if template.labels.iter().next().is_none() {
                continue;
            }
            for (namespace, selector, allowed, budget) in &mut budgets {
                let is_counted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
                let is_counted = is_counted.is_some_and(|pods| pods.contains_key(name));
                if *namespace != &*template.namespace || is_counted || !selector.selects(|key| template.labels.get(key))
                {
                    continue;
                }
                *allowed = allowed.saturating_sub(1);
                if *allowed < 0 {
                    protected.insert(placed.pod.uid.clone());
                }
            }
        }
        protected
    }

    fn no_victims(&self, _node: &str) -> String {
        "No preemption victims found for incoming pod".to_owned()
    }
}

impl<R: Rules> Rules for OnNodesAlone<R> {
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool {
        self.0.may_evict(placed, cluster)
    }

    fn has_victims(&self, cluster: &Cluster) -> bool {
        self.0.has_victims(cluster)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        self.0.protected(pods, cluster)
    }

    fn no_victims(&self, node: &str) -> String {
        self.0.no_victims(node)
    }

    fn admits(&self, _: &Request<'_>, _: &Profile, _: &Cluster) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod foreign;

#[cfg(test)]
mod tests {
    use koord_core::{clock::Moment, key::ObjectKey, random::Random};
    use koord_engine::{
        engine::{PreemptionOutcome, Refused},
        labels::Labels,
        object::Object,
        queue::Timings,
    };
    pub(super) use {
        koord_engine::{
            engine::{Attempt, Engine, Outcome},
            pod::Template,
        },
        serde_json::json,
        std::sync::Arc,
    };

    pub(super) use super::*;
    pub(super) use crate::testing;
    use crate::{NodePorts, NodeResourcesFit};

    pub(super) const NOW: Moment = Moment::at(std::time::Duration::ZERO);

    pub(super) fn engine(nodes: &[&str]) -> Engine {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeResourcesFit::default()),
            Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
        ];
        let profile = Profile { filters: vec![0], post_filters: vec![1], ..Profile::of("test", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for name in nodes {
            engine.set_node(testing::node(name, &json!({"status": {"allocatable": {"cpu": "4", "pods": "9"}}})), NOW);
        }
        engine
    }

    pub(super) fn pod(name: &str, cpu: &str, priority: i32, node: Option<&str>) -> Arc<Pod> {
        let requests = json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        let pod = testing::pod(name, &requests);
        let template = Template {
            scheduler: "test".into(),
            priority,
            labels: [("app", name)].into_iter().collect::<Labels>(),
            ..Template::clone(&pod.template)
        };
        Arc::new(Pod {
            template: Arc::new(template),
            node: node.map(Arc::from),
            started: node.map(|_| i64::from(name.as_bytes()[0])),
            ..Pod::clone(&pod)
        })
    }

    pub(super) fn refused(engine: &mut Engine) -> Refused {
        match engine.attempt(NOW) {
            Some(Attempt { outcome: Outcome::Refused(refused), .. }) => refused,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn victims(refused: &Refused) -> Vec<&str> {
        refused.victims.iter().map(|victim| victim.key.name()).collect()
    }

    fn budget(engine: &mut Engine, app: &str, allowed: i32) {
        let object = json!({
            "metadata": {"name": app, "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        });
        let budget: PodDisruptionBudget = serde_json::from_value(object).unwrap();
        engine.set_object(Object::new(ObjectKey::new("ns", app), Uid::from(app), false, Arc::new(budget)), NOW);
    }

    #[test]
    fn the_fewest_and_least_important_pods_go_and_the_pod_gets_their_place() {
        let mut engine = engine(&["n1", "n2"]);
        for (name, cpu, priority, node) in
            [("a", "2", 5, "n1"), ("b", "1", 1, "n1"), ("c", "1", 1, "n1"), ("d", "4", 9, "n2")]
        {
            engine.set_pod(pod(name, cpu, priority, Some(node)), NOW);
        }
        engine.set_pod(pod("high", "1", 10, None), NOW);
        let attempt = refused(&mut engine);
        assert_eq!((attempt.nominated.as_deref(), victims(&attempt)), (Some("n1"), vec!["c"]), "b runs for longer");
        assert_eq!(attempt.message, "0/2 nodes are available: 2 Insufficient cpu.");
        engine.remove_pod(&Uid::from("c"), NOW);
        engine.set_pod(pod("late", "1", 1, None), NOW);
        let late = "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
                    2 No preemption victims found for incoming pod.";
        assert_eq!(refused(&mut engine).message, late, "the room is kept for the other");
        let Some(Attempt { pod, outcome: Outcome::Bind { node, .. }, .. }) = engine.attempt(NOW) else { panic!() };
        assert_eq!((pod.key.name(), &*node), ("high", "n1"));
    }

    #[test]
    fn a_pod_whose_victims_are_going_evicts_no_others() {
        let mut engine = engine(&["n1"]);
        engine.set_pod(pod("a", "2", 1, Some("n1")), NOW);
        engine.set_pod(pod("b", "2", 1, Some("n1")), NOW);
        engine.set_pod(pod("high", "2", 10, None), NOW);
        let first = refused(&mut engine);
        assert_eq!((victims(&first), &first.preemption), (vec!["b"], &PreemptionOutcome::Found(vec![Uid::from("b")])));
        let going = pod("b", "2", 1, Some("n1"));
        engine.set_pod(Arc::new(Pod { deleting: true, is_preempted: true, ..Pod::clone(&going) }), NOW);
        engine.set_node(testing::node("n1", &json!({"status": {"allocatable": {"cpu": "4500m", "pods": "9"}}})), NOW);
        let later = Moment::at(std::time::Duration::from_secs(9));
        let Some(Attempt { outcome: Outcome::Refused(again), .. }) = engine.attempt(later) else { panic!() };
        assert!(again.message.ends_with("preemption: not eligible due to a terminating pod on the nominated node."));
        assert_eq!(
            (again.nominated.as_deref(), again.preemption),
            (Some("n1"), PreemptionOutcome::Awaited),
            "it is being made there still"
        );
        assert_eq!(engine.cluster().nominated().count(), 1);
        let high = engine.cluster().pending_pod(&Uid::from("high")).cloned().unwrap();
        let template = Template { priority: 1, ..Template::clone(&high.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&high) }), later);
        let Some(Attempt { outcome: Outcome::Refused(hopeless), .. }) = engine.attempt(later) else { panic!() };
        assert_eq!((hopeless.nominated, engine.cluster().nominated().count()), (None, 0), "nothing can go for it now");
        assert_eq!(hopeless.preemption, PreemptionOutcome::None);
    }

    #[test]
    fn room_that_a_higher_pod_takes_over_is_not_for_a_lower_one_any_more() {
        let mut engine = engine(&["n1"]);
        engine.set_pod(pod("a", "2", 1, Some("n1")), NOW);
        engine.set_pod(pod("b", "2", 5, Some("n1")), NOW);
        engine.set_pod(pod("middle", "2", 5, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["a"]);
        let going = pod("a", "2", 1, Some("n1"));
        engine.set_pod(Arc::new(Pod { deleting: true, is_preempted: true, ..Pod::clone(&going) }), NOW);
        engine.set_pod(pod("high", "4", 10, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["b"]);
        assert_eq!(engine.cluster().nomination(&Uid::from("middle")), None);
        let later = Moment::at(std::time::Duration::from_secs(9));
        let Some(Attempt { pod, outcome: Outcome::Refused(again), .. }) = engine.attempt(later) else { panic!() };
        assert_eq!((pod.key.name(), again.nominated), ("middle", None), "it is tried again, and says so");
    }

    #[test]
    fn a_pod_is_tried_after_the_last_of_its_victims_whichever_that_is() {
        for order in [["port", "cpu"], ["cpu", "port"]] {
            let plugins: Vec<Arc<dyn Plugin>> = vec![
                Arc::new(NodePorts),
                Arc::new(NodeResourcesFit::default()),
                Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
            ];
            let profile = Profile { filters: vec![0, 1], post_filters: vec![2], ..Profile::of("test", plugins) };
            let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
            let status = json!({"status": {"allocatable": {"cpu": "4", "pods": "9"}}});
            engine.set_node(testing::node("n1", &status), NOW);
            let with_port = |pod: Arc<Pod>| {
                let spec = json!({"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]});
                let host_ports = testing::pod("ports", &spec).template.host_ports.clone();
                let template = Template { host_ports, ..Template::clone(&pod.template) };
                Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) })
            };
            engine.set_pod(with_port(pod("port", "1", 1, Some("n1"))), NOW);
            engine.set_pod(pod("cpu", "3", 1, Some("n1")), NOW);
            engine.set_pod(with_port(pod("high", "4", 10, None)), NOW);
            let attempt = refused(&mut engine);
            assert_eq!(
                attempt.message,
                "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
            );
            assert_eq!(attempt.victims.len(), 2);

            engine.remove_pod(&Uid::from(order[0]), NOW);
            let between = Moment::at(std::time::Duration::from_secs(9));
            let attempt = engine.attempt(between);
            assert!(matches!(attempt, None | Some(Attempt { outcome: Outcome::Refused(_), .. })), "{attempt:?}");
            engine.remove_pod(&Uid::from(order[1]), between);
            let later = Moment::at(std::time::Duration::from_secs(30));
            let attempt = engine.attempt(later);
            assert!(matches!(attempt, Some(Attempt { outcome: Outcome::Bind { .. }, .. })), "{order:?}: {attempt:?}");
        }
    }

    #[test]
    fn pods_whose_deletion_has_begun_are_not_deleted_once_more() {
        let mut engine = engine(&["n1"]);
        let going = |name: &str| {
            let pod = pod(name, "2", 1, Some("n1"));
            Arc::new(Pod { deleting: true, ..Pod::clone(&pod) })
        };
        engine.set_pod(going("a"), NOW);
        engine.set_pod(pod("b", "2", 1, Some("n1")), NOW);
        engine.set_pod(pod("high", "4", 10, None), NOW);
        let attempt = refused(&mut engine);
        assert_eq!((attempt.nominated.as_deref(), victims(&attempt)), (Some("n1"), vec!["b"]));
        engine.set_pod(going("b"), NOW);
        engine.set_pod(pod("higher", "4", 11, None), NOW);
        let attempt = refused(&mut engine);
        assert_eq!((attempt.nominated.as_deref(), victims(&attempt)), (Some("n1"), vec![]), "both go already");
        assert!(
            matches!(attempt.preemption, PreemptionOutcome::Found(leaving) if leaving.len() == 2),
            "and both are waited for"
        );
    }

    #[test]
    fn a_pod_waits_for_all_of_its_victims() {
        let evicting = || {
            let mut engine = engine(&["n1"]);
            engine.set_pod(pod("a", "2", 1, Some("n1")), NOW);
            engine.set_pod(pod("b", "2", 1, Some("n1")), NOW);
            engine.set_pod(pod("high", "4", 10, None), NOW);
            assert_eq!(victims(&refused(&mut engine)), ["a", "b"]);
            engine.remove_pod(&Uid::from("a"), NOW);
            assert!(engine.attempt(NOW).is_none(), "the other has not begun to go");
            engine
        };
        let mut engine = evicting();
        engine.remove_pod(&Uid::from("b"), NOW);
        assert!(matches!(engine.attempt(NOW), Some(Attempt { outcome: Outcome::Bind { .. }, .. })));
        let mut engine = evicting();
        engine.eviction_failed(&Uid::from("b"), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["b"], "is tried to be evicted again");
    }

    #[test]
    fn budgets_are_kept_where_that_can_be() {
        let mut engine = engine(&["n1", "n2"]);
        engine.set_pod(pod("a", "4", 1, Some("n1")), NOW);
        engine.set_pod(pod("b", "4", 3, Some("n2")), NOW);
        budget(&mut engine, "a", 0);
        budget(&mut engine, "b", 1);
        engine.set_pod(pod("high", "1", 10, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["b"], "though it is more important");
        engine.remove_pod(&Uid::from("high"), NOW);
        budget(&mut engine, "b", 0);
        engine.eviction_failed(&Uid::from("b"), NOW);
        engine.set_pod(pod("next", "1", 10, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["a"], "both break a budget, and a is less important");
    }

    #[test]
    fn who_must_not_preempt_and_who_cannot_says_so() {
        let mut engine = engine(&["n1"]);
        engine.set_pod(pod("a", "4", 1, Some("n1")), NOW);
        let never = pod("never", "1", 10, None);
        let template = Template { preempts: false, ..Template::clone(&never.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&never) }), NOW);
        assert!(refused(&mut engine).message.ends_with("preemption: not eligible due to preemptionPolicy=Never."));
        engine.set_pod(pod("huge", "5", 10, None), NOW);
        let huge = refused(&mut engine);
        assert!(
            huge.message.ends_with("preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")
        );
        assert_eq!((huge.nominated, huge.victims.len()), (None, 0));
    }

    #[test]
    fn a_node_says_why_it_refuses_beside_the_pod_for_which_room_is_made_there() {
        let mut engine = engine(&[]);
        let status = json!({"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "9"}});
        engine.set_node(testing::node("n1", &json!({"status": status})), NOW);
        engine.set_pod(pod("low", "4", 0, Some("n1")), NOW);
        engine.set_pod(pod("first", "3", 5, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["low"]);
        engine.remove_pod(&Uid::from("low"), NOW);
        let requests = json!({"containers": [{"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}]});
        let large = testing::pod("large", &requests);
        let template = Template { scheduler: "test".into(), priority: 5, ..Template::clone(&large.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&large) }), NOW);
        let message = refused(&mut engine).message;
        assert!(
            message.starts_with("0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."),
            "{message}"
        );
    }
}
