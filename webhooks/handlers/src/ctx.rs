//! What the handlers see: caches that keep of each object only what a decision needs.

use std::sync::Arc;

use koord_profile::{NamespaceLabels, Profile};
use koord_runtime::{
    Core,
    clock::{SharedClock, SystemClock},
    projection::DecodeError,
    reflector::Selection,
    store::{Sink, Store},
};
use parking_lot::Mutex;
use prometheus::IntCounterVec;

use crate::{
    config::{ConfigView, NodeLabels},
    follow::Follow,
    metrics,
    node::{ConfigMapData, NodeView},
    pod::{
        PodView,
        validate::RequiredLabels,
        validate_binding::{BindingView, PodMarks},
    },
    priority_class::PriorityClassValue,
    quota::{Admitted, CachedQuota, PlacedPod, QuotaProfile, QuotaView},
    reservation::ReservationView,
    settings::{DECLARED_WEBHOOKS, Declared, ObjectName, Settings},
    switches::Switches,
};

/// The caches and switches of all handlers.
pub struct Ctx {
    pub(crate) profiles: Arc<Store<Profile>>,
    pub(crate) namespaces: Arc<Store<NamespaceLabels>>,
    pub(crate) priority_classes: Arc<Store<PriorityClassValue>>,
    pub(crate) quotas: Arc<Store<CachedQuota>>,
    pub(crate) quota_profiles: Arc<Store<QuotaProfile>>,
    pub(crate) pods: Arc<Store<PlacedPod>>,
    /// Changes of quotas that were admitted and that the cache does not show yet.
    pub(crate) admitted: Mutex<Admitted>,
    pub(crate) clock: SharedClock,
    pub(crate) slo_config: Arc<Store<ConfigMapData>>,
    pub(crate) node_labels: Arc<Store<NodeLabels>>,
    pub(crate) required_labels: Arc<Store<RequiredLabels>>,
    pub(crate) pod_marks: Arc<Store<PodMarks>>,
    /// Decisions about bindings, counted by their reasons.
    pub(crate) binding_decisions: Option<IntCounterVec>,
    /// Flags.
    pub settings: Settings,
    /// Feature gates.
    pub switches: Switches,
    awaited: Vec<Arc<dyn Sink>>,
}

impl Ctx {
    /// The caches that the handlers of these gates need.
    pub fn watch(core: &mut Core, gate: impl Fn(&str) -> bool, settings: Settings) -> Self {
        let all = Selection::default();
        let (new_pods, all_pods) = (gate("PodMutatingWebhook"), gate("PodValidatingWebhook"));
        let (new_quotas, all_quotas) = (gate("ElasticMutatingWebhook"), gate("ElasticValidatingWebhook"));
        let reservations = gate("ReservationMutatingWebhook");
        let trees = new_pods && gate("MultiQuotaTree");
        let (clock, shown) = (Arc::clone(core.clock()), core.metrics().clone());
        let binding_decisions = gate("BindingAdmissionWebhook").then(|| binding_decisions(core)).flatten();
        let mut follow = Follow::new(core);
        let quotas = follow.when(all_pods || new_quotas || all_quotas || trees, &all);
        metrics::show_shared_weights(&shown, &quotas);
        Self {
            profiles: follow.when(new_pods || reservations, &all),
            namespaces: follow.when(new_pods, &all),
            priority_classes: follow.when(new_pods || reservations, &all),
            quotas,
            quota_profiles: follow.when(trees, &all),
            // Also pods without a quota's name: they belong to a quota by their namespace.
            pods: follow.when(all_quotas, &all),
            slo_config: follow.when(gate("NodeValidatingWebhook"), &only(&settings.slo_config)),
            node_labels: follow.when(gate("ConfigMapValidatingWebhook"), &all),
            required_labels: follow.when(gate("EnablePodEnhancedValidator"), &only(&settings.required_labels)),
            pod_marks: follow.when(gate("BindingAdmissionWebhook"), &all),
            awaited: follow.awaited,
            admitted: Mutex::default(),
            clock,
            binding_decisions,
            settings,
            switches: Switches::of(gate),
        }
    }

    /// Caches that the caller fills with [`Ctx::put`], without a watch: for tests, benches and offline checks.
    pub fn detached(gate: impl Fn(&str) -> bool) -> Self {
        Self {
            profiles: Arc::default(),
            namespaces: Arc::default(),
            priority_classes: Arc::default(),
            quotas: Arc::default(),
            quota_profiles: Arc::default(),
            pods: Arc::default(),
            admitted: Mutex::default(),
            clock: SystemClock::shared(),
            binding_decisions: None,
            slo_config: Arc::default(),
            node_labels: Arc::default(),
            required_labels: Arc::default(),
            pod_marks: Arc::default(),
            settings: Settings { declared: Declared::of_gate(gate(DECLARED_WEBHOOKS)), ..Settings::default() },
            switches: Switches::of(gate),
            awaited: Vec::new(),
        }
    }

    /// Whether every cache was filled once.
    pub fn synced(&self) -> bool {
        self.awaited.iter().all(|cache| cache.synced())
    }

    /// Why the ClusterColocationProfile of this name cannot be read; none where it can, and where there is none.
    pub fn set_aside(&self, profile: &str) -> Option<String> {
        self.profiles.read().quarantined(profile).map(|quarantined| quarantined.reason.to_string())
    }

    /// Puts an object, as JSON text, into the cache of its kind; others are passed over.
    pub fn put(&self, kind: &str, object: &str) -> Result<(), DecodeError> {
        match kind {
            "ConfigMap" => {
                self.slo_config.upsert(object)?;
                self.required_labels.upsert(object)
            }
            "Node" => self.node_labels.upsert(object),
            "ClusterColocationProfile" => self.profiles.upsert(object),
            "Namespace" => self.namespaces.upsert(object),
            "PriorityClass" => self.priority_classes.upsert(object),
            "ElasticQuota" => self.quotas.upsert(object),
            "ElasticQuotaProfile" => self.quota_profiles.upsert(object),
            "Pod" => {
                self.pod_marks.upsert(object)?;
                self.pods.upsert(object)
            }
            _ => return Ok(()),
        }
        .map(drop)
    }
}

/// What each domain sees.
impl Ctx {
    /// What decisions about pods see.
    pub fn pods(&self) -> PodView<'_> {
        PodView {
            profiles: &self.profiles,
            namespaces: &self.namespaces,
            priority_classes: &self.priority_classes,
            quotas: &self.quotas,
            quota_profiles: &self.quota_profiles,
            required_labels: &self.required_labels,
            required_labels_name: &self.settings.required_labels,
            switches: &self.switches,
            warns: self.settings.admission_warnings,
        }
    }

    /// What decisions about quotas see.
    pub(crate) fn quotas(&self) -> QuotaView<'_> {
        QuotaView {
            quotas: &self.quotas,
            quota_profiles: &self.quota_profiles,
            pods: &self.pods,
            admitted: &self.admitted,
            clock: &self.clock,
            switches: &self.switches,
            warns: self.settings.admission_warnings,
            declared: self.settings.declared,
        }
    }

    /// What decisions about nodes see.
    pub(crate) fn nodes(&self) -> NodeView<'_> {
        NodeView { slo_config: &self.slo_config, name: &self.settings.slo_config }
    }

    /// What decisions about the configuration see.
    pub(crate) fn config(&self) -> ConfigView<'_> {
        ConfigView {
            nodes: &self.node_labels,
            name: &self.settings.slo_config,
            names_needed: self.settings.strategy_names_needed,
            warns: self.settings.admission_warnings,
        }
    }

    /// What decisions about Reservations see.
    pub(crate) fn reservations(&self) -> ReservationView<'_> {
        ReservationView {
            profiles: &self.profiles,
            priority_classes: &self.priority_classes,
            warns: self.settings.admission_warnings,
        }
    }

    /// What decisions about bindings see.
    pub(crate) fn bindings(&self) -> BindingView<'_> {
        BindingView {
            pods: &self.pod_marks,
            policy: &self.settings.bindings,
            enabled: self.switches.binding_admission,
            decisions: self.binding_decisions.as_ref(),
        }
    }
}

/// One object by its name.
fn only(object: &ObjectName) -> Selection {
    let fields = format!("metadata.name={}", object.name);
    Selection { namespace: object.namespace.clone(), fields, labels: String::new() }
}

fn binding_decisions(core: &Core) -> Option<IntCounterVec> {
    let counter = core.metrics().counter(metrics::BINDING_DECISIONS);
    counter.inspect_err(|error| tracing::warn!(%error, "decisions about bindings are not counted")).ok()
}

#[cfg(test)]
mod tests {
    use koord_runtime::{
        clock::ManualClock,
        events::{Event, EventSink},
        metrics::Metrics,
        random::Random,
    };

    use super::*;

    struct Nobody;

    impl EventSink for Nobody {
        fn record(&self, _: &'static str, _: Event) {}
    }

    fn watched(gates: &[&str]) -> Vec<&'static str> {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let mut core = Core::new("test", clock, Random::seeded(1), Metrics::new().unwrap(), Arc::new(Nobody));
        let ctx = Ctx::watch(&mut core, |gate| gates.contains(&gate), Settings::default());
        let mut watched: Vec<&str> = core.watches().iter().map(|watch| watch.kind.plural).collect();
        assert_eq!(ctx.synced(), watched.is_empty());
        watched.sort_unstable();
        watched
    }

    #[test]
    fn pods_that_belong_to_a_quota_by_their_namespace_are_watched_too() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let mut core = Core::new("test", clock, Random::seeded(1), Metrics::new().unwrap(), Arc::new(Nobody));
        Ctx::watch(&mut core, |gate| gate == "ElasticValidatingWebhook", Settings::default());
        let watches = core.watches();
        let pods = watches.iter().find(|watch| watch.kind.plural == "pods").unwrap();
        assert_eq!((&pods.selection, pods.metadata_only()), (&Selection::default(), true));
    }

    #[test]
    fn only_what_the_handlers_need_is_watched() {
        assert_eq!(watched(&[]), [""; 0]);
        let profiles = ["clustercolocationprofiles", "namespaces", "priorityclasses"];
        assert_eq!(watched(&["PodMutatingWebhook"]), profiles);
        assert_eq!(watched(&["PodValidatingWebhook"]), ["elasticquotas"], "no pods without the quota webhooks");
        assert_eq!(watched(&["ElasticValidatingWebhook"]), ["elasticquotas", "pods"]);
        assert_eq!(watched(&["ReservationMutatingWebhook"]), [profiles[0], profiles[2]]);
        let trees = watched(&["PodMutatingWebhook", "MultiQuotaTree"]);
        assert_eq!(trees, [profiles[0], "elasticquotaprofiles", "elasticquotas", profiles[1], profiles[2]]);
        assert_eq!(watched(&["NodeValidatingWebhook", "BindingAdmissionWebhook"]), ["configmaps", "pods"]);
    }
}
