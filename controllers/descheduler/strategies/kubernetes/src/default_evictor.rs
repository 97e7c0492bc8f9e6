//! Evicts pods by the Eviction API, and decides which may be evicted.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use koord_config::descheduler::{
    DefaultEvictorArgs, DefaultProtection, ExtraProtection, NoEvictionPolicy, PriorityThreshold,
};
use koord_descheduler_framework::{
    Cluster, Evict, Filter, Means, Node, NodeId, Plugin, Pod, PodId, PreEvictionFilter, PreparedEvict, PreparedFilter,
    PreparedPreEvictionFilter, Reason, ReasonCode, Refusal, Registration,
    fit::Rule,
    objects::{DisruptionBudget, Namespace, ObjectType as _, PriorityClass, VolumeClaim},
    pod::{EVICT, PREFER_NO_EVICTION, Phase, SYSTEM_CRITICAL_PRIORITY},
};
use koord_resource::{Duration, controller::ResourceKind};
use koord_scheduling::Selector;

use crate::ArgsError;

/// The plugin of this name.
#[derive(Clone, Debug)]
pub struct DefaultEvictor {
    nodes: Selector,
    labels: Option<Selector>,
    namespace_labels: Option<Selector>,
    threshold: Option<PriorityThreshold>,
    has_node_fit: bool,
    min_replicas: usize,
    min_age_seconds: Option<i64>,
    obeys_no_eviction: bool,
    protections: Protections,
}

/// Which pods are protected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a protection of its own")]
struct Protections {
    daemon_set: bool,
    system_critical: bool,
    /// Pods without owner, though they have failed.
    failed_bare: bool,
    local_storage: bool,
    volume_claim: bool,
    without_budget: bool,
    resource_claim: bool,
    /// Of claims those of these StorageClasses; all of them where it is empty.
    storage_classes: Vec<String>,
}

impl Protections {
    /// Where `podProtections` has an entry, it alone counts.
    fn of(args: &DefaultEvictorArgs) -> Self {
        let named = &args.pod_protections;
        if named.default_disabled.is_empty() && named.extra_enabled.is_empty() {
            return Self {
                daemon_set: !args.evict_daemon_set_pods,
                system_critical: !args.evict_system_critical_pods,
                failed_bare: !args.evict_failed_bare_pods,
                local_storage: !args.evict_local_storage_pods,
                volume_claim: args.ignore_pvc_pods,
                without_budget: args.ignore_pods_without_pdb,
                resource_claim: false,
                storage_classes: Vec::new(),
            };
        }
        let is_on = |protection| !named.default_disabled.contains(&protection);
        let is_added = |protection| named.extra_enabled.contains(&protection);
        let classes = &named.config.pods_with_pvc.protected_storage_classes;
        Self {
            daemon_set: is_on(DefaultProtection::DaemonSetPods),
            system_critical: is_on(DefaultProtection::SystemCriticalPods),
            failed_bare: is_on(DefaultProtection::FailedBarePods),
            local_storage: is_on(DefaultProtection::PodsWithLocalStorage),
            volume_claim: is_added(ExtraProtection::PodsWithPvc),
            without_budget: is_added(ExtraProtection::PodsWithoutPdb),
            resource_claim: is_added(ExtraProtection::PodsWithResourceClaims),
            storage_classes: classes.iter().map(|class| class.name.clone()).collect(),
        }
    }
}

impl DefaultEvictor {
    /// # Errors
    ///
    /// A selector is none.
    pub fn new(args: &DefaultEvictorArgs) -> Result<Self, ArgsError> {
        let selector = |field, selector: Option<&_>| {
            let selector = selector.map(Selector::new).transpose();
            selector.map_err(|error| ArgsError::Selector { field, error: error.to_string() })
        };
        let nodes = Selector::parse(&args.node_selector);
        let is_chosen = |selector: &Selector| !selector.is_everything();
        Ok(Self {
            nodes: nodes.map_err(|error| ArgsError::Selector { field: "nodeSelector", error })?,
            labels: selector("labelSelector", args.label_selector.as_ref())?.filter(is_chosen),
            namespace_labels: selector("namespaceLabelSelector", args.namespace_label_selector.as_ref())?
                .filter(is_chosen),
            threshold: args.priority_threshold.clone(),
            has_node_fit: args.node_fit,
            min_replicas: usize::try_from(args.min_replicas).unwrap_or(usize::MAX),
            min_age_seconds: args.min_pod_age.map(seconds),
            obeys_no_eviction: args.no_eviction_policy == NoEvictionPolicy::Mandatory,
            protections: Protections::of(args),
        })
    }
}

/// Whole seconds; a negative duration is none.
fn seconds(duration: Duration) -> i64 {
    duration.to_std().map_or(0, |duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

impl Plugin for DefaultEvictor {
    fn name(&self) -> &'static str {
        "DefaultEvictor"
    }

    fn register(self: Arc<Self>) -> Registration {
        const READS: &[ResourceKind] =
            &[DisruptionBudget::KIND, Namespace::KIND, PriorityClass::KIND, VolumeClaim::KIND];
        Registration::of(&self).filter(&self).pre_eviction_filter(&self).evict(&self).reading(READS)
    }
}

/// Which pods may be evicted in one pass.
struct Checks<'a> {
    evictor: &'a DefaultEvictor,
    cluster: &'a Cluster,
    now: i64,
    /// Pods of this priority and above stay; the name of the class where that does not exist.
    threshold: Result<i32, Arc<str>>,
    /// The budgets of each namespace, where pods without one stay.
    budgets: BTreeMap<&'a str, Vec<&'a Selector>>,
}

/// What is asked once more in one pass.
struct LastChecks<'a> {
    evictor: &'a DefaultEvictor,
    cluster: &'a Cluster,
    /// The nodes of which a pod has to fit another one; `None` where it need not.
    nodes: Option<Vec<NodeId>>,
}

impl<'a> Checks<'a> {
    fn new(evictor: &'a DefaultEvictor, cluster: &'a Cluster, now: Timestamp) -> Self {
        let mut budgets = BTreeMap::<&str, Vec<&Selector>>::new();
        if evictor.protections.without_budget {
            for (key, budget) in cluster.objects().of::<DisruptionBudget>() {
                budgets.entry(key.namespace()).or_default().extend(&budget.selector);
            }
        }
        let threshold = threshold(evictor.threshold.as_ref(), cluster);
        Self { evictor, cluster, now: now.as_second(), threshold, budgets }
    }

    fn check(&self, pod: &Pod) -> Result<(), Refusal> {
        let Self { evictor, .. } = self;
        let protected = &evictor.protections;
        if pod.annotation(EVICT).is_some() {
            return Ok(());
        }
        let rules = [
            (evictor.obeys_no_eviction && pod.annotation(PREFER_NO_EVICTION).is_some(), ReasonCode::PrefersNoEviction),
            (pod.is_mirror(), ReasonCode::MirrorPod),
            (pod.is_static(), ReasonCode::StaticPod),
            (pod.is_deleting, ReasonCode::Terminating),
            (protected.daemon_set && pod.is_owned_by("DaemonSet"), ReasonCode::DaemonSetPod),
            (pod.owners.is_empty() && (protected.failed_bare || pod.state.phase != Phase::Failed), ReasonCode::BarePod),
            (protected.system_critical && pod.is_system_critical(), ReasonCode::SystemCritical),
        ];
        if let Some((_, code)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
            return Err(code.into());
        }
        if protected.system_critical {
            self.check_priority(pod)?;
        }
        let rules = [
            (protected.local_storage && pod.template.has_local_storage, ReasonCode::LocalStorage),
            (protected.volume_claim && self.has_protected_claim(pod), ReasonCode::PersistentVolumeClaim),
            (protected.without_budget && !self.has_budget(pod), ReasonCode::NoDisruptionBudget),
            (protected.resource_claim && pod.template.has_resource_claims, ReasonCode::ResourceClaims),
            (
                evictor.labels.as_ref().is_some_and(|labels| !labels.selects(|key| pod.label(key))),
                ReasonCode::LabelsNotSelected,
            ),
        ];
        if let Some((_, code)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
            return Err(code.into());
        }
        self.check_replicas(pod)?;
        self.check_age(pod)
    }

    /// Without the class that is to be the threshold every pod stays.
    fn check_priority(&self, pod: &Pod) -> Result<(), Refusal> {
        let refusal = Refusal::new(ReasonCode::PriorityThreshold).with("priority", pod.priority());
        match &self.threshold {
            Ok(threshold) if pod.priority() < *threshold => Ok(()),
            Ok(threshold) => Err(refusal.with("threshold", *threshold)),
            Err(class) => Err(refusal.with("missing PriorityClass", class)),
        }
    }

    /// A pod with exactly one owner stays where that has too few pods.
    fn check_replicas(&self, pod: &Pod) -> Result<(), Refusal> {
        let min = self.evictor.min_replicas;
        let [owner] = &*pod.owners else { return Ok(()) };
        if min < 2 {
            return Ok(());
        }
        let replicas = self.cluster.pods_of(&owner.owner.uid).count();
        if replicas < min {
            let refusal = Refusal::new(ReasonCode::TooFewReplicas);
            return Err(refusal.with("replicas", replicas).with("minReplicas", min));
        }
        Ok(())
    }

    fn check_age(&self, pod: &Pod) -> Result<(), Refusal> {
        let Some(min) = self.evictor.min_age_seconds else { return Ok(()) };
        let age = pod.started.map(|started| self.now - started);
        match age {
            Some(age) if age >= min => Ok(()),
            Some(age) => Err(Refusal::new(ReasonCode::TooYoung).with("age", age).with("minimum", min)),
            None => Err(Refusal::new(ReasonCode::TooYoung).with("age", "unknown").with("minimum", min)),
        }
    }

    fn has_protected_claim(&self, pod: &Pod) -> bool {
        let classes = &self.evictor.protections.storage_classes;
        let is_protected = |claim: &Arc<str>| {
            let key = koord_core::key::ObjectKey::new(pod.namespace(), claim);
            // A claim that is not known, or has no class, may be anything.
            let known = self.cluster.objects().get::<VolumeClaim>(key.as_str());
            let class = known.and_then(|claim| claim.storage_class.as_deref());
            class.is_none_or(|class| classes.iter().any(|protected| protected == class))
        };
        let mut claims = pod.template.claims.iter();
        if classes.is_empty() { claims.next().is_some() } else { claims.any(is_protected) }
    }

    fn has_budget(&self, pod: &Pod) -> bool {
        let budgets = self.budgets.get(pod.namespace()).into_iter().flatten();
        budgets.into_iter().any(|selector| selector.selects(|key| pod.label(key)))
    }
}

/// The priority from which on pods stay, or the name of the class that does not exist.
fn threshold(threshold: Option<&PriorityThreshold>, cluster: &Cluster) -> Result<i32, Arc<str>> {
    let Some(PriorityThreshold { value, name }) = threshold else { return Ok(SYSTEM_CRITICAL_PRIORITY) };
    match (value, name.as_str()) {
        (Some(value), _) => Ok(*value),
        (None, "") => Ok(SYSTEM_CRITICAL_PRIORITY),
        (None, name) => {
            cluster.objects().get::<PriorityClass>(name).map(|class| class.value).ok_or_else(|| Arc::from(name))
        }
    }
}

impl Filter for DefaultEvictor {
    fn prepare_filter<'a>(&'a self, cluster: &'a Cluster, now: Timestamp) -> Box<dyn PreparedFilter + 'a> {
        Box::new(Checks::new(self, cluster, now))
    }
}

impl PreparedFilter for Checks<'_> {
    fn filter(&self, pod: PodId) -> Result<(), Refusal> {
        self.cluster.pod(pod).map_or(Ok(()), |pod| self.check(pod))
    }
}

impl PreEvictionFilter for DefaultEvictor {
    fn prepare_pre_eviction_filter<'a>(
        &'a self,
        cluster: &'a Cluster,
        _: Timestamp,
    ) -> Box<dyn PreparedPreEvictionFilter + 'a> {
        let counts = |(_, node): &(NodeId, &Arc<Node>)| node.is_ready && self.nodes.selects(|key| node.label(key));
        let nodes = || cluster.nodes().filter(counts).map(|(id, _)| id).collect();
        Box::new(LastChecks { evictor: self, cluster, nodes: self.has_node_fit.then(nodes) })
    }
}

impl PreparedPreEvictionFilter for LastChecks<'_> {
    fn pre_eviction_filter(&self, id: PodId) -> Result<(), Refusal> {
        if let Some(nodes) = &self.nodes {
            Rule::Kubernetes.fits_other(self.cluster, id, nodes.iter().copied())?;
        }
        let (Some(selector), Some(pod)) = (&self.evictor.namespace_labels, self.cluster.pod(id)) else { return Ok(()) };
        let namespace = self.cluster.objects().get::<Namespace>(pod.namespace());
        let is_selected = selector.selects(|key| namespace?.labels.get(key));
        is_selected.then_some(()).ok_or_else(|| ReasonCode::NamespaceLabels.into())
    }
}

impl Evict for DefaultEvictor {
    fn prepare_evict<'a>(&'a self, _: &'a Cluster, _: Timestamp) -> Box<dyn PreparedEvict + 'a> {
        Box::new(ByEviction)
    }
}

struct ByEviction;

impl PreparedEvict for ByEviction {
    fn evict(&mut self, _: PodId, _: &Reason) -> Result<Means, Refusal> {
        Ok(Means::Eviction { delete_options: None })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use koord_descheduler_testing::{args, cluster, node, pod, with};

    const NOW: i64 = 1000;

    /// What the filter says of a pod among these objects.
    fn verdict(arguments: &Value, pod: &Value, others: &[Value]) -> Option<ReasonCode> {
        let evictor = DefaultEvictor::new(&args("DefaultEvictor", arguments)).unwrap();
        let objects: Vec<Value> = [node("n1"), node("n2"), pod.clone()].iter().chain(others).cloned().collect();
        let cluster = cluster(&objects);
        let id = cluster.pod_id("default/p").unwrap();
        let now = Timestamp::from_second(NOW).unwrap();
        let filter = evictor.prepare_filter(&cluster, now).filter(id);
        let answer = filter.and_then(|()| evictor.prepare_pre_eviction_filter(&cluster, now).pre_eviction_filter(id));
        answer.err().map(|refusal| refusal.code)
    }

    fn changed(change: &Value) -> Value {
        with(&pod("p", "n1"), change)
    }

    #[test]
    fn pods_that_nothing_would_replace_stay() {
        let annotated = |key: &str, value: &str| changed(&json!({"metadata": {"annotations": {key: value}}}));
        let owned = |owners: Value| changed(&json!({"metadata": {"ownerReferences": owners}}));
        let daemon =
            json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
        let deleting = changed(&json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}));
        let none = json!({});
        for (pod, expected) in [
            (pod("p", "n1"), None),
            (annotated("kubernetes.io/config.mirror", "x"), Some(ReasonCode::MirrorPod)),
            (annotated("kubernetes.io/config.source", "file"), Some(ReasonCode::StaticPod)),
            (annotated("kubernetes.io/config.source", "api"), None),
            (deleting, Some(ReasonCode::Terminating)),
            (owned(daemon.clone()), Some(ReasonCode::DaemonSetPod)),
            (owned(json!(null)), Some(ReasonCode::BarePod)),
        ] {
            assert_eq!(verdict(&none, &pod, &[]), expected, "{pod}");
        }
        assert_eq!(verdict(&json!({"evictDaemonSetPods": true}), &owned(daemon), &[]), None);
        let failed = with(&owned(json!(null)), &json!({"status": {"phase": "Failed"}}));
        assert_eq!(verdict(&none, &failed, &[]), Some(ReasonCode::BarePod));
        assert_eq!(verdict(&json!({"evictFailedBarePods": true}), &failed, &[]), None);
        assert_eq!(
            verdict(&json!({"evictFailedBarePods": true}), &owned(json!(null)), &[]),
            Some(ReasonCode::BarePod),
            "it has not failed"
        );
    }

    #[test]
    fn the_evict_annotation_beats_every_filter_but_not_what_is_asked_before_the_eviction() {
        let critical = json!({"metadata": {"annotations": {EVICT: ""}, "ownerReferences": null}, "spec": {"priority": 2_000_000_001}});
        assert_eq!(verdict(&json!({}), &changed(&critical), &[]), None);
        let unfit = with(&critical, &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
        assert_eq!(verdict(&json!({"nodeFit": true}), &changed(&unfit), &[]), Some(ReasonCode::NoOtherNodeFits));
    }

    #[test]
    fn priorities_at_the_threshold_stay_unless_critical_pods_may_go() {
        let of = |priority: i32| changed(&json!({"spec": {"priority": priority}}));
        let class = json!({"kind": "PriorityClass", "metadata": {"name": "mid"}, "value": 500});
        let by_value = json!({"priorityThreshold": {"value": 100}});
        let by_name = json!({"priorityThreshold": {"name": "mid"}});
        for (arguments, priority, expected) in [
            (json!({}), 2_000_000_000, Some(ReasonCode::SystemCritical)),
            (json!({}), 1_999_999_999, None),
            (by_value.clone(), 99, None),
            (by_value.clone(), 100, Some(ReasonCode::PriorityThreshold)),
            (by_name.clone(), 499, None),
            (by_name, 500, Some(ReasonCode::PriorityThreshold)),
            (with(&by_value, &json!({"evictSystemCriticalPods": true})), 2_000_000_000, None),
            (json!({"priorityThreshold": {"name": "gone"}}), -5, Some(ReasonCode::PriorityThreshold)),
        ] {
            assert_eq!(
                verdict(&arguments, &of(priority), std::slice::from_ref(&class)),
                expected,
                "{arguments} {priority}"
            );
        }
    }

    #[test]
    fn storage_is_protected_by_kind_and_class() {
        let volume = |volume: Value| changed(&json!({"spec": {"volumes": [volume]}}));
        let local = volume(json!({"name": "v", "emptyDir": {}}));
        let claimed = volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}));
        let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": {"storageClassName": "fast"}});
        let classes = |class: &str| json!({"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": class}]}}}});
        for (arguments, pod, expected) in [
            (json!({}), &local, Some(ReasonCode::LocalStorage)),
            (json!({"evictLocalStoragePods": true}), &local, None),
            (json!({"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}), &local, None),
            (
                json!({"evictLocalStoragePods": true, "podProtections": {"extraEnabled": ["PodsWithPVC"]}}),
                &local,
                Some(ReasonCode::LocalStorage),
            ),
            (json!({}), &claimed, None),
            (json!({"ignorePvcPods": true}), &claimed, Some(ReasonCode::PersistentVolumeClaim)),
            (classes("fast"), &claimed, Some(ReasonCode::PersistentVolumeClaim)),
            (classes("slow"), &claimed, None),
        ] {
            assert_eq!(verdict(&arguments, pod, std::slice::from_ref(&claim)), expected, "{arguments}");
        }
        assert_eq!(
            verdict(&classes("slow"), &claimed, &[]),
            Some(ReasonCode::PersistentVolumeClaim),
            "an unknown claim"
        );
    }

    #[test]
    fn budgets_labels_replicas_and_age() {
        let labelled =
            changed(&json!({"metadata": {"labels": {"app": "web"}}, "status": {"startTime": "1970-01-01T00:10:00Z"}}));
        let budget = |app: &str| json!({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": app}}}});
        let guarded = json!({"ignorePodsWithoutPDB": true});
        assert_eq!(verdict(&guarded, &labelled, &[budget("web")]), None);
        assert_eq!(verdict(&guarded, &labelled, &[budget("other")]), Some(ReasonCode::NoDisruptionBudget));
        let chosen = json!({"labelSelector": {"matchLabels": {"app": "other"}}});
        assert_eq!(verdict(&chosen, &labelled, &[]), Some(ReasonCode::LabelsNotSelected));
        assert_eq!(verdict(&json!({"labelSelector": {}}), &labelled, &[]), None, "an empty selector is none");
        let replicas = json!({"minReplicas": 2});
        assert_eq!(verdict(&replicas, &labelled, &[]), Some(ReasonCode::TooFewReplicas));
        assert_eq!(verdict(&replicas, &labelled, &[pod("other", "n2")]), None);
        for (age, expected) in [("400s", None), ("401s", Some(ReasonCode::TooYoung))] {
            assert_eq!(verdict(&json!({"minPodAge": age}), &labelled, &[]), expected);
        }
        assert_eq!(verdict(&json!({"minPodAge": "1s"}), &pod("p", "n1"), &[]), Some(ReasonCode::TooYoung));
    }

    #[test]
    fn what_a_pod_prefers_is_obeyed_where_that_is_mandatory() {
        let asking = changed(&json!({"metadata": {"annotations": {PREFER_NO_EVICTION: "true"}}}));
        assert_eq!(verdict(&json!({}), &asking, &[]), None);
        let mandatory = json!({"noEvictionPolicy": "Mandatory"});
        assert_eq!(verdict(&mandatory, &asking, &[]), Some(ReasonCode::PrefersNoEviction));
    }

    #[test]
    fn before_an_eviction_fit_and_the_namespace_are_asked() {
        let pinned = changed(&json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
        assert_eq!(verdict(&json!({"nodeFit": true}), &pinned, &[]), Some(ReasonCode::NoOtherNodeFits));
        assert_eq!(verdict(&json!({"nodeFit": true}), &pod("p", "n1"), &[]), None);
        let elsewhere = json!({"nodeFit": true, "nodeSelector": "kubernetes.io/hostname=n1"});
        assert_eq!(
            verdict(&elsewhere, &pod("p", "n1"), &[]),
            Some(ReasonCode::NoOtherNodeFits),
            "only its own node counts"
        );
        let namespace =
            |team: &str| json!({"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": team}}});
        let of_team = json!({"namespaceLabelSelector": {"matchLabels": {"team": "a"}}});
        assert_eq!(verdict(&of_team, &pod("p", "n1"), &[namespace("a")]), None);
        assert_eq!(verdict(&of_team, &pod("p", "n1"), &[namespace("b")]), Some(ReasonCode::NamespaceLabels));
        let by_expression = json!({"namespaceLabelSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}});
        assert_eq!(verdict(&by_expression, &pod("p", "n1"), &[namespace("b")]), Some(ReasonCode::NamespaceLabels));
    }
}
