//! What every object must go through: decoding, encoding without loss, defaulting and validation by its own schema.

use koord_resource::{Duration, Quantity, Resource, declare::Profile};
use koord_schema::structural::{defaults, prune, validate_object};
use koord_types::{
    KINDS, cluster_colocation_profile::ClusterColocationProfile, cluster_network_topology::ClusterNetworkTopology,
    device::Device, elastic_quota::ElasticQuota, elastic_quota_profile::ElasticQuotaProfile, node_metric::NodeMetric,
    node_resource_topology, node_slo::NodeSLO, pod_group::PodGroup, pod_migration_job::PodMigrationJob,
    recommendation::Recommendation, reservation::Reservation, schedule_explanation::ScheduleExplanation,
};
use serde_json::Value;

/// Decodes and encodes an object by its type; none for a kind that is not ours.
pub(crate) fn encoded_again(object: &Value) -> Option<Result<Value, String>> {
    let kind = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let all = [
        again::<Recommendation>,
        again::<ClusterColocationProfile>,
        again::<ElasticQuotaProfile>,
        again::<ClusterNetworkTopology>,
        again::<Device>,
        again::<PodMigrationJob>,
        again::<Reservation>,
        again::<ScheduleExplanation>,
        again::<ElasticQuota>,
        again::<PodGroup>,
        again::<NodeMetric>,
        again::<NodeSLO>,
        again::<node_resource_topology::v1alpha1::NodeResourceTopology>,
        again::<node_resource_topology::v1alpha2::NodeResourceTopology>,
    ];
    assert_eq!(all.len(), KINDS.iter().map(|versions| versions.len()).sum::<usize>());
    all.into_iter().find_map(|again| again(kind, object))
}

fn again<T: Resource>((api_version, kind): (&str, &str), object: &Value) -> Option<Result<Value, String>> {
    let is_it = T::INFO.kind == kind && T::INFO.api_version() == api_version;
    is_it.then(|| {
        let decoded: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
        serde_json::to_value(decoded).map_err(|error| error.to_string())
    })
}

/// What its schema says about an object in one profile, after defaults and pruning.
pub(crate) fn refusals(object: &Value, profile: Profile) -> Vec<String> {
    let mut declared = KINDS.iter().flat_map(|versions| versions.iter());
    let declared = declared
        .find(|one| one.info.kind == object["kind"] && one.info.api_version() == object["apiVersion"])
        .expect("a kind of ours");
    let schema = declared.schema(profile);
    let mut object = object.clone();
    defaults::apply(&schema, &mut object);
    defaults::drop_needless_nulls(&schema, &mut object);
    let dropped = prune::prune(&schema, &mut object);
    let errors = validate_object(&schema, &object, None);
    dropped.iter().map(|path| format!("{path}: unknown field")).chain(errors.iter().map(ToString::to_string)).collect()
}

/// Where `again` lost something of `object`, or says something that it did not.
///
/// Go leaves zero values out, prints quantities canonically and durations fully; so do we.
pub(crate) fn losses(object: &Value, again: &Value) -> Vec<String> {
    let mut losses = Vec::new();
    compare("", object, again, &mut losses);
    losses
}

fn compare(path: &str, object: &Value, again: &Value, losses: &mut Vec<String>) {
    match (object, again) {
        (Value::Object(object), Value::Object(again)) => {
            let keys: std::collections::BTreeSet<&String> = object.keys().chain(again.keys()).collect();
            for key in keys {
                let path = format!("{path}/{key}");
                match (object.get(key), again.get(key)) {
                    (Some(object), Some(again)) => compare(&path, object, again, losses),
                    (Some(only), None) | (None, Some(only)) if is_zero(only) => {}
                    (object, again) => losses.push(format!("{path}: {object:?} became {again:?}")),
                }
            }
        }
        (Value::Array(object), Value::Array(again)) if object.len() == again.len() => {
            for (index, (object, again)) in object.iter().zip(again).enumerate() {
                compare(&format!("{path}/{index}"), object, again, losses);
            }
        }
        (object, again) if object == again || is_zero(object) && is_zero(again) => {}
        (object, again) => {
            let quantity = |value: &Value| serde_json::from_value::<Quantity>(value.clone()).ok();
            let duration = |value: &Value| serde_json::from_value::<Duration>(value.clone()).ok();
            let same = quantity(object).is_some_and(|one| Some(one) == quantity(again))
                || duration(object).is_some_and(|one| Some(one) == duration(again));
            if !same {
                losses.push(format!("{path}: {object} became {again}"));
            }
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == "0" || text == "0s",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

/// Fails unless an object survives decoding and encoding, and its schema accepts it and what came out.
pub(crate) fn assert_good(name: &str, object: &Value) {
    let again = encoded_again(object).unwrap_or_else(|| panic!("{name}: no kind of ours")).unwrap_or_else(|error| {
        panic!("{name}: {error}");
    });
    assert_eq!(losses(object, &again), Vec::<String>::new(), "{name}");
    for profile in [Profile::Compatible, Profile::Hardened] {
        assert_eq!(refusals(object, profile), Vec::<String>::new(), "{name} {profile:?}");
        assert_eq!(refusals(&again, profile), Vec::<String>::new(), "{name} encoded {profile:?}");
    }
}
