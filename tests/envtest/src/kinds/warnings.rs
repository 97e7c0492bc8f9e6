//! Warnings about objects that are valid but probably not what the user meant.

mod volumes;

use std::collections::BTreeMap;

use koord_resource::Quantity;
use koord_schema::names;
use serde_json::Value;

use crate::metadata;

/// Labels of nodes that have another name today.
const OLD_NODE_LABELS: &[(&str, &str, &str)] = &[
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
];

/// A name that is no name of a host; `used_in` says where it becomes one.
pub(super) fn host_name(object: &Value, used_in: &str) -> Option<String> {
    let wrong = names::dns1123_label(metadata::text(object, "name"));
    let listed = wrong.join(" ");
    (!wrong.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {used_in}, which can result in surprising behavior; a DNS label is recommended: [{listed}]"
        )
    })
}

/// What is odd about a template of pods at `at`.
pub(super) fn of_template(template: &Value, at: &str) -> Vec<String> {
    let spec = &template["spec"];
    let mut warnings = of_pod(spec, &format!("{at}.spec"));
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{at}.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    warnings
}

/// What is odd about the spec of a pod at `at`.
pub(super) fn of_pod(spec: &Value, at: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (old, since, new) in OLD_NODE_LABELS {
        if spec["nodeSelector"].get(*old).is_some() {
            warnings.push(format!(r#"{at}.nodeSelector[{old}]: deprecated since {since}; use "{new}" instead"#));
        }
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").enumerate() {
        let at = format!("{at}.topologySpreadConstraints[{index}]");
        let topology = constraint["topologyKey"].as_str().unwrap_or_default();
        if let Some((_, since, new)) = OLD_NODE_LABELS.iter().find(|(old, _, _)| *old == topology) {
            warnings.push(format!(r#"{at}.topologyKey: {topology} is deprecated since {since}; use "{new}" instead"#));
        }
        if constraint["labelSelector"].is_null() {
            warnings.push(format!("{at}.labelSelector: a null labelSelector results in matching no pod"));
        }
    }
    warnings.extend(volumes::overlapping(spec));
    for (index, ip) in repeated(spec, "hostAliases", "ip") {
        warnings.push(format!("{at}.hostAliases[{index}].ip: duplicate ip {ip:?}"));
    }
    for (index, name) in repeated(spec, "imagePullSecrets", "name") {
        warnings.push(format!("{at}.imagePullSecrets[{index}].name: duplicate name {name:?}"));
    }
    for (index, secret) in list(spec, "imagePullSecrets").enumerate() {
        if secret["name"].as_str().unwrap_or_default().is_empty() {
            warnings.push(format!(r#"{at}.imagePullSecrets[{index}].name: invalid empty name """#));
        }
    }
    let containers = || {
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|kind| {
            list(spec, kind).enumerate().map(move |(index, container)| (format!("{at}.{kind}[{index}]"), container))
        })
    };
    for (at, container) in containers() {
        warnings.extend(of_amounts(&container["resources"], &at));
        warnings.extend(of_environment(container, &at));
    }
    let ports = containers().flat_map(|(at, container)| {
        list(container, "ports").enumerate().map(move |(index, port)| (format!("{at}.ports[{index}]"), port))
    });
    warnings.extend(of_ports(ports));
    warnings
}

fn list<'a>(fields: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    fields[name].as_array().into_iter().flatten()
}

/// Items whose `key`, which must say something, an earlier item has.
fn repeated<'a>(fields: &'a Value, name: &str, key: &'a str) -> Vec<(usize, &'a str)> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for (index, text) in list(fields, name).enumerate().filter_map(|(index, item)| Some((index, item[key].as_str()?))) {
        if !text.is_empty() && seen.contains(&text) {
            found.push((index, text));
        }
        seen.push(text);
    }
    found
}

fn of_amounts(resources: &Value, at: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for resource in ["memory", "ephemeral-storage"] {
        for side in ["limits", "requests"] {
            let Some(text) = resources[side][resource].as_str() else { continue };
            if text.parse::<Quantity>().is_ok_and(|amount| amount.milli_value() % 1000 != 0) {
                warnings.push(format!(
                    "{at}.resources.{side}[{resource}]: fractional byte value {text:?} is invalid, must be an integer"
                ));
            }
        }
    }
    warnings
}

/// Variables that an earlier one of the same name is lost by: it may only be used in the later one's text.
fn of_environment(container: &Value, at: &str) -> Vec<String> {
    repeated(container, "env", "name")
        .into_iter()
        .filter(|(index, name)| {
            let variable = &container["env"][*index];
            let reference = format!("$({name})");
            let text = variable["value"].as_str().unwrap_or_default();
            !variable["valueFrom"].is_null() || text == reference || !text.contains(&reference)
        })
        .map(|(index, name)| {
            format!("{at}.env[{index}]: hides previous definition of {name:?}, which may be dropped when using apply")
        })
        .collect()
}

fn of_ports<'a>(ports: impl Iterator<Item = (String, &'a Value)>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut known: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
    for (at, port) in ports {
        let host_port = |port: &Value| port["hostPort"].as_i64().unwrap_or_default();
        let host_ip = |port: &'a Value| port["hostIP"].as_str().unwrap_or_default();
        if !host_ip(port).is_empty() && host_port(port) == 0 {
            warnings.push(format!("{at}: hostIP set without hostPort: {}", shown_port(port)));
        }
        let number = port["containerPort"].as_i64().unwrap_or_default();
        let others = known.entry((number, port["protocol"].as_str().unwrap_or_default())).or_default();
        for (other_at, other) in &*others {
            let how = if host_ip(port) == host_ip(other) && host_port(port) == host_port(other) {
                "duplicate"
            } else if host_port(port) == 0 || host_port(other) == 0 {
                "overlapping"
            } else if host_port(port) == host_port(other) && host_ip(port).is_empty() != host_ip(other).is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{at}: {how} port definition with {other_at}"));
        }
        others.push((at, port));
    }
    warnings
}

/// A port as Go prints the struct.
fn shown_port(port: &Value) -> String {
    let text = |field: &str| port[field].as_str().unwrap_or_default();
    let number = |field: &str| port[field].as_i64().unwrap_or_default();
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text("name"),
        number("hostPort"),
        number("containerPort"),
        text("protocol"),
        text("hostIP")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_variable_that_uses_the_earlier_one_hides_nothing() {
        let variables =
            json!([{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]);
        let warnings = of_pod(&json!({"containers": [{"env": variables}]}), "spec");
        let hidden =
            r#"spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply"#;
        assert_eq!(warnings, [hidden]);
    }

    #[test]
    fn ports_of_all_containers_are_compared() {
        let port =
            |host: i64, ip: &str| json!({"containerPort": 80, "protocol": "TCP", "hostPort": host, "hostIP": ip});
        let warnings = of_pod(
            &json!({"containers": [{"ports": [port(0, "")]}, {"ports": [port(0, "")]}, {"ports": [port(9, ""), port(9, "::1")]}]}),
            "spec",
        );
        let kinds: Vec<&str> = warnings.iter().map(|text| text.split(" port").next().unwrap()).collect();
        assert_eq!(
            kinds,
            [
                "spec.containers[1].ports[0]: duplicate",
                "spec.containers[2].ports[0]: overlapping",
                "spec.containers[2].ports[0]: overlapping",
                "spec.containers[2].ports[1]: overlapping",
                "spec.containers[2].ports[1]: overlapping",
                "spec.containers[2].ports[1]: dangerously ambiguous",
            ]
        );
    }
}
