//! DefaultPreemption: pods of lower priority are evicted where the pod fits without them.

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use koord_config::scheduler::DefaultPreemptionArgs;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Plugin, PostFilter, PostFilterResult, PreEnqueue, Reason, ReasonCode, Registration, Request,
    cluster::Cluster,
    event::Events,
    pod::Pod,
    preemption::{Attempted, Evaluator, LowerPriority, Width, refuse_reserve_pod},
};

/// Evicts the least important pods of the node where that does the least harm, for a pod of higher priority.
#[derive(Clone, Copy, Debug)]
pub struct DefaultPreemption(Evaluator);

impl DefaultPreemption {
    /// With these arguments.
    pub fn new(args: &DefaultPreemptionArgs) -> Self {
        let percent = u32::try_from(args.min_candidate_nodes_percentage).unwrap_or_default();
        let at_least = usize::try_from(args.min_candidate_nodes_absolute).unwrap_or(usize::MAX);
        Self(Evaluator { width: Width { percent, at_least } })
    }
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
            return Err(ReasonCode::PreemptionPending.reason(WORDS));
        }
        Ok(())
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        if let Some(refused) = refuse_reserve_pod(request) {
            return refused;
        }
        let rules = LowerPriority { priority: request.template().priority };
        self.0.preempt(request, attempted, rules, self.name())
    }
}

#[cfg(test)]
mod foreign;

#[cfg(test)]
mod tests {
    pub(super) use koord_core::uid::Uid;
    use koord_core::{clock::Moment, key::ObjectKey, random::Random};
    use koord_scheduler_engine::{PreemptionOutcome, Refused, queue::Timings};
    use koord_scheduler_framework::{Profile, labels::Labels, object::Object};
    pub(super) use {
        koord_scheduler_engine::{Attempt, Engine, Outcome},
        koord_scheduler_framework::pod::Template,
        serde_json::json,
        std::sync::Arc,
    };

    pub(super) use super::*;
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
            engine.set_node(
                koord_scheduler_testing::node(name, &json!({"status": {"allocatable": {"cpu": "4", "pods": "9"}}})),
                NOW,
            );
        }
        engine
    }

    pub(super) fn pod(name: &str, cpu: &str, priority: i32, node: Option<&str>) -> Arc<Pod> {
        let requests = json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        let pod = koord_scheduler_testing::pod(name, &requests);
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
        engine.set_node(
            koord_scheduler_testing::node("n1", &json!({"status": {"allocatable": {"cpu": "4500m", "pods": "9"}}})),
            NOW,
        );
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
    fn a_pod_of_higher_priority_takes_over_the_nominated_node_of_a_lower_one() {
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
            engine.set_node(koord_scheduler_testing::node("n1", &status), NOW);
            let with_port = |pod: Arc<Pod>| {
                let spec = json!({"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]});
                let host_ports = koord_scheduler_testing::pod("ports", &spec).template.host_ports.clone();
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
    fn budgets_are_respected_where_possible() {
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
    fn pods_that_must_not_or_cannot_preempt_are_reported() {
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
    fn a_refusal_beside_a_nominated_pod_has_its_reason() {
        let mut engine = engine(&[]);
        let status = json!({"allocatable": {"cpu": "4", "memory": "1Gi", "pods": "9"}});
        engine.set_node(koord_scheduler_testing::node("n1", &json!({"status": status})), NOW);
        engine.set_pod(pod("low", "4", 0, Some("n1")), NOW);
        engine.set_pod(pod("first", "3", 5, None), NOW);
        assert_eq!(victims(&refused(&mut engine)), ["low"]);
        engine.remove_pod(&Uid::from("low"), NOW);
        let requests = json!({"containers": [{"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}]});
        let large = koord_scheduler_testing::pod("large", &requests);
        let template = Template { scheduler: "test".into(), priority: 5, ..Template::clone(&large.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&large) }), NOW);
        let message = refused(&mut engine).message;
        assert!(
            message.starts_with("0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."),
            "{message}"
        );
    }
}
