//! The samples in config/samples, and what our own functions make.

use std::{fs, path::Path};

use koord_resource::declare::Profile;
use koord_types::{KINDS, node_slo::NodeSLO, slo_config};
use serde_json::{Value, json};

use crate::kinds::{assert_good, encoded_again, refusals};

/// The samples of one folder by the names of their files, which are those of the kinds.
fn samples(folder: &str) -> Vec<(String, String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples").join(folder);
    let samples = fs::read_dir(folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let object: Value = serde_saphyr::from_str(&text).unwrap();
        let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(object["kind"].as_str().unwrap().to_lowercase(), name);
        (name, text, object)
    });
    let mut samples: Vec<_> = samples.collect();
    samples.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    samples
}

fn kinds() -> Vec<String> {
    let mut kinds: Vec<String> = KINDS.iter().map(|versions| versions[0].info.kind.to_lowercase()).collect();
    kinds.sort();
    kinds
}

#[test]
fn every_kind_has_a_valid_sample() {
    let samples = samples("valid");
    assert_eq!(samples.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>(), kinds());
    for (name, text, object) in samples {
        assert!(text.starts_with("# "), "{name} says what it is for");
        assert_good(&name, &object);
    }
}

#[test]
fn every_kind_has_a_sample_that_is_refused_with_the_message_in_its_first_line() {
    let samples = samples("invalid");
    assert_eq!(samples.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>(), kinds());
    for (name, text, object) in samples {
        let expected = text.lines().next().unwrap().strip_prefix("# ").unwrap();
        for profile in [Profile::Compatible, Profile::Hardened] {
            let refusals = refusals(&object, profile);
            assert_eq!(refusals.len(), 1, "{name} {profile:?}: {refusals:?}");
            assert!(refusals[0].starts_with(expected), "{name} {profile:?}: {}", refusals[0]);
        }
    }
}

#[test]
fn every_skeleton_is_valid() {
    let skeletons = samples("skeletons");
    assert_eq!(skeletons.len(), KINDS.len());
    for (name, _, object) in skeletons {
        assert_eq!(refusals(&object, Profile::Compatible), Vec::<String>::new(), "{name}");
        encoded_again(&object).unwrap().unwrap();
    }
}

#[test]
fn the_defaults_of_the_configuration_are_valid_objects() {
    let mut full = slo_config::node_slo_spec();
    full.resource_qos_strategy = Some(slo_config::full_resource_qos_strategy());
    for spec in [slo_config::node_slo_spec(), full] {
        let mut object = NodeSLO { spec, ..NodeSLO::default() };
        object.metadata.name = Some("worker-1".to_owned());
        assert_good("NodeSLO", &serde_json::to_value(object).unwrap());
    }
    let empty: NodeSLO = serde_json::from_value(json!({"metadata": {"name": "worker-1"}})).unwrap();
    assert_good("NodeSLO", &serde_json::to_value(empty).unwrap());
}
