//! HorizontalPodAutoscalers, one store in two versions: `v1` knows a single CPU target, and keeps what else `v2` says in
//! annotations.

mod checks;
mod metrics;

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use self::metrics::{Side, flat_text, from_flat_text, in_order};
use super::{
    pod_template::{below, fill},
    workload_checks::not_negative,
};
use crate::{
    metadata,
    strategy::{Strategy, WriteContext},
};

const OLD: &str = "autoscaling/v1";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// What is aimed at where nobody says.
const CPU_PERCENT_DEFAULT: i64 = 80;
const FIRST_METRIC: &str = "spec.metrics[0].resource.target.averageUtilization";
/// Fields of the behavior: in `v2`, and as the annotation names them.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];
const POLICY: [(&str, &str); 3] = [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];
const DIRECTIONS: [(&str, &str); 2] = [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")];

pub(super) struct Autoscalers;

impl Strategy for Autoscalers {
    fn has_status(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let is_old = object["apiVersion"] == OLD;
        let has_metrics = object["metadata"]["annotations"][METRICS]
            .as_str()
            .and_then(|text| from_flat_text(Side::Wanted, text))
            .is_some_and(|metrics| !metrics.is_empty());
        let Some(spec) = object["spec"].as_object_mut() else { return };
        fill(spec, "minReplicas", json!(1));
        if is_old {
            if !has_metrics {
                fill(spec, "targetCPUUtilizationPercentage", json!(CPU_PERCENT_DEFAULT));
            }
            return;
        }
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".to_owned(), json!([cpu_metric(&json!(CPU_PERCENT_DEFAULT))]));
        }
        if let Some(behavior) = below(spec, "behavior") {
            fill(behavior, "scaleUp", json!({}));
            fill(behavior, "scaleDown", json!({}));
            if let Some(up) = below(behavior, "scaleUp") {
                fill(up, "stabilizationWindowSeconds", json!(0));
                fill(up, "selectPolicy", json!("Max"));
                let policies = json!([
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15},
                ]);
                fill(up, "policies", policies);
            }
            if let Some(down) = below(behavior, "scaleDown") {
                fill(down, "selectPolicy", json!("Max"));
                fill(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
            }
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        show_metrics(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {
        show_metrics(new);
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        let spec = &object["spec"];
        let most = spec["maxReplicas"].as_i64().unwrap_or_default();
        if let Some(least) = spec["minReplicas"].as_i64().filter(|least| *least < 1) {
            errors.invalid(&at.child("minReplicas"), least, "must be greater than or equal to 1");
        }
        if most < 1 {
            errors.invalid(&at.child("maxReplicas"), most, "must be greater than 0");
        }
        if spec["minReplicas"].as_i64().is_some_and(|least| most < least) {
            errors.invalid(&at.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`");
        }
        let target_at = at.child("scaleTargetRef");
        checks::reference(&spec["scaleTargetRef"], &target_at, errors);
        if !names_group(&object["spec"]) {
            let given = spec["scaleTargetRef"]["apiVersion"].as_str().unwrap_or_default();
            errors.invalid(&target_at.child("apiVersion"), given, "apiVersion must specify API group");
        }
        if spec["minReplicas"] == 0 && !wakes_from_zero(object) {
            let why = "must specify at least one Object or External metric to support scaling to zero replicas";
            errors.forbidden(&at.child("metrics"), why);
        }
        checks::metrics(&spec["metrics"], &at.child("metrics"), errors);
        if let Some(percent) = spec["targetCPUUtilizationPercentage"].as_i64().filter(|percent| *percent < 1) {
            // The old version's one number is the new version's first metric.
            errors.invalid(&Path::root(FIRST_METRIC), percent, "must be greater than 0");
        }
        checks::behavior(&spec["behavior"], &at.child("behavior"), errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            not_negative(&new["status"], &["currentReplicas", "desiredReplicas"], &Path::root("status"), errors);
        }
        if subresource.is_empty() {
            let mut found = Errors::new();
            self.check_create(new, &mut found);
            let (now, before) = (&new["spec"]["scaleTargetRef"], &old["spec"]["scaleTargetRef"]);
            // A kind that names no group already may stay so.
            let is_same_kind = now["kind"] == before["kind"] && now["apiVersion"] == before["apiVersion"];
            for error in found.iter().filter(|error| !is_same_kind || error.field != "spec.scaleTargetRef.apiVersion") {
                errors.add(error.clone());
            }
        }
    }

    fn converts(&self, from: &str, to: &str) -> bool {
        from != to
    }

    fn convert(&self, object: &mut Value, from: &str, _to: &str) {
        if from == OLD { to_new(object) } else { to_old(object) }
    }
}

/// The newer form has a list of metrics even when none was seen.
fn show_metrics(object: &mut Value) {
    if object["apiVersion"] != OLD && object["status"]["currentMetrics"].is_null() {
        object["status"]["currentMetrics"] = Value::Null;
    }
}

/// Whether the target's version names a group; replication controllers alone have none.
fn names_group(spec: &Value) -> bool {
    let target = &spec["scaleTargetRef"];
    target["kind"] == "ReplicationController" || target["apiVersion"].as_str().unwrap_or_default().contains('/')
}

/// Whether some metric can be seen while no pod runs.
fn wakes_from_zero(object: &Value) -> bool {
    let noted = object["metadata"]["annotations"][METRICS].as_str();
    let noted = noted.filter(|_| object["apiVersion"] == OLD).and_then(|text| from_flat_text(Side::Wanted, text));
    let mut metrics = object["spec"]["metrics"].as_array().into_iter().flatten().chain(noted.iter().flatten());
    metrics.any(|metric| metric["type"] == "Object" || metric["type"] == "External")
}

fn cpu_metric(percent: &Value) -> Value {
    json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    })
}

fn is_cpu_percentage(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && !metric["resource"]["target"]["averageUtilization"].is_null()
}

fn take_list(object: &mut Value, part: &str, field: &str) -> Vec<Value> {
    let taken = object[part].as_object_mut().and_then(|fields| fields.remove(field));
    match taken {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn to_old(object: &mut Value) {
    let metrics = take_list(object, "spec", "metrics");
    if let Some(first) = metrics.iter().find(|metric| is_cpu_percentage(metric)) {
        object["spec"]["targetCPUUtilizationPercentage"] = first["resource"]["target"]["averageUtilization"].clone();
    }
    if metrics.iter().any(|metric| !is_cpu_percentage(metric)) {
        let others = metrics.iter().filter(|metric| !is_cpu_percentage(metric));
        annotate(object, METRICS, &flat_text(Side::Wanted, others));
    }
    let seen = take_list(object, "status", "currentMetrics");
    for metric in seen.iter().filter(|metric| metric["type"] == "Resource" && metric["resource"]["name"] == "cpu") {
        let percent = &metric["resource"]["current"]["averageUtilization"];
        if !percent.is_null() {
            object["status"]["currentCPUUtilizationPercentage"] = percent.clone();
        }
    }
    if !seen.is_empty() {
        annotate(object, CURRENT_METRICS, &flat_text(Side::Seen, seen.iter()));
    }
    let behavior = object["spec"].as_object_mut().and_then(|spec| spec.remove("behavior"));
    if let Some(behavior) = behavior.filter(Value::is_object) {
        annotate(object, BEHAVIOR, &behavior_text(&behavior));
    }
    let conditions = take_list(object, "status", "conditions");
    if !conditions.is_empty() {
        let order = ["type", "status", "lastTransitionTime", "reason", "message"];
        let texts: Vec<String> = conditions.iter().map(|condition| in_order(condition, &order)).collect();
        annotate(object, CONDITIONS, &format!("[{}]", texts.join(",")));
    }
}

fn annotate(object: &mut Value, name: &str, text: &str) {
    metadata::of_mut(object).entry("annotations").or_insert_with(|| json!({}))[name] = json!(text);
}

fn to_new(object: &mut Value) {
    let mut notes = serde_json::Map::new();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            notes.extend(annotations.remove_entry(name));
        }
        if annotations.is_empty() {
            metadata::of_mut(object).remove("annotations");
        }
    }
    let note = |name: &str| notes.get(name).and_then(Value::as_str);
    let percent = object["spec"].as_object_mut().and_then(|spec| spec.remove("targetCPUUtilizationPercentage"));
    let mut metrics = note(METRICS).and_then(|text| from_flat_text(Side::Wanted, text)).unwrap_or_default();
    metrics.extend(percent.filter(|percent| !percent.is_null()).map(|percent| cpu_metric(&percent)));
    if metrics.is_empty() {
        metrics.push(cpu_metric(&json!(CPU_PERCENT_DEFAULT)));
    }
    object["spec"]["metrics"] = Value::Array(metrics);
    if let Some(behavior) = note(BEHAVIOR).and_then(behavior_from) {
        object["spec"]["behavior"] = behavior;
    }
    let percent = object["status"].as_object_mut().and_then(|status| status.remove("currentCPUUtilizationPercentage"));
    if let Some(seen) = note(CURRENT_METRICS).and_then(|text| from_flat_text(Side::Seen, text)) {
        object["status"]["currentMetrics"] = Value::Array(seen);
    } else if let Some(percent) = percent.filter(|percent| !percent.is_null()) {
        let resource = json!({"name": "cpu", "current": {"averageUtilization": percent}});
        object["status"]["currentMetrics"] = json!([{"type": "Resource", "resource": resource}]);
    }
    show_metrics(object);
    let conditions = note(CONDITIONS).and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(conditions) = conditions.filter(Value::is_array) {
        object["status"]["conditions"] = conditions;
    }
}

/// The behavior as Go writes a type without JSON names: every field, under its own name.
fn behavior_text(behavior: &Value) -> String {
    let renamed = |object: &Value, names: &[(&str, &str)]| {
        let fields: Vec<String> = names.iter().map(|(name, go)| format!("\"{go}\":{}", object[*name])).collect();
        format!("{{{}}}", fields.join(","))
    };
    let directions: Vec<String> = DIRECTIONS
        .iter()
        .map(|(name, go)| {
            let rules = &behavior[*name];
            if !rules.is_object() {
                return format!("\"{go}\":null");
            }
            let fields: Vec<String> = RULES
                .iter()
                .map(|(name, go)| match rules[*name].as_array() {
                    Some(policies) => {
                        let policies: Vec<String> = policies.iter().map(|policy| renamed(policy, &POLICY)).collect();
                        format!("\"{go}\":[{}]", policies.join(","))
                    }
                    None => format!("\"{go}\":{}", rules[*name]),
                })
                .collect();
            format!("\"{go}\":{{{}}}", fields.join(","))
        })
        .collect();
    format!("{{{}}}", directions.join(","))
}

fn behavior_from(text: &str) -> Option<Value> {
    let written: Value = serde_json::from_str(text).ok()?;
    let renamed = |object: &Value, names: &[(&str, &str)]| {
        let fields = names.iter().filter(|(_, go)| !object[*go].is_null());
        fields.map(|(name, go)| ((*name).to_owned(), object[*go].clone())).collect::<serde_json::Map<_, _>>()
    };
    let mut behavior = serde_json::Map::new();
    for (name, go) in DIRECTIONS {
        if !written[go].is_object() {
            continue;
        }
        let mut rules = renamed(&written[go], &RULES);
        if let Some(Value::Array(policies)) = rules.get_mut("policies") {
            for policy in policies {
                *policy = Value::Object(renamed(policy, &POLICY));
            }
        }
        behavior.insert(name.to_owned(), Value::Object(rules));
    }
    (!behavior.is_empty()).then_some(Value::Object(behavior))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_object() -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {
                "minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "d"},
                "metrics": [
                    {"type": "Pods", "pods": {
                        "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"},
                    }},
                    {"type": "Object", "object": {
                        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
                        "metric": {"name": "depth", "selector": {"matchLabels": {"q": "x"}}},
                        "target": {"type": "Value", "value": "2k"},
                    }},
                    {"type": "Resource", "resource": {
                        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60},
                    }},
                ],
                "behavior": {"scaleDown": {
                    "stabilizationWindowSeconds": 60, "selectPolicy": "Min",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}],
                }},
            },
            "status": {
                "desiredReplicas": 2,
                "currentMetrics": [{"type": "Resource", "resource": {
                    "name": "cpu", "current": {"averageUtilization": 55, "averageValue": "110m"},
                }}],
                "conditions": [{"type": "AbleToScale", "status": "True", "reason": "R", "message": "m"}],
            },
        })
    }

    #[test]
    fn the_old_version_keeps_what_it_cannot_say_in_annotations() {
        let mut object = new_object();
        Autoscalers.convert(&mut object, "autoscaling/v2", OLD);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 60);
        assert_eq!(object["status"]["currentCPUUtilizationPercentage"], 55);
        assert!(object["spec"].get("metrics").is_none() && object["spec"].get("behavior").is_none());
        let note = |name: &str| object["metadata"]["annotations"][name].as_str().unwrap();
        assert_eq!(
            note(METRICS),
            r#"[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"depth","targetValue":"2k","selector":{"matchLabels":{"q":"x"}}}}]"#
        );
        assert_eq!(
            note(CURRENT_METRICS),
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":55,"currentAverageValue":"110m"}}]"#
        );
        assert_eq!(
            note(BEHAVIOR),
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":30}],"Tolerance":null}}"#
        );
        assert_eq!(note(CONDITIONS), r#"[{"type":"AbleToScale","status":"True","reason":"R","message":"m"}]"#);
    }

    #[test]
    fn there_and_back_is_the_same() {
        let mut object = new_object();
        Autoscalers.convert(&mut object, "autoscaling/v2", OLD);
        Autoscalers.convert(&mut object, OLD, "autoscaling/v2");
        assert_eq!(object, new_object());
    }

    #[test]
    fn a_broken_annotation_is_as_good_as_none() {
        let mut object = json!({
            "apiVersion": OLD, "metadata": {"annotations": {METRICS: "{", BEHAVIOR: "7", "mine": "x"}},
            "spec": {"maxReplicas": 3}, "status": {},
        });
        Autoscalers.set_defaults(&mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 80);
        Autoscalers.convert(&mut object, OLD, "autoscaling/v2");
        assert_eq!(object["metadata"]["annotations"], json!({"mine": "x"}));
        assert_eq!(object["spec"]["metrics"], json!([cpu_metric(&json!(80))]));
        assert!(object["spec"].get("behavior").is_none());
    }

    #[test]
    fn nothing_is_added_to_an_object_that_has_no_annotations() {
        let mut object =
            json!({"apiVersion": OLD, "metadata": {"name": "a"}, "spec": {"maxReplicas": 3}, "status": {}});
        Autoscalers.convert(&mut object, OLD, "autoscaling/v2");
        assert_eq!(object["metadata"], json!({"name": "a"}));
        assert_eq!(object["status"], json!({}));
    }

    #[test]
    fn a_target_names_its_group() {
        let refusals = |target: Value, old: Option<Value>| {
            let object = |target: &Value| json!({"spec": {"maxReplicas": 1, "scaleTargetRef": target}});
            let mut errors = Errors::new();
            match old {
                None => Autoscalers.check_create(&object(&target), &mut errors),
                Some(old) => Autoscalers.check_update(&object(&target), &object(&old), "", &mut errors),
            }
            errors.iter().count()
        };
        let bare = json!({"kind": "Deployment", "name": "d"});
        assert_eq!(refusals(bare.clone(), None), 1);
        assert_eq!(refusals(json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}), None), 0);
        assert_eq!(refusals(json!({"kind": "ReplicationController", "name": "d", "apiVersion": "v1"}), None), 0);
        assert_eq!(refusals(bare.clone(), Some(bare)), 0);
    }
}
