//! What a service may say.

use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::{Map, Value, json};

use super::super::pod_checks::{PROTOCOLS, check_ip, port_number, port_number_or_name};
use crate::addresses as internet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const TRAFFIC: [&str; 2] = ["Cluster", "Local"];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const AFFINITY_SECONDS_MAX: i64 = 86400;
const ONCE: &str = "may not change once set";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const NETWORK: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn text<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields[name].as_str().unwrap_or_default()
}

fn list<'a>(fields: &'a Value, name: &str) -> &'a [Value] {
    fields[name].as_array().map_or(&[], Vec::as_slice)
}

fn texts<'a>(fields: &'a Value, name: &str) -> Vec<&'a str> {
    list(fields, name).iter().filter_map(Value::as_str).collect()
}

/// Whether the service has no address of its own.
fn is_headless(spec: &Value) -> bool {
    texts(spec, "clusterIPs") == ["None"]
}

fn fields(spec: &Value) -> std::borrow::Cow<'_, Map<String, Value>> {
    spec.as_object().map_or_else(std::borrow::Cow::default, std::borrow::Cow::Borrowed)
}

/// Checks a new or changed service.
pub(super) fn service(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, at) = (&object["spec"], Path::root("spec"));
    let kind = text(spec, "type");
    let annotations = &object["metadata"]["annotations"];
    let meta_at = Path::root("metadata");
    let annotations_at = meta_at.child("annotations");
    if let (Some(hints), Some(mode)) = (annotations[TOPOLOGY_HINTS].as_str(), annotations[TOPOLOGY_MODE].as_str())
        && hints != mode
    {
        let message = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.invalid(&annotations_at.key(TOPOLOGY_MODE), mode, message);
    }
    let ports_at = at.child("ports");
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.required(&ports_at, "");
    }
    if matches!(kind, "LoadBalancer" | "NodePort") && is_headless(spec) {
        let message = format!("may not be set to 'None' for {kind} services");
        errors.invalid(&at.child("clusterIPs").index(0), "None", message);
    }
    if kind == "ExternalName" {
        external_name(spec, &at, errors);
    }
    ports(spec, &ports_at, errors);
    koord_schema::object_meta::validate_labels(&spec["selector"], &at.child("selector"), errors);
    session_affinity(spec, &at, errors);
    addresses(spec, errors);
    let known = old.map(|old| texts(&old["spec"], "externalIPs")).unwrap_or_default();
    external_addresses(spec, &known, &at.child("externalIPs"), errors);
    match kind {
        "" => errors.required(&at.child("type"), ""),
        _ if !TYPES.contains(&kind) => errors.not_supported(&at.child("type"), kind, &TYPES),
        _ => {}
    }
    node_ports(spec, &ports_at, errors);
    source_ranges(spec, annotations, old, &at, errors);
    if kind == "LoadBalancer" {
        if spec["allocateLoadBalancerNodePorts"].is_null() {
            errors.required(&Path::root("allocateLoadBalancerNodePorts"), "");
        }
        if let Some(class) = spec["loadBalancerClass"].as_str() {
            for message in names::qualified_name(class) {
                errors.invalid(&at.child("loadBalancerClass"), class, message);
            }
        }
    } else {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if !spec[field].is_null() {
                errors.forbidden(&at.child(field), ONLY_BALANCED);
            }
        }
    }
    traffic(spec, &at, errors);
}

fn external_name(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let is_given = spec[field].as_array().map_or(!spec[field].is_null(), |list| !list.is_empty());
        if is_given {
            errors.forbidden(&at.child(field), "may not be set for ExternalName services");
        }
    }
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        errors.required(&at.child("externalName"), "");
    } else {
        for message in names::dns1123_subdomain(name) {
            errors.invalid(&at.child("externalName"), name, message);
        }
    }
}

fn ports(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    let ports = list(spec, "ports");
    for (index, port) in ports.iter().enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        let name_at = at.child("name");
        if name.is_empty() && ports.len() > 1 {
            errors.required(&name_at, "");
        } else if !name.is_empty() {
            for message in names::dns1123_label(name) {
                errors.invalid(&name_at, name, message);
            }
            if seen.contains(&name) {
                errors.duplicate(&name_at, name);
            }
            seen.push(name);
        }
        port_number(port["port"].as_i64().unwrap_or_default(), &at.child("port"), errors);
        let protocol = text(port, "protocol");
        if protocol.is_empty() {
            errors.required(&at.child("protocol"), "");
        } else if !PROTOCOLS.contains(&protocol) {
            errors.not_supported(&at.child("protocol"), protocol, &PROTOCOLS);
        }
        port_number_or_name(&port["targetPort"], &at.child("targetPort"), errors);
        if let Some(application) = port["appProtocol"].as_str() {
            for message in names::qualified_name(application) {
                errors.invalid(&at.child("appProtocol"), application, message);
            }
        }
    }
}

fn session_affinity(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let affinity = text(spec, "sessionAffinity");
    match affinity {
        "" => errors.required(&at.child("sessionAffinity"), ""),
        "ClientIP" | "None" => {}
        _ => errors.not_supported(&at.child("sessionAffinity"), affinity, &["ClientIP", "None"]),
    }
    let config = &spec["sessionAffinityConfig"];
    let config_at = at.child("sessionAffinityConfig");
    if affinity == "None" && config.is_object() {
        errors.forbidden(&config_at, "must not be set when session affinity is None");
    }
    if affinity == "ClientIP"
        && let Some(seconds) = config["clientIP"]["timeoutSeconds"].as_i64()
        && !(1..=AFFINITY_SECONDS_MAX).contains(&seconds)
    {
        let client_at = config_at.child("clientIP");
        let message = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        errors.invalid(&client_at.child("timeoutSeconds"), seconds, message);
    }
}

/// Checks the addresses inside of the cluster and their families.
pub(super) fn addresses(spec: &Value, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let at = Path::root("spec");
    let (one, many) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    let (many_at, families_at) = (at.child("clusterIPs"), at.child("ipFamilies"));
    match many.first() {
        None if !one.is_empty() => errors.required(&many_at, ""),
        Some(first) if !one.is_empty() && *first != one => {
            errors.invalid(&many_at, &many, "first value must match `clusterIP`");
        }
        Some(_) if one.is_empty() => {
            errors.invalid(&many_at, &many, "must be empty when `clusterIP` is not specified");
        }
        _ => {}
    }
    let families = texts(spec, "ipFamilies");
    for (index, family) in families.iter().enumerate() {
        if !FAMILIES.contains(family) {
            errors.not_supported(&families_at.index(index), family, &FAMILIES);
        }
        if families[..index].contains(family) {
            errors.duplicate(&families_at.index(index), family);
        }
    }
    if let Some(policy) = spec["ipFamilyPolicy"].as_str().filter(|policy| !POLICIES.contains(policy)) {
        errors.not_supported(&at.child("ipFamilyPolicy"), policy, &POLICIES);
    }
    let mut has_wrong = false;
    for (index, address) in many.iter().enumerate() {
        if index == 0 && *address == "None" {
            if many.len() > 1 {
                has_wrong = true;
                errors.invalid(&many_at, &many, "'None' must be the first and only value");
            }
            continue;
        }
        has_wrong |= !check_ip(address, &many_at.index(index), errors);
    }
    if many.len() > 2 {
        errors.invalid(&many_at, &many, "may only hold up to 2 values");
    }
    if has_wrong {
        return;
    }
    let is_ipv6 = |address: &str| internet::parse_ip(address).is_some_and(internet::is_ipv6);
    if many.len() > 1 {
        let sixes = many.iter().filter(|address| is_ipv6(address)).count();
        if sixes == 0 || sixes == many.len() {
            errors.invalid(&many_at, &many, "may specify no more than one IP for each IP family");
        }
    }
    if many == ["None"] {
        return;
    }
    for (index, (address, family)) in many.iter().zip(&families).enumerate() {
        if is_ipv6(address) != (*family == "IPv6") && FAMILIES.contains(family) {
            let message = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&many_at.index(index), address, message);
        }
    }
}

fn external_addresses(spec: &Value, known: &[&str], at: &Path<'_>, errors: &mut Errors) {
    for (index, address) in texts(spec, "externalIPs").iter().enumerate() {
        let at = at.index(index);
        if known.contains(address) || check_ip(address, &at, errors) {
            reachable(address, &at, errors);
        }
    }
}

/// Checks that an address can be reached from elsewhere.
fn reachable(address: &str, at: &Path<'_>, errors: &mut Errors) {
    use std::net::IpAddr;
    let Some(ip) = internet::parse_ip(address) else { return };
    let first = |ip: std::net::Ipv6Addr| ip.segments()[0];
    if ip.is_unspecified() {
        errors.invalid(at, address, format!("may not be unspecified ({address})"));
    }
    if ip.is_loopback() {
        errors.invalid(at, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (is_local, is_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (first(ip) & 0xffc0 == 0xfe80, first(ip) & 0xff0f == 0xff02),
    };
    if is_local {
        errors.invalid(at, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if is_local_multicast {
        errors.invalid(at, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

fn node_ports(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let ports = list(spec, "ports");
    let number = |port: &Value| port["nodePort"].as_i64().unwrap_or_default();
    if text(spec, "type") == "ClusterIP" {
        for index in (0..ports.len()).filter(|index| number(&ports[*index]) != 0) {
            errors.forbidden(&at.index(index).child("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| number(port) != 0) {
        let is_same = |other: &Value| other["protocol"] == port["protocol"] && number(other) == number(port);
        if ports[..index].iter().any(is_same) {
            errors.duplicate(&at.index(index).child("nodePort"), number(port));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let is_same = |other: &Value| other["protocol"] == port["protocol"] && other["port"] == port["port"];
        if ports[..index].iter().any(is_same) {
            errors.add(koord_schema::field::FieldError {
                mistake: koord_schema::field::Mistake::Duplicate,
                field: at.index(index).to_string(),
                value: format!(
                    r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
                    port["protocol"], port["port"]
                ),
                detail: String::new(),
            });
        }
    }
}

fn source_ranges(spec: &Value, annotations: &Value, old: Option<&Value>, at: &Path<'_>, errors: &mut Errors) {
    let is_balanced = text(spec, "type") == "LoadBalancer";
    let ranges = texts(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        // QUIRK: the real server's path begins with a capital.
        let at = at.child("LoadBalancerSourceRanges");
        if !is_balanced {
            errors.forbidden(&at, ONLY_BALANCED);
        }
        for (index, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            if !internet::is_network(range) {
                errors.invalid(&at.index(index), range, NETWORK);
            }
        }
        return;
    }
    let Some(listed) = annotations[SOURCE_RANGES].as_str() else { return };
    let meta_at = Path::root("metadata");
    let annotations_at = meta_at.child("annotations");
    let at = annotations_at.key(SOURCE_RANGES);
    if !is_balanced {
        errors.forbidden(&at, ONLY_BALANCED);
    }
    if old.is_none_or(|old| old["metadata"]["annotations"][SOURCE_RANGES] != *listed) && !listed.trim().is_empty() {
        for range in listed.trim().split(',').map(str::trim).filter(|range| !internet::is_network(range)) {
            errors.invalid(&at, range, NETWORK);
        }
    }
}

fn traffic(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let spec_fields = fields(spec);
    let (external_at, check_at) = (at.child("externalTrafficPolicy"), at.child("healthCheckNodePort"));
    let external = text(spec, "externalTrafficPolicy");
    if !super::is_external(&spec_fields) {
        if !external.is_empty() {
            errors.invalid(&external_at, external, "may only be set for externally-accessible services");
        }
    } else if external.is_empty() {
        errors.required(&external_at, "");
    } else if !TRAFFIC.contains(&external) {
        errors.not_supported(&external_at, external, &TRAFFIC);
    }
    let check = spec["healthCheckNodePort"].as_i64().unwrap_or_default();
    match (super::needs_health_check(&spec_fields), check) {
        (false, 0) => {}
        (false, port) => {
            let message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&check_at, port, message);
        }
        (true, 0) => errors.required(&check_at, ""),
        (true, port) => port_number(port, &check_at, errors),
    }
    let internal_at = at.child("internalTrafficPolicy");
    match spec["internalTrafficPolicy"].as_str() {
        None if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.required(&internal_at, "");
        }
        Some(policy) if !TRAFFIC.contains(&policy) => errors.not_supported(&internal_at, policy, &TRAFFIC),
        _ => {}
    }
    if let Some(way) = spec["trafficDistribution"].as_str().filter(|way| !DISTRIBUTIONS.contains(way)) {
        errors.not_supported(&at.child("trafficDistribution"), way, &DISTRIBUTIONS);
    }
}

/// Checks what of a service may change.
pub(super) fn changes(new: &Value, old: &Value, errors: &mut Errors) {
    let (now, before) = (&new["spec"], &old["spec"]);
    let at = Path::root("spec");
    let is_named = |spec: &Value| text(spec, "type") == "ExternalName";
    if !is_named(now) && !is_named(before) {
        let was_headless = is_headless(before);
        if !(was_headless && is_headless(now)) {
            change_of(&texts(now, "clusterIPs"), &texts(before, "clusterIPs"), Change::Addresses, now, errors);
        }
        if !was_headless && !is_headless(now) {
            change_of(&texts(now, "ipFamilies"), &texts(before, "ipFamilies"), Change::Families, now, errors);
        }
    }
    let are_balanced = [now, before].iter().all(|spec| text(spec, "type") == "LoadBalancer");
    if are_balanced && now["loadBalancerClass"] != before["loadBalancerClass"] {
        errors.invalid(&at.child("loadBalancerClass"), &now["loadBalancerClass"], ONCE);
    }
    // The real server checks the class of a changed service here, and again with all else.
    if text(now, "type") == "LoadBalancer" {
        if let Some(class) = now["loadBalancerClass"].as_str() {
            for message in names::qualified_name(class) {
                errors.invalid(&at.child("loadBalancerClass"), class, message);
            }
        }
    } else if !now["loadBalancerClass"].is_null() {
        errors.forbidden(&at.child("loadBalancerClass"), ONLY_BALANCED);
    }
    let need_check = [now, before].iter().all(|spec| super::needs_health_check(&fields(spec)));
    if need_check && now["healthCheckNodePort"] != before["healthCheckNodePort"] {
        errors.forbidden(&at.child("healthCheckNodePort"), "field is immutable");
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Addresses,
    Families,
}

/// The first of a list stays; the second may come and go with the policy.
fn change_of(now: &[&str], before: &[&str], what: Change, spec: &Value, errors: &mut Errors) {
    let at = Path::root("spec");
    let (field, singular) = match what {
        Change::Addresses => ("clusterIPs", "clusterIP"),
        Change::Families => ("ipFamilies", "ipFamily"),
    };
    let list_at = at.child(field);
    // QUIRK: where the number of families changes, the real server shows the addresses.
    let shown =
        if what == Change::Families && now.len() != before.len() { texts(spec, "clusterIPs") } else { now.to_vec() };
    if now.len() == before.len() {
        for index in (0..now.len()).filter(|index| now[*index] != before[*index]) {
            let index = if what == Change::Addresses { index } else { 0 };
            errors.invalid(&list_at.index(index), now, ONCE);
        }
        return;
    }
    let is_empty = if what == Change::Addresses { now.is_empty() } else { texts(spec, "clusterIPs").is_empty() };
    if now.len() < before.len() && is_empty {
        let value = if now.is_empty() { Value::Null } else { json!(now) };
        errors.invalid(&list_at.index(0), value, format!("primary {singular} can not be unset"));
    }
    if let (Some(first), Some(known)) = (now.first(), before.first())
        && first != known
    {
        errors.invalid(&list_at.index(0), &shown, ONCE);
    }
    if now.len() == 1 && before.len() > 1 && text(spec, "ipFamilyPolicy") != "SingleStack" {
        let message = format!("must be set to 'SingleStack' when releasing the secondary {singular}");
        errors.invalid(&at.child("ipFamilyPolicy"), &spec["ipFamilyPolicy"], message);
    }
}

/// Checks what a load balancer reports.
pub(super) fn load_balancer(object: &Value, errors: &mut Errors) {
    let status_at = Path::root("status");
    let balancer_at = status_at.child("loadBalancer");
    let ingress_at = balancer_at.child("ingress");
    let ingress = list(&object["status"]["loadBalancer"], "ingress");
    if text(&object["spec"], "type") != "LoadBalancer" && !ingress.is_empty() {
        errors.forbidden(&ingress_at, "may only be used when `spec.type` is \"LoadBalancer\"");
        return;
    }
    for (index, entry) in ingress.iter().enumerate() {
        let at = ingress_at.index(index);
        let (address, name) = (text(entry, "ip"), text(entry, "hostname"));
        if !address.is_empty() {
            check_ip(address, &at.child("ip"), errors);
        }
        match entry["ipMode"].as_str() {
            None if !address.is_empty() => errors.required(&at.child("ipMode"), "must be specified when `ip` is set"),
            Some(_) if address.is_empty() => {
                errors.forbidden(&at.child("ipMode"), "may not be specified when `ip` is not set");
            }
            Some(mode) if !matches!(mode, "Proxy" | "VIP") => {
                errors.not_supported(&at.child("ipMode"), mode, &["Proxy", "VIP"]);
            }
            _ => {}
        }
        if !name.is_empty() {
            for message in names::dns1123_subdomain(name) {
                errors.invalid(&at.child("hostname"), name, message);
            }
            if internet::parse_ip(name).is_some() {
                errors.invalid(&at.child("hostname"), name, "must be a DNS name, not an IP address");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &Value) -> String {
        let mut errors = Errors::new();
        service(&json!({"spec": spec}), None, &mut errors);
        errors.to_string()
    }

    fn plain(change: &Value) -> Value {
        let mut spec = json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}],
        });
        for (field, value) in change.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        spec
    }

    #[test]
    fn a_plain_service_is_right() {
        assert_eq!(refused(&plain(&json!({}))), "[]");
    }

    #[test]
    fn fields_belong_to_types() {
        assert_eq!(
            refused(&plain(&json!({"externalTrafficPolicy": "Local"}))),
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services"
        );
        assert_eq!(
            refused(&plain(&json!({"type": "ExternalName", "internalTrafficPolicy": null}))),
            "spec.externalName: Required value"
        );
        assert_eq!(
            refused(&plain(
                &json!({"type": "NodePort", "clusterIP": "None", "clusterIPs": ["None"], "externalTrafficPolicy": "Cluster"})
            )),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"
        );
    }

    #[test]
    fn an_address_stays() {
        let of = |address: &str| json!({"spec": {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address]}});
        let mut errors = Errors::new();
        changes(&of("10.0.0.2"), &of("10.0.0.1"), &mut errors);
        assert_eq!(errors.to_string(), "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set");
    }
}
