//! All profiles, and one pass of them.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_scheduling::Selector;

use crate::{
    cluster::{Cluster, NodeId, PodId},
    extension_points::{Registration, StrategyError},
    history::CoolDown,
    judge::Judge,
    limits::{Evicted, Limits},
    objects::{DisruptionBudget, ObjectType as _},
    outlook::Planning,
    pass::{Evictor, Expected, Memory, Pass, Strategy, Tried, Verdict, VerdictScope, Work},
    step::{Eviction, Step},
    usage::Measured,
};

/// Plugins that work together.
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: Arc<str>,
    /// The nodes whose pods are descheduled, of those of the configuration; `None` for all of them.
    pub nodes: Option<Selector>,
    /// What becomes of evictions that are not worth it.
    pub planning: Planning,
    /// How long pods stay that have replaced evicted ones.
    pub cool_down: CoolDown,
    /// Strategies that look at each pod, in their order.
    deschedule: Vec<Registration>,
    /// Strategies that look at all nodes, in their order.
    balance: Vec<Registration>,
    filter: Vec<Registration>,
    evict: Registration,
}

/// Why plugins make no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A plugin in a set to which it does not belong.
    #[error("{plugin} is no plugin of the set {set}")]
    WrongSet { plugin: &'static str, set: &'static str },
    /// A plugin that is in a set twice.
    #[error("{plugin} is in the set {set} twice")]
    Twice { plugin: &'static str, set: &'static str },
    #[error("exactly one plugin can evict, and {found} are enabled")]
    Evictors { found: usize },
}

/// All profiles, and what limits them together.
#[derive(Clone, Debug)]
pub struct Descheduler {
    pub profiles: Vec<Profile>,
    /// The nodes whose pods are descheduled; `None` for all.
    pub nodes: Option<Selector>,
    pub limits: Limits,
}

/// What a pass is about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub cluster: &'a Cluster,
    /// What strategies have kept of the last pass that was carried out.
    pub memory: &'a Memory,
    /// Whether the first steps of the pass succeeded.
    pub results: &'a [bool],
    /// What is taken for the results of the others.
    pub expected: Expected<'a>,
    /// Pods whose eviction failed not long ago. They are not tried.
    pub held: &'a [PodId],
    /// Whose verdicts are kept.
    pub verdicts_of: VerdictScope<'a>,
    /// When the pass began.
    pub now: Timestamp,
    /// Measures how long strategies take, where that is wanted.
    pub stopwatch: Option<Stopwatch<'a>>,
}

/// The time since some moment: the framework has no clock of its own.
#[derive(Clone, Copy)]
pub struct Stopwatch<'a>(pub &'a dyn Fn() -> Duration);

impl fmt::Debug for Stopwatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopwatch")
    }
}

impl<'a> Input<'a> {
    /// A pass of which nothing has been carried out.
    pub fn new(cluster: &'a Cluster, memory: &'a Memory, now: Timestamp) -> Self {
        let (expected, verdicts_of) = (Expected::Success, VerdictScope::Nothing);
        Self { cluster, memory, results: &[], expected, held: &[], verdicts_of, now, stopwatch: None }
    }
}

/// What a pass comes to.
#[derive(Debug, Default)]
pub struct Plan {
    /// What is to be done, in this order.
    pub steps: Vec<Step>,
    /// Evictions that are not worth it, of profiles in which such pods stay.
    pub spared: Vec<Eviction>,
    /// Whether each step was taken to succeed: by its result, or by what was expected.
    pub assumed: Vec<bool>,
    /// What strategies keep, if the pass is carried out.
    pub memory: Memory,
    /// Strategies that could not do their work, with their profiles.
    pub errors: Vec<(Arc<str>, &'static str, StrategyError)>,
    /// Why nothing was looked at; `None` where it was.
    pub skipped: Option<Skipped>,
    /// Why pods stay, as far as was asked.
    pub verdicts: Vec<Verdict>,
    /// How long each strategy took, with its profile, where that was wanted.
    pub strategy_times: Vec<(Arc<str>, &'static str, Duration)>,
}

/// Why a pass does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Skipped {
    /// A pod that is evicted could only come back.
    #[error("only {0} nodes are ready and selected; with fewer than 2 nothing is descheduled")]
    TooFewNodes(usize),
}

// === impl Profile ===

impl Profile {
    /// A profile of these plugins, by the sets of the configuration.
    ///
    /// # Errors
    ///
    /// A plugin is in a set to which it does not belong, or twice in one, or not exactly one evicts.
    pub fn new(
        name: impl Into<Arc<str>>,
        nodes: Option<Selector>,
        sets: [Vec<Registration>; 4],
    ) -> Result<Self, ProfileError> {
        let [deschedule, balance, filter, mut evict] = sets;
        let check = |set: &'static str, plugins: &[Registration], implements: fn(&Registration) -> bool| {
            for (index, plugin) in plugins.iter().enumerate() {
                if !implements(plugin) {
                    return Err(ProfileError::WrongSet { plugin: plugin.name, set });
                }
                if plugins.iter().take(index).any(|earlier| earlier.name == plugin.name) {
                    return Err(ProfileError::Twice { plugin: plugin.name, set });
                }
            }
            Ok(())
        };
        check("deschedule", &deschedule, |plugin| plugin.deschedule.is_some())?;
        check("balance", &balance, |plugin| plugin.balance.is_some())?;
        check("filter", &filter, |plugin| plugin.filter.is_some())?;
        check("evict", &evict, |plugin| plugin.evict.is_some())?;
        let found = evict.len();
        let evict = evict.pop().filter(|_| found == 1).ok_or(ProfileError::Evictors { found })?;
        Ok(Self {
            name: name.into(),
            nodes,
            planning: Planning::Off,
            cool_down: CoolDown::default(),
            deschedule,
            balance,
            filter,
            evict,
        })
    }

    fn plugins(&self) -> impl Iterator<Item = &Registration> {
        self.deschedule.iter().chain(&self.balance).chain(&self.filter).chain([&self.evict])
    }

    fn prepare<'a>(&'a self, cluster: &'a Cluster, now: Timestamp) -> Option<Evictor<'a>> {
        let filters = self.filter.iter().filter_map(|plugin| plugin.filter.as_ref());
        let pre = self.filter.iter().filter_map(|plugin| plugin.pre_eviction_filter.as_ref());
        Some(Evictor {
            filters: filters.map(|filter| filter.prepare_filter(cluster, now)).collect(),
            pre_eviction_filters: pre.map(|filter| filter.prepare_pre_eviction_filter(cluster, now)).collect(),
            evict: self.evict.evict.as_ref()?.prepare_evict(cluster, now),
        })
    }
}

// === impl Descheduler ===

impl Descheduler {
    /// The kinds beside nodes and pods that its plugins read, each once.
    pub fn reads(&self) -> Vec<ResourceKind> {
        let mut kinds: Vec<ResourceKind> =
            self.profiles.iter().flat_map(Profile::plugins).flat_map(|plugin| plugin.reads).copied().collect();
        if self.is_planning() {
            kinds.push(DisruptionBudget::KIND);
        }
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// The same with those of its strategies alone that have these names.
    #[must_use]
    pub fn with_strategies(&self, names: &BTreeSet<&str>) -> Self {
        let mut descheduler = self.clone();
        for profile in &mut descheduler.profiles {
            for strategies in [&mut profile.deschedule, &mut profile.balance] {
                strategies.retain(|strategy| names.contains(strategy.name));
            }
        }
        descheduler
    }

    /// Whether any profile wants to know what its evictions lead to.
    pub fn is_planning(&self) -> bool {
        self.profiles.iter().any(|profile| profile.planning != Planning::Off)
    }

    /// Its strategies that go by measured usage.
    pub fn measured(&self) -> impl Iterator<Item = &Arc<dyn Measured>> {
        let measured = self.profiles.iter().flat_map(Profile::plugins).filter_map(|plugin| plugin.measured.as_ref());
        measured.filter(|strategy| strategy.usage_query().is_some())
    }

    /// One pass: first the strategies of all profiles that look at each pod, then those that look at all nodes. What its evictions lead to is not
    /// foreseen.
    pub fn pass(&self, input: &Input<'_>) -> Plan {
        self.pass_with(input, None)
    }

    /// One pass, whose evictions are foreseen by a judge, one after the other.
    pub fn foreseen_pass(&self, input: &Input<'_>, judge: Box<dyn Judge + '_>) -> Plan {
        self.pass_with(input, Some(judge))
    }

    fn pass_with(&self, input: &Input<'_>, judge: Option<Box<dyn Judge + '_>>) -> Plan {
        let Input { cluster, memory, results, expected, held, verdicts_of, now, stopwatch } = *input;
        let nodes = ready_nodes(cluster, self.nodes.as_ref());
        if nodes.len() < 2 {
            let skipped = Some(Skipped::TooFewNodes(nodes.len()));
            return Plan { memory: memory.clone(), skipped, ..Plan::default() };
        }
        let evictors = self.profiles.iter().filter_map(|profile| profile.prepare(cluster, now)).collect();
        let of_profiles: Vec<Vec<NodeId>> =
            self.profiles.iter().map(|profile| selected(cluster, &nodes, profile.nodes.as_ref())).collect();
        let mut work = Work {
            limits: self.limits,
            evictors,
            steps: Vec::new(),
            spared: Vec::new(),
            judge,
            assumed: Vec::new(),
            results,
            expected,
            evicted: Evicted::default(),
            tried: tried(cluster, held),
            memory: memory.clone(),
            verdicts_of,
            verdicts: Vec::new(),
        };
        let (mut errors, mut strategy_times) = (Vec::new(), Vec::new());
        for phase in [Phase::Deschedule, Phase::Balance] {
            for (profile_index, (profile, nodes)) in self.profiles.iter().zip(&of_profiles).enumerate() {
                for plugin in phase.plugins(profile) {
                    let (plugin_name, planning) = (plugin.name, profile.planning);
                    let strategy =
                        Strategy { plugin: plugin_name, profile: &profile.name, profile_index, nodes, planning };
                    let began = stopwatch.map(|stopwatch| stopwatch.0());
                    let mut pass = Pass::new(cluster, now, strategy, work);
                    if let Err(error) = phase.run(plugin, &mut pass) {
                        errors.push((Arc::clone(&profile.name), plugin.name, error));
                    }
                    work = pass.into_work();
                    if let (Some(stopwatch), Some(began)) = (stopwatch, began) {
                        let took = stopwatch.0().saturating_sub(began);
                        strategy_times.push((Arc::clone(&profile.name), plugin.name, took));
                    }
                }
            }
        }
        let Work { steps, spared, assumed, memory, verdicts, .. } = work;
        Plan { steps, spared, assumed, memory, errors, skipped: None, verdicts, strategy_times }
    }
}

/// What has become of each pod before the pass begins.
fn tried(cluster: &Cluster, held: &[PodId]) -> Vec<Tried> {
    let mut tried = vec![Tried::default(); cluster.pods_max()];
    for pod in held {
        if let Some(tried) = tried.get_mut(pod.index()) {
            *tried = Tried::Failed;
        }
    }
    tried
}

/// What the strategies of all profiles do before others begin.
#[derive(Clone, Copy)]
enum Phase {
    Deschedule,
    Balance,
}

impl Phase {
    fn plugins(self, profile: &Profile) -> &[Registration] {
        match self {
            Self::Deschedule => &profile.deschedule,
            Self::Balance => &profile.balance,
        }
    }

    fn run(self, plugin: &Registration, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        match self {
            Self::Deschedule => plugin.deschedule.iter().try_for_each(|strategy| strategy.deschedule(pass)),
            Self::Balance => plugin.balance.iter().try_for_each(|strategy| strategy.balance(pass)),
        }
    }
}

/// The nodes that are ready and selected, by name.
fn ready_nodes(cluster: &Cluster, selector: Option<&Selector>) -> Vec<NodeId> {
    let ready: Vec<NodeId> = cluster.nodes().filter(|(_, node)| node.is_ready).map(|(id, _)| id).collect();
    selected(cluster, &ready, selector)
}

fn selected(cluster: &Cluster, nodes: &[NodeId], selector: Option<&Selector>) -> Vec<NodeId> {
    let Some(selector) = selector else { return nodes.to_vec() };
    let selects = |id: &NodeId| cluster.node(*id).is_some_and(|node| selector.selects(|key| node.label(key)));
    nodes.iter().copied().filter(selects).collect()
}
