//! Every plugin by its name, and the profiles of a configuration that are built of them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use koord_config::scheduler::{ElasticQuotaArgs, Point, Resolved, SchedulerConfiguration};
use koord_resource::{controller::ResourceKind, rbac::RbacRule};
use koord_scheduler_framework::{FeatureGates, Plugin, Profile, Registration, extender::Extender};
use koord_scheduler_plugins_koordinator::{
    Coscheduling, DeviceShare, NodeNumaResource, NodeResourcesFitPlus, Reservation, ScarceResourceAvoidance,
    SchedulingHint,
    elastic_quota::{ElasticQuotaPlugin, HookError, HookFactories},
    load_aware::LoadAwareScheduling,
};
use koord_scheduler_plugins_kubernetes::{
    BalancedAllocation, DefaultPreemption, DynamicResources, Extenders, ImageLocality, InterPodAffinity, NodeAffinity,
    NodePorts, NodeRejections, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits, PodTopologySpread,
    SchedulingGates, TaintToleration, VolumeBinding, VolumeRestrictions, VolumeZone,
};

use self::Entry::{Built, InEngine, NotBuilt};

/// What plugins are made with, beside their arguments.
#[derive(Clone, Copy)]
pub struct Dependencies<'d> {
    /// Whether a feature gate is on.
    pub gates: FeatureGates<'d>,
    /// The hooks of quotas that the program has.
    pub hooks: &'d HookFactories,
}

type Make = fn(&Resolved, Dependencies<'_>) -> Result<Arc<dyn Plugin>, ArgsError>;

/// How the scheduler implements a plugin.
enum Entry {
    /// As a plugin of its own, made from the arguments of a profile.
    Built(Make),
    /// As a part of the engine.
    InEngine,
    /// Not at all: a profile without it works, and only chooses otherwise.
    NotBuilt,
}

/// Every plugin that a configuration may name.
const REGISTRY: &[(&str, Entry)] = &[
    ("SchedulingGates", Built(|_, _| Ok(Arc::new(SchedulingGates)))),
    ("PrioritySort", InEngine),
    ("NodeUnschedulable", Built(|_, _| Ok(Arc::new(NodeUnschedulable)))),
    // Pods that name their node are never given to the scheduler.
    ("NodeName", InEngine),
    ("TaintToleration", Built(|_, _| Ok(Arc::new(TaintToleration)))),
    ("NodeAffinity", Built(|profile, _| Ok(Arc::new(NodeAffinity::new(profile.args()?)?)))),
    ("NodePorts", Built(|_, _| Ok(Arc::new(NodePorts)))),
    ("NodeResourcesFit", Built(|profile, _| Ok(Arc::new(NodeResourcesFit::new(profile.args()?))))),
    ("VolumeRestrictions", Built(|_, _| Ok(Arc::new(VolumeRestrictions)))),
    ("NodeVolumeLimits", Built(|_, _| Ok(Arc::new(NodeVolumeLimits)))),
    ("VolumeBinding", Built(|profile, _| Ok(Arc::new(VolumeBinding::new(&profile.args()?))))),
    ("VolumeZone", Built(|_, _| Ok(Arc::new(VolumeZone)))),
    ("PodTopologySpread", Built(|profile, _| Ok(Arc::new(PodTopologySpread::new(&profile.args()?))))),
    ("InterPodAffinity", Built(|profile, _| Ok(Arc::new(InterPodAffinity::new(&profile.args()?))))),
    ("DynamicResources", Built(|_, with| Ok(Arc::new(DynamicResources::new(with.gates))))),
    ("DefaultPreemption", Built(|profile, _| Ok(Arc::new(DefaultPreemption::new(&profile.args()?))))),
    ("NodeResourcesBalancedAllocation", Built(|profile, _| Ok(Arc::new(BalancedAllocation::new(profile.args()?))))),
    ("ImageLocality", Built(|_, _| Ok(Arc::new(ImageLocality)))),
    ("DefaultBinder", InEngine),
    ("GangScheduling", NotBuilt),
    ("NodeDeclaredFeatures", NotBuilt),
    ("LoadAwareScheduling", Built(|profile, _| Ok(Arc::new(LoadAwareScheduling::new(&profile.args()?))))),
    ("NodeNUMAResource", Built(|profile, _| Ok(Arc::new(NodeNumaResource::new(profile.args()?))))),
    ("Reservation", Built(|profile, with| Ok(Arc::new(Reservation::new(&profile.args()?, with.gates))))),
    (
        "Coscheduling",
        Built(|profile, with| {
            let in_batches = (with.gates)("EnableInlineBatchSchedule");
            Ok(Arc::new(Coscheduling::new(&profile.args()?).in_batches(in_batches)))
        }),
    ),
    ("DeviceShare", Built(|profile, with| Ok(Arc::new(DeviceShare::with_gates(&profile.args()?, with.gates))))),
    (
        "ElasticQuota",
        Built(|profile, with| {
            let args: ElasticQuotaArgs = profile.args()?;
            let hooks = args.hook_plugins.iter().map(|hook| with.hooks.hook(hook));
            let hooks = hooks.collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(ElasticQuotaPlugin::new(&args, with.gates).with_hooks(hooks)))
        }),
    ),
    ("DefaultPreBind", InEngine),
    ("NodeResourcesFitPlus", Built(|profile, _| Ok(Arc::new(NodeResourcesFitPlus::from(&profile.args()?))))),
    ("ScarceResourceAvoidance", Built(|profile, _| Ok(Arc::new(ScarceResourceAvoidance::from(&profile.args()?))))),
    ("SchedulingHint", Built(|profile, _| Ok(Arc::new(SchedulingHint::new(&profile.args()?))))),
];

/// A profile, and the plugins of its configuration that are not implemented.
pub struct BuiltProfile {
    pub profile: Profile,
    /// Plugins that the configuration names and that are not implemented.
    pub idle: Vec<Idle>,
}

/// A plugin that a configuration names and that is not implemented. Its text is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    pub plugin: &'static str,
}

impl BuiltProfile {
    /// The same, with webhooks that take part in scheduling: they come after all plugins.
    #[must_use]
    pub fn extended_by(mut self, extenders: &Arc<[Extender]>) -> Self {
        let Profile { plugins, admits, filters, scores, .. } = &mut self.profile;
        if let Some(index) = u8::try_from(plugins.len()).ok().filter(|_| !extenders.is_empty()) {
            plugins.push(Arc::new(Extenders::new(Arc::clone(extenders))).register());
            admits.push(index);
            filters.push(index);
            scores.push((index, 1));
        }
        self
    }

    /// The same, where only so many percent of the nodes are compared that take a pod; 0 compares all.
    #[must_use]
    pub fn sampling(mut self, percent: i32) -> Self {
        self.profile.sampled_percent = u8::try_from(percent).ok().filter(|percent| *percent > 0);
        self
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin {} is not implemented and has no effect", self.plugin)
    }
}

/// Why a profile cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A name that no plugin has.
    #[error("there is no plugin {0:?}")]
    Unknown(String),
    /// Arguments that are no arguments of the plugin.
    #[error("the arguments of plugin {plugin} cannot be used: {reason}")]
    Args {
        plugin: &'static str,
        /// What is wrong with them.
        reason: ArgsError,
    },
}

/// What is wrong with arguments.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// They are not what the plugin reads.
    #[error(transparent)]
    Decode(#[from] serde_json::Error),
    /// A hook of quotas that they name cannot be made.
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// The profile of these plugins under these feature gates, in their order and with their weights.
pub fn build(resolved: &Resolved, gates: FeatureGates<'_>) -> Result<BuiltProfile, ProfileError> {
    build_with(resolved, Dependencies { gates, hooks: &HookFactories::new() })
}

/// The same with all that a program adds.
pub fn build_with(resolved: &Resolved, with: Dependencies<'_>) -> Result<BuiltProfile, ProfileError> {
    let (mut plugins, mut idle) = (Vec::<Registration>::new(), Vec::new());
    for name in resolved.plugins() {
        let known = REGISTRY.iter().find(|(known, _)| *known == name);
        match known.ok_or_else(|| ProfileError::Unknown(name.to_owned()))? {
            (plugin, Built(make)) => {
                let made = make(resolved, with).map_err(|reason| ProfileError::Args { plugin, reason })?;
                plugins.push(made.register());
            }
            (_, InEngine) => {}
            (plugin, NotBuilt) => idle.push(Idle { plugin }),
        }
    }
    // No configuration names it.
    plugins.push(Arc::new(NodeRejections).register());
    let index = |name: &str| (0_u8..).zip(&plugins).find(|(_, plugin)| plugin.name() == name).map(|(index, _)| index);
    let indexes = |names: &[&str]| -> Vec<u8> { names.iter().filter_map(|name| index(name)).collect() };
    let scores = resolved.at(Point::Score).iter();
    let at = |point| -> Vec<u8> { resolved.at(point).iter().filter_map(|name| index(name)).collect() };
    let is_of = |at: u8, names: &[&str]| plugins.get(usize::from(at)).is_some_and(|one| names.contains(&one.name()));
    // Which reservation a pod uses is decided before it is given anything else.
    let mut reserves = at(Point::Reserve);
    reserves.sort_by_key(|at| !is_of(*at, &["Reservation"]));
    let profile = Profile {
        scheduler: (&*resolved.scheduler_name).into(),
        admits: at(Point::PreFilter),
        filters: indexes(&filters(resolved)).into_iter().chain(index(Plugin::name(&NodeRejections))).collect(),
        scores: scores.filter_map(|name| Some((index(name)?, resolved.weight(name)))).collect(),
        post_filters: at(Point::PostFilter),
        reserves,
        permits: at(Point::Permit),
        pre_binds: at(Point::PreBind),
        sampled_percent: None,
        plugins,
    };
    Ok(BuiltProfile { profile, idle })
}

/// What refuses nodes, in the order in which it is asked: the nodes that plugins with PreFilter alone have left are all that
/// others see. A plugin that is disabled as a filter refuses none.
fn filters(resolved: &Resolved) -> Vec<&str> {
    let filter_plugins = resolved.at(Point::Filter);
    let alone = resolved.at(Point::PreFilter).iter().filter(|name| !Point::of(name).contains(&Point::Filter));
    alone.chain(filter_plugins).map(String::as_str).collect()
}

/// The profile of kube-scheduler under this scheduler name, as far as its plugins are built, with no gate on.
pub fn default_profile(scheduler: &str) -> Result<Profile, ProfileError> {
    let mut profile = SchedulerConfiguration::without_document().profiles.swap_remove(0);
    scheduler.clone_into(&mut profile.scheduler_name);
    build(&profile.resolved(), &|_| false).map(|built| built.profile)
}

/// The kinds of objects beside nodes and pods that some plugin reads.
pub fn reads() -> BTreeSet<ResourceKind> {
    let profiles = SchedulerConfiguration::without_document().profiles;
    let Some(profile) = profiles.first().map(koord_config::scheduler::Profile::resolved) else {
        return BTreeSet::new();
    };
    let plugins = REGISTRY.iter().filter_map(|(_, entry)| match entry {
        Built(make) => make(&profile, Dependencies { gates: &|_| false, hooks: &HookFactories::new() }).ok(),
        InEngine | NotBuilt => None,
    });
    plugins.flat_map(|plugin| plugin.register().reads).copied().collect()
}

/// The only ConfigMap that plugins read.
const CONFIG_MAPS: &[&str] = &["gpu-shared-resource-templates"];

/// What an engine may read whose further plugins read these kinds.
pub fn read_rules(further: &[ResourceKind]) -> Vec<RbacRule> {
    let kinds = reads().into_iter().chain([ResourceKind::POD, ResourceKind::NODE]);
    let kinds: BTreeSet<ResourceKind> = kinds.chain(further.iter().copied()).collect();
    let rule = |kind: ResourceKind| {
        let names = if kind == ResourceKind::CONFIG_MAP { CONFIG_MAPS } else { &[] };
        RbacRule { names, ..kind.rule(&["list", "watch"]) }
    };
    kinds.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use koord_config::Kind;
    use koord_scheduler_framework::{
        AttemptState, Code, Request,
        cluster::Cluster,
        pod::{Pod, Template},
    };
    use koord_scheduler_plugins_koordinator::elastic_quota::QuotaHook;
    use serde_json::{Value, json};

    use super::*;

    fn built(profile: &Value) -> Result<BuiltProfile, ProfileError> {
        let document = json!({
            "apiVersion": Kind::Scheduler.api_version(), "kind": Kind::Scheduler.name(), "profiles": [profile],
        });
        assert_eq!(Kind::Scheduler.check(&document), []);
        build(&SchedulerConfiguration::of(&document).unwrap().profiles[0].resolved(), &|_| false)
    }

    fn names(profile: &Profile, indexes: impl Iterator<Item = u8>) -> String {
        let names: Vec<&str> = indexes.map(|index| profile.plugins[usize::from(index)].name()).collect();
        names.join(" ")
    }

    #[test]
    fn every_plugin_of_the_configuration_is_known_and_has_its_own_name() {
        let known: Vec<&str> = REGISTRY.iter().map(|(name, _)| *name).collect();
        let profile = SchedulerConfiguration::without_document().profiles[0].resolved();
        assert!(known.len() < usize::from(koord_scheduler_framework::PluginSet::PLUGINS_MAX));
        assert_eq!(known.iter().filter(|name| Point::of(name).is_empty()).count(), 0);
        for (name, entry) in REGISTRY {
            if let Built(make) = entry {
                let with = Dependencies { gates: &|_| false, hooks: &HookFactories::new() };
                assert_eq!(make(&profile, with).unwrap().name(), *name);
            }
        }
    }

    #[test]
    fn the_profile_of_kubernetes_has_its_order_and_its_weights() {
        let profile = default_profile("some-name").unwrap();
        assert_eq!(&*profile.scheduler, "some-name");
        assert_eq!(
            names(&profile, profile.filters.iter().copied()),
            "NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions \
             NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeRejections"
        );
        let weights: Vec<i64> = profile.scores.iter().map(|(_, weight)| *weight).collect();
        assert_eq!(
            (names(&profile, profile.scores.iter().map(|(index, _)| *index)), weights),
            (
                "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity \
                 DynamicResources NodeResourcesBalancedAllocation ImageLocality"
                    .to_owned(),
                vec![3, 2, 1, 1, 2, 2, 2, 1, 1]
            )
        );
    }

    #[test]
    fn what_a_pod_says_wrong_is_found_before_pre_filter_in_the_order_of_its_plugins() {
        let first = |listed: [&str; 2]| {
            let listed: Vec<Value> = listed.iter().map(|name| json!({"name": name})).collect();
            let profile = built(&json!({"plugins": {"preFilter": {"enabled": listed}}})).unwrap().profile;
            let pod = koord_scheduler_testing::pod("p", &json!({"affinity": {"nodeAffinity": conflicting()}}));
            let annotations = [
                ("scheduling.koordinator.sh/reservation-affinity", "{"),
                ("internal.scheduling.koordinator.sh/scheduling-hint", "{"),
            ];
            let annotations = annotations.into_iter().collect();
            let template = Template { annotations, ..Template::clone(&pod.template) };
            let pod = Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) });
            let mut cluster = Cluster::default();
            let class = cluster.class(&pod.template);
            let request =
                Request { pod: &pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
            let (plugin, rejection) = profile.admit(&request, &cluster).unwrap();
            (profile.plugins[usize::from(plugin)].name(), rejection.code)
        };
        assert_eq!(first(["Reservation", "SchedulingHint"]), ("Reservation", Code::Error));
        assert_eq!(first(["SchedulingHint", "Reservation"]), ("SchedulingHint", Code::Error));
        assert_eq!(first(["ElasticQuota", "NodeNUMAResource"]), ("NodeAffinity", Code::Unresolvable));
    }

    /// Node affinity that leaves no node, which NodeAffinity finds in PreFilter.
    fn conflicting() -> Value {
        let name = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let terms = json!([{"matchFields": [name("a"), name("b")]}]);
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
    }

    #[test]
    fn what_plugins_have_given_is_written_though_default_pre_bind_is_disabled() {
        let pre_binds = |disabled: &Value| {
            let points = json!({"disabled": disabled, "enabled": [{"name": "NodeNUMAResource"}]});
            let profile = built(&json!({"plugins": {"preBind": points}})).unwrap().profile;
            names(&profile, profile.pre_binds.iter().copied())
        };
        let all = "VolumeBinding DynamicResources NodeNUMAResource";
        assert_eq!(pre_binds(&json!([])), all);
        assert_eq!(pre_binds(&json!([{"name": "DefaultPreBind"}])), all);
        assert_eq!(pre_binds(&json!([{"name": "*"}])), "NodeNUMAResource");
    }

    #[test]
    fn what_is_not_built_is_idle_in_profiles_that_name_it_alone() {
        let idle = |profile: &Value| {
            let built = built(profile).unwrap();
            built.idle.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(idle(&json!({})), [""; 0]);
        let features = "plugin NodeDeclaredFeatures is not implemented and has no effect".to_owned();
        let with_features = json!({"plugins": {"multiPoint": {"enabled": [{"name": "NodeDeclaredFeatures"}]}}});
        assert!(idle(&with_features).contains(&features));
    }

    #[test]
    fn a_plugin_that_is_disabled_as_a_filter_alone_refuses_no_node() {
        let disabled = json!({"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}});
        let profile = built(&disabled).unwrap().profile;
        let filters = names(&profile, profile.filters.iter().copied());
        assert!(!filters.contains("NodeResourcesFit") && filters.contains("NodePorts"), "{filters}");
        assert!(names(&profile, profile.scores.iter().map(|(index, _)| *index)).contains("NodeResourcesFit"));
    }

    #[test]
    fn arguments_reach_their_plugins() {
        let profile = |plugin: &str, args: &Value| built(&json!({"pluginConfig": [{"name": plugin, "args": args}]}));
        let keys = |profile: &Profile| -> Vec<String> {
            profile.plugins.iter().flat_map(|plugin| &plugin.topology_keys).map(ToString::to_string).collect()
        };
        let rack = json!({"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"});
        let listed =
            profile("PodTopologySpread", &json!({"defaultingType": "List", "defaultConstraints": [rack]})).unwrap();
        assert_eq!(keys(&listed.profile), ["rack"]);
        let system = keys(&profile("PodTopologySpread", &json!({})).unwrap().profile);
        assert_eq!(system, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
        let added = json!({"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "no terms"}});
        assert!(matches!(profile("NodeAffinity", &added), Err(ProfileError::Args { plugin: "NodeAffinity", .. })));
    }

    #[test]
    fn hooks_of_quotas_are_made_by_the_factories_of_the_program() {
        struct Audit;
        impl QuotaHook for Audit {
            fn copy(&self) -> Box<dyn QuotaHook> {
                Box::new(Self)
            }
        }
        let points = json!({"preFilter": {"enabled": [{"name": "ElasticQuota"}]}});
        let args = json!({"hookPlugins": [{"key": "audit", "factoryKey": "auditors", "factoryArgs": "strict"}]});
        let profile = json!({"plugins": points, "pluginConfig": [{"name": "ElasticQuota", "args": args}]});
        let message = "the arguments of plugin ElasticQuota cannot be used: there is no factory \"auditors\" of hook \
                       plugins; this scheduler has none";
        assert_eq!(built(&profile).err().map(|error| error.to_string()).as_deref(), Some(message));
        let document = json!({
            "apiVersion": Kind::Scheduler.api_version(), "kind": Kind::Scheduler.name(), "profiles": [profile],
        });
        let resolved = SchedulerConfiguration::of(&document).unwrap().profiles[0].resolved();
        let mut hooks = HookFactories::new();
        hooks.register("auditors", |key, args| match (key, args.as_str()) {
            ("audit", Some("strict")) => Ok(Box::new(Audit)),
            other => Err(format!("{other:?}").into()),
        });
        let built = build_with(&resolved, Dependencies { gates: &|_| false, hooks: &hooks }).unwrap();
        assert!(built.profile.plugins.iter().any(|plugin| plugin.name() == "ElasticQuota"));
    }

    #[test]
    fn only_the_config_map_that_is_configured_is_read() {
        let points = json!({"filter": {"enabled": [{"name": "DeviceShare"}]}});
        let read = |args: &Value| {
            let profile = json!({"plugins": points, "pluginConfig": [{"name": "DeviceShare", "args": args}]});
            let plugins = built(&profile).unwrap().profile.plugins;
            plugins.into_iter().flat_map(|plugin| plugin.reads_only).collect::<Vec<_>>()
        };
        let named = |name: &str| vec![(ResourceKind::CONFIG_MAP, name.to_owned())];
        assert_eq!(read(&json!({})), named("gpu-shared-resource-templates"));
        assert_eq!(read(&json!({"gpuSharedResourceTemplatesConfig": {"configMapName": "other"}})), named("other"));
    }
}
