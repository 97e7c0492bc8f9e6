use std::{collections::BTreeSet, panic};

use koord_core::random::Random;

use super::{
    extremes::{EXTREMES, places},
    *,
};

/// Texts that are no value of most keys, or not the one that was meant.
const TEXTS: [&str; 15] = [
    "",
    "x",
    "-1",
    "99999999999999999999",
    "{",
    "{\"a\":[]}",
    "[null]",
    r#"[{"name":"n1","node":-1,"resources":{"cpu":"x"}}]"#,
    r#"{"gpu":[{"minor":-9,"resources":{"koordinator.sh/gpu-core":"1e400"}}]}"#,
    "true\u{0}",
    "9223372036854775807",
    "-9223372036854775808",
    r#"{"cpu":"9223372036854775807","memory":"-9223372036854775808","koordinator.sh/gpu-core":"9223372036854775807"}"#,
    r#"[{"name":"n1","node":0,"resources":{"cpu":"9223372036854775807","memory":"-9223372036854775808"}}]"#,
    r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"9223372036854775807","koordinator.sh/gpu-memory-ratio":"-9223372036854775808","koordinator.sh/gpu-memory":"9223372036854775807"}}]}"#,
];

/// Members that objects lose or get.
fn patches() -> [Value; 6] {
    [
        json!({"spec": null}),
        json!({"status": null}),
        json!({"spec": {}, "status": {}}),
        json!({"metadata": {"labels": null, "annotations": null, "uid": null}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:04Z", "finalizers": ["example.com/stays"]}}),
        json!({"metadata": {"name": "", "namespace": ""}}),
    ]
}

/// Of the cluster, all but those who have nothing to do with the others.
fn odd(change: impl Fn(&mut Value)) -> Vec<Value> {
    let mut objects = cluster();
    let others = objects.len() - BYSTANDERS;
    objects[..others].iter_mut().for_each(change);
    objects
}

#[test]
fn every_key_of_all_objects_may_say_what_makes_no_sense() {
    for key in keys() {
        for text in TEXTS {
            for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
                holds(odd(|object| says(object, key, text)), switches);
            }
        }
    }
}

#[test]
fn every_object_may_lack_what_others_have() {
    let others = cluster().len() - BYSTANDERS;
    for index in 0..others {
        for patch in patches() {
            for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
                let mut objects = cluster();
                objects[index] = patch::merge::apply(objects[index].take(), &patch);
                holds(objects, switches);
            }
        }
    }
}

#[test]
fn the_cluster_has_an_object_of_every_kind_that_is_read_and_all_can_be_read() {
    let kinds: BTreeSet<String> = cluster()
        .iter()
        .map(|object| format!("{} {}", object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()))
        .collect();
    for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
        let engine = engine(cluster(), switches).expect("all of it can be read");
        for kind in engine.reads().kinds.keys() {
            let kind = format!("{} {}", kind.api_version(), kind.kind);
            assert!(kinds.contains(&kind), "no object of {kind}");
        }
        assert_eq!(engine.cluster().rows().count(), 2);
    }
}

/// What is switched on reaches readers that nothing else does.
#[test]
fn everything_is_switched_on() {
    let effective = switches::ALL_ON.configuration.effective().unwrap();
    let shipped = switches::SHIPPED.configuration.effective().unwrap();
    let args = |of: &Value, plugin: &str| {
        let configs = of["profiles"][0]["pluginConfig"].as_array().unwrap();
        configs.iter().find(|config| config["name"] == plugin).unwrap()["args"].clone()
    };
    for (plugin, name) in [
        ("Coscheduling", "awareNetworkTopology"),
        ("Coscheduling", "enablePreemption"),
        ("LoadAwareScheduling", "allowCustomizeEstimation"),
        ("LoadAwareScheduling", "usageThresholds"),
        ("LoadAwareScheduling", "aggregated"),
        ("Reservation", "enablePreemption"),
        ("ElasticQuota", "enableQueueHint"),
        ("ElasticQuota", "monitorAllQuotas"),
    ] {
        assert_ne!(args(&effective, plugin)[name], args(&shipped, plugin)[name], "{plugin}: {name}");
    }
    for gate in ["DevicePluginAdaption", "MultiQuotaTree", "ReplaceResourcesTransformer", "ResizePod"] {
        assert!(switches::ALL_ON.gates.enabled(gate) && !switches::SHIPPED.gates.enabled(gate), "{gate}");
    }
}

#[test]
fn every_number_may_be_as_large_or_small_as_can_be() {
    let others = cluster().len() - BYSTANDERS;
    let all = places(&cluster()[..others]);
    assert!(all.len() > 60, "{}", all.len());
    let mut wrong = Vec::new();
    for (which, switches) in [("shipped", &*switches::SHIPPED), ("all on", &*switches::ALL_ON)] {
        for place in &all {
            // All of them come in the combinations.
            for extreme in &EXTREMES[..5] {
                let mut objects = cluster();
                place.set(&mut objects, extreme);
                if panic::catch_unwind(|| holds(objects, switches)).is_err() {
                    wrong.push(format!("{which}: {place:?} = {extreme}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sums and differences overflow where several numbers are large.
#[test]
fn many_numbers_at_once_may_be_as_large_or_small_as_can_be() {
    let others = cluster().len() - BYSTANDERS;
    let all = places(&cluster()[..others]);
    for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
        for extreme in EXTREMES {
            let mut objects = cluster();
            for place in &all {
                place.set(&mut objects, extreme);
            }
            holds(objects, switches);
        }
    }
    let random = Random::seeded(32);
    for round in 0..400_u64 {
        let many = 3 * (1 + random.below(all.len() as u64 / 4));
        let bytes = (0..many).map(|_| u8::try_from(random.below(256)).unwrap());
        let on = if round % 2 == 0 { 0 } else { ALL_ON };
        scheduler(&[on, NUMBERS].into_iter().chain(bytes).collect::<Vec<_>>());
    }
    assert!(keys().count() < usize::from(NUMBERS), "no key is chosen by it");
}
