//! The measured cluster as the program has it: objects go as lines of an API server through the caches into the snapshot.
#![allow(dead_code)]

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_configuration::Source;
use koord_descheduler_assembly::{Built, Configuration, build};
use koord_descheduler_framework::{Cluster, Descheduler, Input, Memory, Plan, Stopwatch, VerdictScope};
use koord_descheduler_runtime::Feed;
use koord_descheduler_testing::{MeasuredCluster, REPORTED};
use koord_resource::controller::ResourceKind;
use koord_runtime::{Core, clock::SystemClock, events::NoopSink, metrics::Metrics, random::Random, store::Sink};
use serde_json::{Value, json};

/// Changes are handed over after so many objects, as the program does it while lists come in.
const TURN: usize = 512;

/// A descheduler and what it sees.
pub(crate) struct Filled {
    pub(crate) descheduler: Descheduler,
    pub(crate) cluster: Cluster,
    /// The caches, which hold what the snapshot shares.
    _core: Core,
    _feed: Feed,
}

/// Plugins of one profile: strategies with their arguments.
pub(crate) struct Strategies<'a> {
    pub(crate) balance: &'a [&'a str],
    pub(crate) deschedule: &'a [&'a str],
    /// Above which share of its CPU a node is relieved by LowNodeLoad.
    pub(crate) high_percent: u32,
    /// How many pods are evicted at most.
    pub(crate) total: Option<u32>,
    /// The plugin that filters and evicts.
    pub(crate) evictor: &'a str,
}

/// LowNodeLoad and four strategies of kubernetes-sigs/descheduler.
pub(crate) const FIVE: Strategies<'static> = Strategies {
    balance: &["LowNodeLoad", "RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint"],
    deschedule: &["RemovePodsViolatingNodeTaints", "RemovePodsViolatingInterPodAntiAffinity"],
    ..LOW_NODE_LOAD
};
/// Alone, with node fit, as the original was measured.
pub(crate) const LOW_NODE_LOAD: Strategies<'static> = Strategies {
    balance: &["LowNodeLoad"],
    deschedule: &[],
    high_percent: 75,
    total: None,
    evictor: "MigrationController",
};
/// Alone.
pub(crate) const SPREAD: Strategies<'static> =
    Strategies { balance: &["RemovePodsViolatingTopologySpreadConstraint"], ..LOW_NODE_LOAD };

impl Strategies<'_> {
    /// As a configuration has them.
    pub(crate) fn built(&self) -> Built {
        let excluded = json!({"exclude": ["kube-system", "koordinator-system"]});
        let arguments = |plugin: &str| match plugin {
            "LowNodeLoad" => json!({
                "evictableNamespaces": excluded, "nodeMetricExpirationSeconds": 86400,
                "anomalyCondition": {"consecutiveAbnormalities": 1},
                "lowThresholds": {"cpu": 45, "memory": 55}, "highThresholds": {"cpu": self.high_percent, "memory": 80},
            }),
            "RemovePodsViolatingTopologySpreadConstraint" => json!({"constraints": ["DoNotSchedule"]}),
            "MigrationController" => json!({"evictionPolicy": "Eviction", "namespaces": excluded}),
            _ => json!({}),
        };
        let set = |plugins: &[&str]| {
            let enabled: Vec<Value> = plugins.iter().map(|name| json!({"name": name})).collect();
            json!({"disabled": [{"name": "*"}], "enabled": enabled})
        };
        let evictor = [self.evictor];
        let plugins = self.balance.iter().chain(self.deschedule).chain(&evictor);
        let configured: Vec<Value> = plugins.map(|plugin| json!({"name": plugin, "args": arguments(plugin)})).collect();
        let document = json!({
            "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration",
            "leaderElection": {"leaderElect": false}, "maxNoOfPodsToEvictTotal": self.total,
            "profiles": [{
                "name": "koord-descheduler", "planning": "off", "pluginConfig": configured,
                "plugins": {
                    "balance": set(self.balance), "deschedule": set(self.deschedule), "filter": set(&evictor),
                    "evict": set(&evictor),
                },
            }],
        });
        let configuration = Configuration::of_document(&document, &Source::new("bench", "")).unwrap();
        build(&configuration.values).unwrap()
    }
}

impl Filled {
    /// The cluster as these strategies see it, and how long it took, by a clock, to bring its objects into the snapshot. Making them is not counted.
    pub(crate) fn of(of: MeasuredCluster, strategies: &Strategies<'_>, clock: fn() -> Duration) -> (Self, Duration) {
        let Built { descheduler, .. } = strategies.built();
        let (clock_of_core, events) = (SystemClock::shared(), Arc::new(NoopSink));
        let mut core = Core::new("bench", clock_of_core, Random::seeded(1), Metrics::new().unwrap(), events);
        let mut feed = Feed::of(&mut core, &descheduler.reads());
        let sinks: Vec<(ResourceKind, Arc<dyn Sink>)> =
            core.watches().iter().map(|watch| (watch.kind, Arc::clone(&watch.sink))).collect();
        let mut cluster = Cluster::default();
        let mut busy = Duration::ZERO;
        let mut timed = |act: &mut dyn FnMut()| {
            let start = clock();
            act();
            busy += clock().saturating_sub(start);
        };
        timed(&mut || sinks.iter().for_each(|(_, sink)| sink.begin_list(true)));
        let mut lines: Vec<(usize, String)> = Vec::with_capacity(TURN);
        let mut objects = of.objects().peekable();
        while objects.peek().is_some() {
            lines.clear();
            // Kinds that no plugin reads are not watched.
            lines.extend(objects.by_ref().take(TURN).filter_map(|object| {
                let place = sinks.iter().position(|(kind, _)| object["kind"] == kind.kind)?;
                Some((place, object.to_string()))
            }));
            timed(&mut || {
                for (place, line) in &lines {
                    sinks[*place].1.upsert(line).unwrap();
                }
                feed.fill(&mut cluster);
            });
        }
        timed(&mut || {
            for (_, sink) in &sinks {
                sink.end_list();
            }
            feed.fill(&mut cluster);
        });
        assert_eq!((cluster.nodes().count(), cluster.pods().count()), (of.nodes, of.pods()));
        (Self { descheduler, cluster, _core: core, _feed: feed }, busy)
    }

    /// The same cluster with other strategies, which read no kind that those before did not.
    pub(crate) fn with(self, strategies: &Strategies<'_>) -> Self {
        Self { descheduler: strategies.built().descheduler, ..self }
    }

    /// One pass over it, shortly after NodeMetrics were reported.
    pub(crate) fn pass(&self) -> Plan {
        self.pass_of(&self.input(&Memory::default()))
    }

    /// One pass, which says how long each strategy took.
    pub(crate) fn timed_pass(&self, stopwatch: Stopwatch<'_>) -> Plan {
        self.pass_of(&Input { stopwatch: Some(stopwatch), ..self.input(&Memory::default()) })
    }

    /// One pass, which says why pods stay.
    pub(crate) fn pass_for(&self, verdicts_of: VerdictScope<'_>) -> Plan {
        self.pass_of(&Input { verdicts_of, ..self.input(&Memory::default()) })
    }

    fn input<'a>(&'a self, memory: &'a Memory) -> Input<'a> {
        Input::new(&self.cluster, memory, Timestamp::from_second(REPORTED + 10).unwrap())
    }

    fn pass_of(&self, input: &Input<'_>) -> Plan {
        let plan = self.descheduler.pass(input);
        assert!(plan.errors.is_empty() && plan.skipped.is_none(), "{:?} {:?}", plan.errors, plan.skipped);
        plan
    }
}
