//! Thresholds of LowNodeLoad that contradict those by which koord-scheduler admits pods to nodes.

use std::collections::BTreeMap;

use koord_config::{
    arguments,
    descheduler::{DeschedulerConfiguration, LowNodeLoadArgs, Profile},
    scheduler::{LoadAwareSchedulingArgs, SchedulerConfiguration},
};
use koord_configuration::typed;
use serde_json::Value;

/// Why pods would go back and forth.
#[derive(Debug, PartialEq)]
pub(super) struct Contradiction {
    pub(super) problem: String,
    pub(super) remedy: String,
}

type Percentages = BTreeMap<String, f64>;

/// What koord-scheduler still admits pods to, in percent of what a node offers. A resource that is not there has no bound.
struct Admission {
    /// The arguments that say so.
    usage: (&'static str, Percentages),
    prod: (&'static str, Percentages),
}

/// The contradictions between two configurations. One that cannot be read has none.
pub(super) fn contradictions(scheduler: &Value, descheduler: &Value) -> Vec<Contradiction> {
    let Ok(descheduler) = DeschedulerConfiguration::of(descheduler) else { return Vec::new() };
    let admissions = admissions(scheduler);
    let mut found = Vec::new();
    for profile in &descheduler.profiles {
        let Some(args) = low_node_load(profile) else { continue };
        for admission in &admissions {
            compare(&profile.name, &args, admission, &mut found);
        }
    }
    found.dedup();
    found
}

/// What each profile of the scheduler admits.
fn admissions(document: &Value) -> Vec<Admission> {
    let Ok(scheduler) = typed::<SchedulerConfiguration>(document) else { return Vec::new() };
    let of_profile = |index: usize| {
        let profile = &document["profiles"][index];
        let is_enabled = ["filter", "multiPoint"].iter().any(|point| {
            let enabled = profile["plugins"][*point]["enabled"].as_array().into_iter().flatten();
            enabled.into_iter().any(|plugin| plugin["name"] == "LoadAwareScheduling")
        });
        let configs = profile["pluginConfig"].as_array().into_iter().flatten();
        let config = configs.into_iter().find(|config| config["name"] == "LoadAwareScheduling");
        let args = config.map_or_else(|| serde_json::json!({}), |config| config["args"].clone());
        is_enabled.then(|| arguments::<LoadAwareSchedulingArgs>(&args).ok())?.map(|args| admission(&args))
    };
    (0..scheduler.profiles.len()).filter_map(of_profile).collect()
}

fn admission(args: &LoadAwareSchedulingArgs) -> Admission {
    let bounds = |thresholds: &mut dyn Iterator<Item = (&String, f64)>| {
        thresholds.filter(|(_, percent)| *percent > 0.0).map(|(name, percent)| (name.clone(), percent)).collect()
    };
    let aggregated = &args.aggregated;
    let usage = if aggregated.usage_aggregation_type.is_some() && !aggregated.usage_thresholds.is_empty() {
        let mut thresholds = aggregated.usage_thresholds.iter().map(|(name, percent)| (name, percent.0 as f64));
        ("aggregated.usageThresholds", bounds(&mut thresholds))
    } else {
        let mut thresholds = args.usage_thresholds.iter().map(|(name, percent)| (name, percent.0 as f64));
        ("usageThresholds", bounds(&mut thresholds))
    };
    let mut thresholds = args.prod_usage_thresholds.iter().map(|(name, percent)| (name, *percent as f64));
    Admission { usage, prod: ("prodUsageThresholds", bounds(&mut thresholds)) }
}

/// The arguments of LowNodeLoad, where it runs.
fn low_node_load(profile: &Profile) -> Option<LowNodeLoadArgs> {
    profile.plugins.balance.enabled.iter().find(|plugin| plugin.name == "LowNodeLoad")?;
    let config = profile.plugin_config.iter().find(|config| config.name == "LowNodeLoad")?;
    arguments::<LowNodeLoadArgs>(&config.args).ok().filter(|args| !args.paused)
}

fn compare(profile: &str, args: &LowNodeLoadArgs, admission: &Admission, found: &mut Vec<Contradiction>) {
    let whole = (
        "LowNodeLoad".to_owned(),
        [&args.high_thresholds, &args.low_thresholds, &args.prod_high_thresholds, &args.prod_low_thresholds],
    );
    let own = std::iter::once(whole).filter(|_| !args.use_deviation_thresholds);
    let pools = args.node_pools.iter().filter(|pool| !pool.use_deviation_thresholds).map(|pool| {
        let all = &args;
        (
            format!("LowNodeLoad, pool {}", pool.name),
            [
                pool.high_thresholds.as_ref().unwrap_or(&all.high_thresholds),
                pool.low_thresholds.as_ref().unwrap_or(&all.low_thresholds),
                pool.prod_high_thresholds.as_ref().unwrap_or(&all.prod_high_thresholds),
                pool.prod_low_thresholds.as_ref().unwrap_or(&all.prod_low_thresholds),
            ],
        )
    });
    for (place, [high, low, prod_high, prod_low]) in own.chain(pools) {
        let place = format!("profile {profile}, {place}");
        evicts_what_is_admitted(&place, ("highThresholds", high), &admission.usage, found);
        prefers_what_is_not_admitted(&place, ("lowThresholds", low), &admission.usage, found);
        if !admission.prod.1.is_empty() {
            evicts_what_is_admitted(&place, ("prodHighThresholds", prod_high), &admission.prod, found);
            prefers_what_is_not_admitted(&place, ("prodLowThresholds", prod_low), &admission.prod, found);
        }
    }
}

/// Pods leave nodes to which the scheduler admits pods.
fn evicts_what_is_admitted(
    place: &str,
    (field, high): (&str, &Percentages),
    (admitted_by, admission): &(&str, Percentages),
    found: &mut Vec<Contradiction>,
) {
    for (resource, percent) in high {
        match admission.get(resource) {
            Some(admitted) if percent < admitted => found.push(Contradiction {
                problem: format!(
                    "{place}: {field}.{resource} {percent} is below {admitted_by}.{resource} {admitted} of LoadAwareScheduling: koord-scheduler places pods on nodes from which they are evicted again"
                ),
                remedy: format!("raise {field}.{resource} to {admitted} or more, or lower {admitted_by}.{resource} to {percent} or less"),
            }),
            None if matches!(resource.as_str(), "cpu" | "memory") => found.push(Contradiction {
                problem: format!(
                    "{place}: {field}.{resource} is {percent}, and {admitted_by} of LoadAwareScheduling have no bound for {resource}: koord-scheduler places pods on nodes from which they are evicted again"
                ),
                remedy: format!("set {admitted_by}.{resource} of LoadAwareScheduling to {percent} or less"),
            }),
            _ => {}
        }
    }
}

/// Pods are evicted towards nodes to which the scheduler admits none.
fn prefers_what_is_not_admitted(
    place: &str,
    (field, low): (&str, &Percentages),
    (admitted_by, admission): &(&str, Percentages),
    found: &mut Vec<Contradiction>,
) {
    for (resource, percent) in low {
        if let Some(admitted) = admission.get(resource).filter(|admitted| percent > *admitted) {
            found.push(Contradiction {
                problem: format!(
                    "{place}: {field}.{resource} {percent} is above {admitted_by}.{resource} {admitted} of LoadAwareScheduling: pods are evicted towards nodes on which koord-scheduler places none"
                ),
                remedy: format!("lower {field}.{resource} to {admitted} or less"),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scheduler(args: &Value) -> Value {
        json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{
                "schedulerName": "koord-scheduler", "plugins": {"filter": {"enabled": [{"name": "LoadAwareScheduling"}]}},
                "pluginConfig": [{"name": "LoadAwareScheduling", "args": args}],
            }],
        })
    }

    fn descheduler(args: &Value) -> Value {
        json!({
            "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration",
            "profiles": [{
                "name": "p", "plugins": {"balance": {"enabled": [{"name": "LowNodeLoad"}]}},
                "pluginConfig": [{"name": "LowNodeLoad", "args": args}],
            }],
        })
    }

    fn problems(of_scheduler: &Value, of_descheduler: &Value) -> Vec<String> {
        contradictions(&scheduler(of_scheduler), &descheduler(of_descheduler))
            .into_iter()
            .map(|found| found.problem)
            .collect()
    }

    #[test]
    fn a_threshold_of_eviction_below_that_of_admission_is_found() {
        let admits = json!({"usageThresholds": {"cpu": 65, "memory": 95}});
        let found = contradictions(
            &scheduler(&admits),
            &descheduler(&json!({"highThresholds": {"cpu": 60, "memory": 95}, "lowThresholds": {"cpu": 30}})),
        );
        assert_eq!(
            found,
            [Contradiction {
                problem: "profile p, LowNodeLoad: highThresholds.cpu 60 is below usageThresholds.cpu 65 of LoadAwareScheduling: koord-scheduler places pods on nodes from which they are evicted again".to_owned(),
                remedy: "raise highThresholds.cpu to 65 or more, or lower usageThresholds.cpu to 60 or less".to_owned(),
            }]
        );
        for right in [
            json!({"highThresholds": {"cpu": 65, "memory": 96}}),
            json!({"highThresholds": {"cpu": 10}, "useDeviationThresholds": true}),
            json!({"highThresholds": {"cpu": 10}, "paused": true}),
            json!({"highThresholds": {"nvidia.com/gpu": 10}}),
        ] {
            assert_eq!(problems(&admits, &right), [""; 0], "{right}");
        }
    }

    #[test]
    fn no_bound_admits_pods_to_every_node() {
        let found =
            problems(&json!({"usageThresholds": {"cpu": 0, "memory": 95}}), &json!({"highThresholds": {"cpu": 80}}));
        assert!(
            found.len() == 1 && found[0].contains("usageThresholds of LoadAwareScheduling have no bound for cpu"),
            "{found:?}"
        );
    }

    #[test]
    fn a_node_that_counts_as_cold_must_admit_pods() {
        let args = json!({"highThresholds": {"cpu": 90}, "lowThresholds": {"cpu": 70}});
        let found = problems(&json!({"usageThresholds": {"cpu": 65}}), &args);
        assert!(
            found.len() == 1 && found[0].contains("lowThresholds.cpu 70 is above usageThresholds.cpu 65"),
            "{found:?}"
        );
    }

    #[test]
    fn pools_production_pods_and_percentiles_have_thresholds_of_their_own() {
        let pool = json!({
            "highThresholds": {"cpu": 80}, "prodHighThresholds": {"cpu": 50},
            "nodePools": [{"name": "small", "highThresholds": {"cpu": 40}}],
        });
        let admits = json!({
            "usageThresholds": {"cpu": 99}, "prodUsageThresholds": {"cpu": 55},
            "aggregated": {"usageThresholds": {"cpu": 60}, "usageAggregationType": "p95"},
        });
        let found = problems(&admits, &pool);
        let starts = [
            "profile p, LowNodeLoad: prodHighThresholds.cpu 50 is below prodUsageThresholds.cpu 55",
            "profile p, LowNodeLoad, pool small: highThresholds.cpu 40 is below aggregated.usageThresholds.cpu 60",
            "profile p, LowNodeLoad, pool small: prodHighThresholds.cpu 50 is below prodUsageThresholds.cpu 55",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found}");
        }
    }

    #[test]
    fn what_cannot_be_read_contradicts_nothing() {
        let right = descheduler(&json!({"highThresholds": {"cpu": 10}}));
        for odd in [json!(null), json!({"profiles": 5}), json!({"profiles": [{"plugins": 5}]})] {
            assert_eq!(contradictions(&odd, &right), []);
            assert_eq!(contradictions(&scheduler(&json!({})), &odd), []);
        }
        assert_eq!(contradictions(&scheduler(&json!({"usageThresholds": 5})), &right), []);
    }
}
