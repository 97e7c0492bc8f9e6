//! Documents as operators write them: what is refused, and what is in force.

#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

use koord_config::{
    Kind,
    descheduler::{
        LowNodeLoadArgs, RemoveFailedPodsArgs, RemovePodsViolatingTopologySpreadConstraintArgs, SpreadConstraint,
    },
};
use koord_configuration::{LeaderElection, Origin, path_text};
use serde_json::{Value, json};

fn scheduler(plugin_config: Value) -> Value {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "koord-scheduler", "pluginConfig": plugin_config}],
    })
}

fn descheduler(profiles: Value) -> Value {
    json!({"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "profiles": profiles})
}

fn problems(document: &Value) -> Vec<String> {
    let problems = Kind::of(document).unwrap().check(document);
    problems
        .into_iter()
        .map(|problem| match &problem.suggestion {
            Some(suggestion) => format!("{problem} ({suggestion})"),
            None => problem.to_string(),
        })
        .collect()
}

/// What is wrong with arguments of a plugin of the scheduler, without the common part of the path.
fn of_args(plugin: &str, args: Value) -> Vec<String> {
    let found = problems(&scheduler(json!([{"name": plugin, "args": args}])));
    found.iter().map(|problem| problem.replace("profiles[0].pluginConfig[0].args.", "")).collect()
}

#[test]
fn a_document_belongs_to_a_kind_by_its_version_and_kind() {
    assert_eq!(Kind::of(&scheduler(json!([]))), Some(Kind::Scheduler));
    assert_eq!(Kind::of(&descheduler(json!([]))), Some(Kind::Descheduler));
    let policy = |version: &str| json!({"apiVersion": format!("descheduler/{version}"), "kind": "DeschedulerPolicy"});
    assert_eq!(Kind::of(&policy("v1alpha1")), Some(Kind::PolicyV1alpha1));
    assert_eq!(Kind::of(&policy("v1alpha2")), Some(Kind::PolicyV1alpha2));
    assert_eq!(Kind::of(&policy("v1beta1")), None);
}

/// Plugins that do not run without arguments.
const INCOMPLETE: [&str; 6] = [
    "CustomPriority",
    "HighNodeUtilization",
    "LowNodeUtilization",
    "PodLifeTime",
    "RemovePodsHavingTooManyRestarts",
    "RemovePodsViolatingNodeAffinity",
];

#[test]
fn the_defaults_of_every_plugin_pass_their_own_checks() {
    for kind in Kind::ALL {
        for plugin in kind.plugins() {
            let complete = plugin.complete(&Value::Null, kind.api_version()).unwrap();
            let problems = plugin.problems(&complete, kind.api_version(), &[]);
            assert_eq!(problems.is_empty(), !INCOMPLETE.contains(&plugin.plugin), "{}: {problems:?}", plugin.plugin);
        }
    }
}

#[test]
fn a_mistake_is_reported_with_its_field_and_what_would_be_right() {
    for (plugin, args, wanted) in [
        (
            "Reservation",
            json!({"gcDurationSecond": 5}),
            "gcDurationSecond: unknown field (did you mean gcDurationSeconds?)",
        ),
        ("Reservation", json!({"resyncIntervalSeconds": -1}), "resyncIntervalSeconds: must be 0 or greater"),
        (
            "Reservation",
            json!({"minCandidateNodesPercentage": 101}),
            "minCandidateNodesPercentage: must be 100 or less",
        ),
        (
            "Reservation",
            json!({"ignoredResources": ["cpu"]}),
            "ignoredResources[0]: \"cpu\" is no extended resource, such as example.com/device",
        ),
        (
            "LoadAwareScheduling",
            json!({"nodeMetricExpirationSeconds": 0}),
            "nodeMetricExpirationSeconds: must be 1 or greater",
        ),
        (
            "LoadAwareScheduling",
            json!({"usageThresholds": {"cpu": "65"}}),
            "usageThresholds.cpu: must be a whole number, not a text",
        ),
        (
            "LoadAwareScheduling",
            json!({"resourceWeights": {"gpu": 1}}),
            "resourceWeights.gpu: has no entry in estimatedScalingFactors",
        ),
        (
            "LoadAwareScheduling",
            json!({"aggregated": {"usageAggregationType": "p96"}}),
            "aggregated.usageAggregationType: \"p96\" is none of avg, p50, p90, p95, p99 (did you mean p90?)",
        ),
        (
            "NodeNUMAResource",
            json!({"scoringStrategy": {"type": "BalancedAllocation"}}),
            "scoringStrategy.type: the plugin has no scorer for BalancedAllocation; use LeastAllocated or MostAllocated",
        ),
        (
            "NodeNUMAResource",
            json!({"numaScoringStrategy": {"type": "LeastFragmented"}}),
            "numaScoringStrategy.type: the plugin has no scorer for LeastFragmented; use LeastAllocated or MostAllocated",
        ),
        (
            "NodeResourcesFitPlus",
            json!({"resources": {"cpu": {"type": "LeastFragmented"}}}),
            "resources.cpu.type: the plugin has no scorer for LeastFragmented; use LeastAllocated or MostAllocated",
        ),
        (
            "DeviceShare",
            json!({"scoringStrategy": {"type": "LeastFragmentd"}}),
            "scoringStrategy.type: \"LeastFragmentd\" is none of LeastAllocated, MostAllocated, BalancedAllocation, LeastFragmented (did you mean LeastFragmented?)",
        ),
        (
            "Coscheduling",
            json!({"defaultTimeout": "10"}),
            "defaultTimeout: time: missing unit in duration \"10\" (durations are texts such as 90s, 5m or 1h30m)",
        ),
        ("ElasticQuota", json!({"defaultQuotaGroupMax": {"cpu": "-1"}}), "defaultQuotaGroupMax.cpu: must be 0 or more"),
        ("ElasticQuota", json!({"hookPlugins": [{"factoryKey": "auditors"}]}), "hookPlugins[0].key: must not be empty"),
        ("ElasticQuota", json!({"hookPlugins": [{"key": "audit"}]}), "hookPlugins[0].factoryKey: must not be empty"),
        (
            "ElasticQuota",
            json!({"hookPlugins": [{"key": "a", "factoryKey": "x"}, {"key": "a", "factoryKey": "y"}]}),
            "hookPlugins[1].key: \"a\" stands twice",
        ),
        ("SchedulingHint", json!({"maxHintNodes": 0}), "maxHintNodes: must be 1 or greater"),
        (
            "PodTopologySpread",
            json!({"defaultingType": "List", "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "minDomains": 2, "nodeTaintsPolicy": "Honor", "labelSelector": {}},
            ]}),
            "defaultConstraints[0].labelSelector: unknown field",
        ),
        ("DeviceShare", json!({"kind": "DeviceArgs"}), "kind: must be \"DeviceShareArgs\""),
    ] {
        assert_eq!(of_args(plugin, args), [wanted], "{plugin}");
    }
}

#[test]
fn unknown_and_duplicate_plugins_are_found() {
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 0,
        "profiles": [
            {"schedulerName": "a", "plugins": {"filter": {"enabled": [{"name": "Reservations"}, {"name": "DeviceShare"}, {"name": "DeviceShare"}]}}},
            {"schedulerName": "b", "pluginConfig": [{"name": "Reservation"}, {"name": "Reservation"}]},
            {"schedulerName": "a"},
        ],
    });
    assert_eq!(problems(&document), ["parallelism: must be 1 or greater"], "the form comes first");
    let mut document = document;
    document["parallelism"] = json!(16);
    assert_eq!(
        problems(&document),
        [
            "profiles[0].plugins.filter.enabled[0].name: there is no plugin \"Reservations\" (did you mean Reservation?)",
            "profiles[0].plugins.filter.enabled[2].name: \"DeviceShare\" stands twice",
            "profiles[1].pluginConfig[1].name: \"Reservation\" stands twice",
            "profiles[2].schedulerName: \"a\" stands twice",
        ]
    );
}

#[test]
fn numbers_that_are_too_large_and_items_that_are_null_have_their_place() {
    let configured = |profiles: Value, parallelism: Value| {
        problems(&json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "parallelism": parallelism, "profiles": profiles,
        }))
    };
    assert_eq!(configured(json!([null]), json!(1)), ["profiles[0]: must be an object, not null"]);
    for (number, bound) in
        [(json!(99_999_999_999_i64), "2147483647 or less"), (json!(-99_999_999_999_i64), "-2147483648 or greater")]
    {
        let plugins = json!({"score": {"enabled": [{"name": "NodeAffinity", "weight": number}]}});
        let profiles = json!([{"schedulerName": "a", "plugins": plugins}]);
        let mut found = configured(profiles, number);
        found.sort();
        let places = ["parallelism", "profiles[0].plugins.score.enabled[0].weight"];
        assert_eq!(found, places.map(|place| format!("{place}: must be {bound}")));
    }
    let backoff = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "podMaxBackoffSeconds": u64::MAX,
    });
    assert_eq!(problems(&backoff), ["podMaxBackoffSeconds: must be 9223372036854775807 or less"]);
}

#[test]
fn unsigned_integers_are_checked_as_signed_ones() {
    for (number, bound) in [(json!(5_000_000_000_i64), "4294967295 or less"), (json!(-1), "0 or greater")] {
        let mut document = descheduler(json!([]));
        let keys = ["maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictTotal"];
        for key in keys {
            document[key] = number.clone();
        }
        let mut found = problems(&document);
        found.sort();
        assert_eq!(found, keys.map(|key| format!("{key}: must be {bound}")));
    }
    let out_of = |format: &str, number: Value| {
        let schema = json!({"type": "integer", "format": format});
        let problems = koord_configuration::check_schema(&schema, &schema, &number, &[]);
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(out_of("uint64", json!(-1)), ["must be 0 or greater"]);
    assert_eq!(out_of("uint64", json!(u64::MAX)), [""; 0]);
    assert_eq!(out_of("uint16", json!(65_536)), ["must be 65535 or less"]);
    assert_eq!(out_of("int8", json!(-129)), ["must be -128 or greater"]);
}

/// As kube-scheduler adds them: once the sum is below 0, no weight fits.
#[test]
fn weights_below_0_are_refused_where_the_sum_is_below_0() {
    let weighted = |plugins: Value| {
        problems(&json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "a", "plugins": {"score": {"enabled": plugins}}}],
        }))
    };
    let overflow = "profiles[0].plugins.score: the sum of the scores could overflow: weights must not be below 0";
    assert_eq!(weighted(json!([{"name": "NodeAffinity", "weight": -5}])), [overflow]);
    let balanced = json!([{"name": "NodeResourcesFit", "weight": 9}, {"name": "NodeAffinity", "weight": -5}]);
    assert_eq!(weighted(balanced), [""; 0]);
    let largest =
        json!([{"name": "NodeResourcesFit", "weight": i32::MAX}, {"name": "NodeAffinity", "weight": i32::MAX}]);
    assert_eq!(weighted(largest), [""; 0]);
}

#[test]
fn what_is_null_is_not_set() {
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": null, "clientConnection": null, "extenders": null, "delayCacheUntilActive": null,
        "profiles": [{
            "schedulerName": "a",
            "plugins": {"permit": {"disabled": null, "enabled": [{"name": "Coscheduling", "weight": null}]}, "postFilter": null},
            "pluginConfig": [
                {"name": "LoadAwareScheduling", "args": {"usageThresholds": null, "resourceWeights": null}},
                {"name": "NodeResourcesFit", "args": {"ignoredResources": null, "scoringStrategy": {"type": null}}},
                {"name": "Reservation", "args": null},
            ],
        }],
    });
    assert_eq!(problems(&document), [""; 0]);
    let effective = Kind::Scheduler.effective(&document).unwrap().value;
    let profile = &effective["profiles"][0];
    assert_eq!(profile["plugins"]["permit"]["enabled"], json!([{"name": "Coscheduling"}]));
    assert_eq!(profile["pluginConfig"][0]["args"]["usageThresholds"], json!({"cpu": 65, "memory": 95}));
    assert_eq!(profile["pluginConfig"][2]["args"]["gcDurationSeconds"], 86_400);
    let descheduler = descheduler(json!([{"name": "p", "plugins": {"balance": null}, "pluginConfig": null}]));
    assert_eq!(problems(&descheduler), [""; 0]);
}

#[test]
fn names_of_plugins_that_are_gone_have_no_effect_where_they_are_disabled_or_configured() {
    let mut document = scheduler(json!([{"name": "NodeLabel", "args": {"x": 1}}, {"name": "Reservations"}]));
    let disabled = json!([{"name": "SelectorSpread"}, {"name": "SelectorSpread"}, {"name": "*"}]);
    document["profiles"][0]["plugins"] = json!({"score": {"disabled": disabled}});
    assert_eq!(problems(&document), [""; 0]);
    let warnings = Kind::Scheduler.warnings(&document);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "profiles[0].plugins.score.disabled[0].name: there is no plugin \"SelectorSpread\"",
            "profiles[0].plugins.score.disabled[1].name: there is no plugin \"SelectorSpread\"",
            "profiles[0].pluginConfig[0].name: there is no plugin \"NodeLabel\"",
            "profiles[0].pluginConfig[1].name: there is no plugin \"Reservations\"",
        ]
    );
    assert_eq!(warnings[3].suggestion.as_deref(), Some("did you mean Reservation?"));
    assert!(Kind::Scheduler.effective(&document).is_ok());
}

#[test]
fn what_has_no_effect_is_named_where_it_is_set_to_something_else_than_by_default() {
    let said = |document: &Value| {
        assert_eq!(problems(document), [""; 0]);
        let warnings = Kind::Scheduler.warnings(document);
        warnings.iter().map(|warning| warning.to_string().split(": ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let defaults = scheduler(json!([
        {"name": "Coscheduling", "args": {"controllerWorkers": 1, "skipCheckScheduleCycle": false}},
        {"name": "DynamicResources", "args": {"filterTimeout": "10s"}},
        {"name": "Reservation", "args": {"controllerWorkers": 0, "resyncIntervalSeconds": 60}},
        {"name": "ElasticQuota", "args": {"enableQueueHint": false, "quotaSnapshotUpdateInterval": "120s"}},
        {"name": "LoadAwareScheduling", "args": {"estimator": "defaultEstimator"}},
    ]));
    assert_eq!(said(&defaults), [""; 0]);
    let mut others = scheduler(json!([
        {"name": "Coscheduling", "args": {"controllerWorkers": 3, "skipCheckScheduleCycle": true}},
        {"name": "DynamicResources", "args": {"filterTimeout": "0s"}},
        {"name": "Reservation", "args": {"controllerWorkers": 4, "resyncIntervalSeconds": 5, "reservationSelectorIndex": {"enabled": true}}},
        {"name": "ElasticQuota", "args": {"enableQueueHint": true, "quotaSnapshotUpdateInterval": "1m"}},
        {"name": "LoadAwareScheduling", "args": {"estimator": "another"}},
    ]));
    others["parallelism"] = json!(8);
    others["delayCacheUntilActive"] = json!(true);
    let args = |profile: usize, field: &str| format!("profiles[0].pluginConfig[{profile}].args.{field}");
    let expected = [
        "parallelism".to_owned(),
        "delayCacheUntilActive".to_owned(),
        args(0, "controllerWorkers"),
        args(0, "skipCheckScheduleCycle"),
        args(1, "filterTimeout"),
        args(2, "controllerWorkers"),
        args(2, "resyncIntervalSeconds"),
        args(2, "reservationSelectorIndex"),
        args(3, "enableQueueHint"),
        args(3, "quotaSnapshotUpdateInterval"),
        args(4, "estimator"),
    ];
    assert_eq!(said(&others), expected);
}

#[test]
fn a_descheduler_has_one_evictor_and_thresholds_in_order() {
    let args = json!({"lowThresholds": {"cpu": 80}, "highThresholds": {"cpu": 75}, "nodePools": [{"name": "p", "highThresholds": {"cpu": -1}}]});
    let document = descheduler(json!([{
        "name": "p", "pluginConfig": [{"name": "LowNodeLoad", "args": args}],
        "plugins": {"evict": {"enabled": [{"name": "DefaultEvictor"}]}, "balance": {"enabled": [{"name": "LowNodeLoad"}]}},
    }]));
    assert_eq!(
        problems(&document),
        [
            "profiles[0].plugins.evict.enabled: only one plugin can evict (disable * or MigrationController, which evicts by default)",
            "profiles[0].pluginConfig[0].args.lowThresholds.cpu: LowNodeLoad: must not exceed highThresholds",
            "profiles[0].pluginConfig[0].args.nodePools[0].highThresholds.cpu: LowNodeLoad: must be 0 or greater",
            "profiles[0].pluginConfig[0].args.nodePools[0].lowThresholds.cpu: LowNodeLoad: must not exceed highThresholds",
        ]
    );
    let address = |address: &str| {
        let mut document = descheduler(json!([]));
        document["healthzBindAddress"] = address.into();
        problems(&document)
    };
    assert_eq!(
        [address("1.2.3.4"), address(":8080"), address("localhost:0"), address("[::]:1")],
        [const { Vec::<String>::new() }; 4]
    );
    assert_eq!(address("0.0.0.0:111:222").len(), 1);
    assert_eq!(address("").len(), 1);
}

/// What is wrong with a profile that enables a strategy with these arguments, without the common part of the path and the name of the plugin.
fn of_strategy(set: &str, plugin: &str, args: Value) -> Vec<String> {
    let evictor = json!({"enabled": [{"name": "DefaultEvictor"}], "disabled": [{"name": "*"}]});
    let mut plugins = json!({"evict": evictor, "filter": evictor});
    plugins[set] = json!({"enabled": [{"name": plugin}]});
    let profile = json!({"name": "p", "plugins": plugins, "pluginConfig": [{"name": plugin, "args": args}]});
    let found = problems(&descheduler(json!([profile])));
    found.iter().map(|problem| short(plugin, problem)).collect()
}

/// A problem without the common part of its path and, if it is about arguments, without the name of their plugin.
fn short(plugin: &str, problem: &str) -> String {
    match problem.strip_prefix("profiles[0].pluginConfig[0].args.") {
        Some(of_args) => {
            assert_eq!(of_args.matches(&format!(": {plugin}: ")).count(), 1, "{problem}");
            of_args.replace(&format!(": {plugin}: "), ": ")
        }
        None => problem.to_owned(),
    }
}

#[test]
fn arguments_of_strategies_of_the_community_are_checked() {
    for (set, plugin, args, wanted) in [
        (
            "balance",
            "LowNodeUtilization",
            json!({"thresholds": {"cpu": 101}, "targetThresholds": {"memory": 1}}),
            vec!["thresholds.cpu: must be from 0 to 100", "targetThresholds: must name the resources of thresholds"],
        ),
        (
            "balance",
            "LowNodeUtilization",
            json!({"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}, "evictableNamespaces": {"include": ["a"]}}),
            vec![
                "thresholds.cpu: must not exceed targetThresholds",
                "evictableNamespaces.include: cannot be set: name the others in exclude",
            ],
        ),
        (
            "balance",
            "LowNodeUtilization",
            json!({"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}, "useDeviationThresholds": true}),
            vec![],
        ),
        (
            "balance",
            "LowNodeUtilization",
            json!({
                "thresholds": {"cpu": 1}, "targetThresholds": {"cpu": 2},
                "metricsUtilization": {"source": "Prometheus", "metricsServer": true},
            }),
            vec!["metricsUtilization.metricsServer: cannot be set together with source, which says the same"],
        ),
        (
            "balance",
            "LowNodeUtilization",
            json!({
                "thresholds": {"cpu": 1, "memory": 1}, "targetThresholds": {"cpu": 2, "memory": 2},
                "metricsUtilization": {"source": "Prometheus"},
            }),
            vec![
                "metricsUtilization.source: it is not known where Prometheus is (add {source: Prometheus, prometheus: {url: …}} to metricsProviders)",
                "metricsUtilization.prometheus.query: must be set where Prometheus measures",
                "thresholds: must have MetricResource alone where Prometheus measures",
            ],
        ),
        (
            "balance",
            "LowNodeUtilization",
            json!({
                "thresholds": {"nvidia.com/gpu": 1}, "targetThresholds": {"nvidia.com/gpu": 2},
                "metricsUtilization": {"source": "KubernetesMetrics"},
            }),
            vec!["thresholds[nvidia.com/gpu]: is not measured (the metrics server measures cpu, memory, pods)"],
        ),
        (
            "balance",
            "HighNodeUtilization",
            json!({"evictionModes": ["OnlyThresholdingResource"], "thresholds": {"cpu": 1}}),
            vec![
                "evictionModes[0]: \"OnlyThresholdingResource\" is none of OnlyThresholdingResources (did you mean OnlyThresholdingResources?)",
            ],
        ),
        (
            "deschedule",
            "PodLifeTime",
            json!({}),
            vec![
                "maxPodLifeTimeSeconds: must be set, or one of states, conditions and exitCodes: every pod would be evicted",
            ],
        ),
        (
            "deschedule",
            "PodLifeTime",
            json!({"states": ["OOMKiled"], "conditions": [{}], "ownerKinds": {"include": ["a"], "exclude": ["b"]}}),
            vec![
                "ownerKinds: include and exclude cannot be set together",
                "states[0]: \"OOMKiled\" is none of Running, Pending, Succeeded, Failed, Unknown, NodeAffinity, NodeLost, Shutdown, UnexpectedAdmissionError, PodInitializing, ContainerCreating, ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError, ErrImagePull, CreateContainerError, InvalidImageName, OOMKilled, Error, Completed, DeadlineExceeded, Evicted, ContainerCannotRun, StartError (did you mean OOMKilled?)",
                "conditions[0]: must name something of the condition",
            ],
        ),
        ("deschedule", "RemovePodsHavingTooManyRestarts", json!({}), vec!["podRestartThreshold: must be 1 or greater"]),
        (
            "deschedule",
            "RemovePodsViolatingNodeAffinity",
            json!({}),
            vec![
                "nodeAffinityType: must be set (requiredDuringSchedulingIgnoredDuringExecution or preferredDuringSchedulingIgnoredDuringExecution)",
            ],
        ),
        (
            "deschedule",
            "RemovePodsViolatingNodeTaints",
            json!({"excludedTaints": ["a"], "includedTaints": ["b"]}),
            vec!["includedTaints: cannot be set together with excludedTaints"],
        ),
        ("filter", "DefaultEvictor", json!({"priorityThreshold": {"value": 2_000_000_000}}), vec![]),
        (
            "filter",
            "DefaultEvictor",
            json!({"priorityThreshold": {"value": 2_000_000_001}}),
            vec!["priorityThreshold.value: must not exceed 2000000000, the priority of critical pods"],
        ),
        (
            "deschedule",
            "RemoveFailedPods",
            json!({"namespaces": {"include": ["a"], "exclude": ["b"]}}),
            vec!["namespaces: include and exclude cannot be set together"],
        ),
        (
            "balance",
            "RemovePodsViolatingTopologySpreadConstraint",
            json!({"constraints": ["Maybe"]}),
            vec!["constraints[0]: \"Maybe\" is none of DoNotSchedule, ScheduleAnyway"],
        ),
    ] {
        assert_eq!(of_strategy(set, plugin, args.clone()), wanted, "{plugin} {args}");
    }
}

#[test]
fn unknown_arguments_of_the_community_are_ignored_with_a_warning_and_null_empties() {
    let args = json!({"reason": ["x"], "minPodLifetimeSeconds": null});
    assert_eq!(of_strategy("deschedule", "RemoveFailedPods", args.clone()), [""; 0]);
    let document = descheduler(json!([{"name": "p", "pluginConfig": [{"name": "RemoveFailedPods", "args": args}]}]));
    let warnings = Kind::Descheduler.warnings(&document);
    let warning = |warning: &koord_configuration::Problem| format!("{warning} {:?}", warning.suggestion);
    assert_eq!(
        warnings.iter().map(warning).collect::<Vec<_>>(),
        ["profiles[0].pluginConfig[0].args.reason: unknown field Some(\"did you mean reasons?\")"]
    );
    let minimum =
        |args: &Value| koord_config::arguments::<RemoveFailedPodsArgs>(args).unwrap().min_pod_lifetime_seconds;
    assert_eq!((minimum(&args), minimum(&json!({})), minimum(&json!({"minPodLifetimeSeconds": 5}))), (0, 3600, 5));
    let effective = Kind::Descheduler.effective(&document).unwrap().value;
    let shown = json!({"reason": ["x"], "minPodLifetimeSeconds": 0});
    assert_eq!(effective["profiles"][0]["pluginConfig"][0]["args"], shown, "what is not set is not shown");
    let soft = koord_config::arguments::<RemovePodsViolatingTopologySpreadConstraintArgs>(
        &json!({"includeSoftConstraints": true}),
    );
    assert_eq!(soft.unwrap().constraints, [SpreadConstraint::DoNotSchedule, SpreadConstraint::ScheduleAnyway]);
    let protections = json!({"podProtections": {"extraEnabled": ["PodsWithPvc"]}});
    assert_eq!(
        of_strategy("filter", "DefaultEvictor", protections).len(),
        1,
        "what is not protected by mistake is lost"
    );
}

#[test]
fn a_strategy_is_in_its_set_and_one_that_is_off_has_only_to_be_readable() {
    assert_eq!(
        of_strategy("balance", "PodLifeTime", json!({"maxPodLifeTimeSeconds": 60})),
        ["profiles[0].plugins.balance.enabled[0].name: PodLifeTime is no plugin of this set (enable it in deschedule)"]
    );
    let off = |plugin: &str, args: Value| {
        let found = problems(&descheduler(json!([{"name": "p", "pluginConfig": [{"name": plugin, "args": args}]}])));
        found.iter().map(|problem| short(plugin, problem)).collect::<Vec<_>>()
    };
    assert_eq!(off("LowNodeLoad", json!({"numberOfNodes": -1})), [""; 0]);
    assert_eq!(
        off("LowNodeLoad", json!({"numberOfNode": 1})),
        ["numberOfNode: unknown field (did you mean numberOfNodes?)"]
    );
    assert_eq!(off("LowNodeLoad", json!({"numberOfNodes": "x"})).len(), 1);
    assert_eq!(off("MigrationController", json!({"evictBurst": 0})), ["evictBurst: must be 1 or greater"]);
}

#[test]
fn a_strategy_that_needs_arguments_is_refused_without_any() {
    let of = |set: &str, plugin: &str| {
        let plugins = json!({set: {"enabled": [{"name": plugin}]}});
        problems(&descheduler(json!([{"name": "p", "plugins": plugins}])))
    };
    assert_eq!(
        of("deschedule", "RemovePodsHavingTooManyRestarts"),
        [
            "profiles[0].plugins.deschedule.enabled[0].name: RemovePodsHavingTooManyRestarts has no arguments, and needs some: podRestartThreshold: must be 1 or greater"
        ],
        "it would evict every pod"
    );
    assert_eq!(of("deschedule", "PodLifeTime").len(), 1);
    assert_eq!(of("balance", "LowNodeUtilization").len(), 2);
    assert_eq!(of("deschedule", "RemovePodsViolatingNodeTaints"), [""; 0]);
}

#[test]
fn what_only_the_original_refuses_is_accepted() {
    let mut document = descheduler(json!([{"name": "p"}, {"name": "q"}]));
    document["deschedulingInterval"] = Value::Null;
    assert_eq!(problems(&document), [""; 0]);
    let effective = Kind::Descheduler.effective(&document).unwrap().value;
    assert_eq!(effective["deschedulingInterval"], "0s");
    for profile in effective["profiles"].as_array().unwrap() {
        assert_eq!(profile["plugins"]["evict"]["enabled"][0]["name"], "MigrationController");
    }
    let args = json!({"anomalyCondition": {"timeout": "1m"}});
    assert_eq!(of_strategy("balance", "LowNodeLoad", args.clone()), [""; 0]);
    let condition = koord_config::arguments::<LowNodeLoadArgs>(&args).unwrap().anomaly_condition;
    assert_eq!((condition.consecutive_abnormalities, condition.consecutive_normalities), (5, 3));
}

#[test]
fn selectors_are_checked_wherever_they_are() {
    let like = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let place = |document: &Value| problems(document)[0].split(':').next().unwrap().to_owned();
    let mut document = descheduler(json!([]));
    document["nodeSelector"] = like.clone();
    assert_eq!(place(&document), "nodeSelector");
    assert_eq!(place(&descheduler(json!([{"name": "p", "nodeSelector": like}]))), "profiles[0].nodeSelector");
    for (plugin, args, key) in [
        ("MigrationController", json!({"labelSelector": like}), "labelSelector"),
        ("MigrationController", json!({"nodeSelector": "a in"}), "nodeSelector"),
        ("LowNodeLoad", json!({"podSelectors": [{"name": "x", "selector": like}]}), "podSelectors[0].selector"),
        ("LowNodeLoad", json!({"nodePools": [{"name": "x", "nodeSelector": like}]}), "nodePools[0].nodeSelector"),
        ("DefaultEvictor", json!({"namespaceLabelSelector": like}), "namespaceLabelSelector"),
        ("PodLifeTime", json!({"maxPodLifeTimeSeconds": 1, "labelSelector": like}), "labelSelector"),
    ] {
        let set = match plugin {
            "LowNodeLoad" => "balance",
            "PodLifeTime" => "deschedule",
            _ => "filter",
        };
        let found = of_strategy(set, plugin, args);
        assert_eq!(
            found.iter().map(|problem| problem.split(':').next().unwrap()).collect::<Vec<_>>(),
            [key],
            "{plugin}"
        );
    }
}

#[test]
fn leader_election_is_checked_as_client_go_checks_it() {
    for mut document in [scheduler(json!([])), descheduler(json!([]))] {
        let mut found = |election: Value| {
            document["leaderElection"] = election;
            problems(&document).iter().map(|problem| problem.replace("leaderElection.", "")).collect::<Vec<_>>()
        };
        assert_eq!(found(json!({"renewDeadline": "2401ms"})), [""; 0]);
        assert_eq!(
            found(json!({"renewDeadline": "2400ms"})),
            ["renewDeadline: must be longer than 1.2 times retryPeriod"]
        );
        assert_eq!(found(json!({"leaseDuration": "10s"})), ["leaseDuration: must be longer than renewDeadline"]);
        assert_eq!(found(json!({"resourceLock": "endpoints"})), ["resourceLock: must be leases"]);
        assert_eq!(found(json!({"retryPeriod": "0s"})), ["retryPeriod: must be longer than 0"]);
        let off = json!({"leaderElect": false, "renewDeadline": "1s", "resourceLock": "endpoints"});
        assert_eq!(found(off), [""; 0]);
    }
}

#[test]
fn of_leader_election_empty_texts_and_spans_of_no_time_are_not_set() {
    let mut document = scheduler(json!([]));
    document["leaderElection"] = json!({
        "leaderElect": false, "leaseDuration": "0s", "renewDeadline": "0", "retryPeriod": "3s", "resourceName": "",
    });
    let set = LeaderElection::without_unset(&document);
    assert_eq!(set["leaderElection"], json!({"leaderElect": false, "retryPeriod": "3s"}));
    let effective = Kind::Scheduler.effective(&set).unwrap();
    assert_eq!(effective.value["leaderElection"]["resourceName"], "kube-scheduler");
    for unset in [json!({"leaderElection": null}), json!({"leaderElection": ""}), Value::Null] {
        assert_eq!(LeaderElection::without_unset(&unset), unset);
    }
}

#[test]
fn what_is_in_force_names_where_each_value_comes_from() {
    let mut document = scheduler(json!([{"name": "LoadAwareScheduling", "args": {"usageThresholds": {"cpu": 50}}}]));
    document["profiles"][0]["plugins"] = json!({"reserve": {"enabled": [{"name": "Coscheduling"}]}});
    let effective = Kind::Scheduler.effective(&document).unwrap();
    let config = &effective.value["profiles"][0]["pluginConfig"];
    assert_eq!(config[0]["args"]["usageThresholds"], json!({"cpu": 50}));
    assert_eq!(config[0]["args"]["estimatedScalingFactors"], json!({"cpu": 85, "memory": 70}));
    assert_eq!((&config[1]["name"], &config[1]["args"]["defaultTimeout"]), (&json!("Coscheduling"), &json!("10m0s")));
    let origin = |wanted: &str| {
        let found = effective.leaves.iter().find(|(path, _)| path_text(path) == wanted);
        match &found.unwrap_or_else(|| panic!("{wanted}")).1 {
            Origin::Default => "default".to_owned(),
            Origin::Document(path) => path_text(path),
        }
    };
    let threshold = "profiles[0].pluginConfig[0].args.usageThresholds.cpu";
    assert_eq!(origin(threshold), threshold);
    assert_eq!(origin("profiles[0].pluginConfig[0].args.estimatedScalingFactors.cpu"), "default");
    assert_eq!(origin("profiles[0].pluginConfig[1].args.defaultTimeout"), "default");
    assert_eq!(origin("parallelism"), "default");
}

#[test]
fn what_is_in_force_is_right_and_stays_what_it_is() {
    let low_node_load = json!([{"plugins": {"balance": {"enabled": [{"name": "LowNodeLoad"}]}}}]);
    for document in [scheduler(json!([{"name": "ElasticQuota"}])), descheduler(json!([])), descheduler(low_node_load)] {
        let kind = Kind::of(&document).unwrap();
        assert_eq!(problems(&document), [""; 0]);
        let once = kind.effective(&document).unwrap().value;
        if kind == Kind::Scheduler {
            assert_eq!(problems(&once), [""; 0]);
        }
        assert_eq!(kind.effective(&once).unwrap().value, once);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(16))]

    #[test]
    fn any_document_is_checked_without_a_panic(key in "[a-z]{1,8}", value in "[ -~]{0,12}", number in -5_i64..200) {
        let members = [json!(value), json!(number), Value::Null, json!([number]), json!({ key.as_str(): value })];
        for kind in Kind::ALL {
            for member in &members {
                let mut document = json!({"apiVersion": kind.api_version(), "kind": kind.name()});
                for known in ["profiles", "leaderElection", "clientConnection", "healthzBindAddress", key.as_str()] {
                    document[known] = member.clone();
                    kind.check(&document);
                }
                for plugin in kind.plugins() {
                    plugin.problems(&json!({ key.as_str(): member }), kind.api_version(), &[]);
                    plugin.problems(member, kind.api_version(), &[]);
                }
            }
        }
    }
}
