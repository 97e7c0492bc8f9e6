//! What a service gets from the cluster: addresses and ports of nodes. One family of addresses is configured, IPv4.

use std::{net::IpAddr, ops::Range};

use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value, json};

use super::{checks, has_node_ports, items, kind, needs_health_check, node_ports, text};
use crate::{addresses, status::ApiError, strategy::WriteContext};

const NODE_PORTS: Range<u64> = 30000..32768;
/// A dry run counts from here.
const DRY_RUN_PORTS: i64 = 32768;
const FAMILY: &str = "IPv4";

/// Completes addresses and ports of a new or changed service; what is wrong with them ends the request before any
/// other check.
pub(super) fn allocate(
    object: &mut Value,
    old: Option<&Value>,
    around: &WriteContext<'_>,
    errors: &mut Errors,
) -> Result<(), ApiError> {
    let Some(mut spec) = object["spec"].as_object().cloned() else { return Ok(()) };
    let before = old.and_then(|old| old["spec"].as_object());
    if let Some(before) = before {
        keep_allocated(&mut spec, before);
    }
    normalise(&mut spec, before);
    init_families(&mut spec, before, errors);
    if errors.is_empty() {
        take_addresses(&mut spec, before, around, errors);
    }
    if errors.is_empty() {
        take_ports(&mut spec, before, around, errors);
    }
    if errors.is_empty() {
        take_health_port(&mut spec, before, around)?;
    }
    object["spec"] = Value::Object(spec);
    Ok(())
}

fn has_address(spec: &Map<String, Value>) -> bool {
    kind(spec) != "ExternalName"
}

fn list(spec: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = spec.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// A client that does not repeat what was allocated keeps it.
fn keep_allocated(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    if has_address(before) && has_address(spec) {
        if text(spec, "clusterIP").is_empty() {
            copy(spec, before, "clusterIP");
        }
        if list(spec, "clusterIPs").is_empty() {
            copy(spec, before, "clusterIPs");
        }
    }
    if has_node_ports(before) && has_node_ports(spec) {
        let (old, new) = (node_ports(before), node_ports(spec));
        let used: Vec<i64> = old.into_iter().filter(|port| new.contains(port)).collect();
        let known: Vec<Value> = before.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
        let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
        for port in items(spec, "ports").filter(|port| !port.contains_key("nodePort")) {
            let own = name(&Value::Object(port.clone()));
            let same = known.iter().rev().find(|known| name(known) == own);
            let number = same.and_then(|known| known["nodePort"].as_i64()).filter(|number| *number != 0);
            if let Some(number) = number.filter(|number| !used.contains(number)) {
                port.insert("nodePort".to_owned(), json!(number));
            }
        }
    }
    if needs_health_check(before) && needs_health_check(spec) && !spec.contains_key("healthCheckNodePort") {
        copy(spec, before, "healthCheckNodePort");
    }
}

fn copy(spec: &mut Map<String, Value>, before: &Map<String, Value>, name: &str) {
    if let Some(value) = before.get(name) {
        spec.insert(name.to_owned(), value.clone());
    }
}

/// Brings `clusterIP` and `clusterIPs` together for clients that know only the first.
fn normalise(spec: &mut Map<String, Value>, before: Option<&Map<String, Value>>) {
    let (one, many) = (text(spec, "clusterIP").to_owned(), list(spec, "clusterIPs"));
    let Some(before) = before else {
        if !one.is_empty() && many.is_empty() {
            spec.insert("clusterIPs".to_owned(), json!([one]));
        }
        return;
    };
    let (old_one, old_many) = (text(before, "clusterIP"), list(before, "clusterIPs"));
    if one == old_one {
        if many.is_empty() && !old_many.is_empty() {
            spec.insert("clusterIPs".to_owned(), json!(old_many));
        }
    } else if many == old_many {
        if one.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".to_owned(), json!([one]));
        }
    }
}

/// Settles which families of addresses the service has.
fn init_families(spec: &mut Map<String, Value>, before: Option<&Map<String, Value>>, errors: &mut Errors) {
    if !has_address(spec) {
        return;
    }
    let is_bare =
        text(spec, "clusterIP") == "None" && spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty);
    if !spec.contains_key("ipFamilyPolicy") {
        let known = before.and_then(|before| before.get("ipFamilyPolicy").cloned());
        let default = json!(if is_bare { "RequireDualStack" } else { "SingleStack" });
        spec.insert("ipFamilyPolicy".to_owned(), known.unwrap_or(default));
    }
    let whole = Value::Object(spec.clone());
    checks::addresses(&whole, errors);
    if !errors.is_empty() {
        return;
    }
    let at = Path::root("spec");
    let policy_at = at.child("ipFamilyPolicy");
    let policy = text(spec, "ipFamilyPolicy").to_owned();
    let single = policy == "SingleStack";
    let (addresses, mut families) = (list(spec, "clusterIPs"), list(spec, "ipFamilies"));
    for (count, what) in [(addresses.len(), "cluster IPs"), (families.len(), "IP families")] {
        if single && count == 2 {
            let message = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.invalid(&policy_at, &policy, message);
        }
    }
    for (index, address) in addresses.iter().enumerate().take_while(|(_, address)| *address != "None") {
        let is_ipv6 = addresses::parse_ip(address).is_some_and(addresses::is_ipv6);
        if index < families.len() {
            continue;
        }
        if is_ipv6 {
            let message = "IPv6 is not configured on this cluster";
            errors.invalid(&at.child("clusterIPs").index(index), &addresses, message);
        } else {
            families.push(FAMILY.to_owned());
        }
    }
    if !errors.is_empty() {
        return;
    }
    if is_bare {
        if families.is_empty() {
            families.push(FAMILY.to_owned());
        }
        if families.len() < 2 && !single {
            let other = if families[0] == FAMILY { "IPv6" } else { FAMILY };
            families.push(other.to_owned());
        }
    } else {
        if policy == "RequireDualStack" {
            errors.invalid(&policy_at, &policy, "this cluster is not configured for dual-stack services");
        }
        for (index, family) in families.iter().enumerate().filter(|(_, family)| *family != FAMILY) {
            errors.invalid(&at.child("ipFamilies").index(index), family, "not configured on this cluster");
        }
        if families.is_empty() {
            families.push(FAMILY.to_owned());
        }
    }
    spec.insert("ipFamilies".to_owned(), json!(families));
}

fn take_addresses(
    spec: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    around: &WriteContext<'_>,
    errors: &mut Errors,
) {
    let mut known = list(spec, "clusterIPs");
    if !has_address(spec) || known.first().is_some_and(|address| address == "None") {
        return;
    }
    let kept = before.filter(|before| has_address(before)).map(|before| list(before, "clusterIPs")).unwrap_or_default();
    for index in 0..list(spec, "ipFamilies").len() {
        match known.get(index).filter(|address| !address.is_empty()).cloned() {
            None => {
                let address = free_address(around);
                known.truncate(index);
                known.push(address);
            }
            Some(address) if kept.contains(&address) => {}
            Some(address) => {
                let refusal = if !is_in_range(&address) {
                    Some("the provided network does not match the current range".to_owned())
                } else if !around.dry_run && is_taken(&address, around) {
                    Some("provided IP is already allocated".to_owned())
                } else {
                    None
                };
                if let Some(why) = refusal {
                    let at = Path::root("spec");
                    let message = format!("failed to allocate IP {address}: {why}");
                    return errors.invalid(&at.child("clusterIPs"), &known, message);
                }
            }
        }
    }
    if let Some(first) = known.first() {
        spec.insert("clusterIP".to_owned(), json!(first));
    }
    spec.insert("clusterIPs".to_owned(), json!(known));
}

fn is_in_range(address: &str) -> bool {
    matches!(addresses::parse_ip(address), Some(IpAddr::V4(address)) if address.octets()[..2] == [10, 0])
}

fn is_taken(address: &str, around: &WriteContext<'_>) -> bool {
    let mut others = around.store.collection(around.collection).range("", "");
    others.any(|(_, record)| record.fields.first().is_some_and(|known| **known == *address))
}

/// An address that no other service has.
fn free_address(around: &WriteContext<'_>) -> String {
    let mut number = around.random;
    for _ in 0..256 {
        let address = format!("10.0.{}.{}", (number >> 8) & 0xff, 1 + number % 254);
        if !is_taken(&address, around) {
            return address;
        }
        number = next(number);
    }
    "10.0.0.2".to_owned()
}

fn next(number: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)
}

fn take_ports(
    spec: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    around: &WriteContext<'_>,
    errors: &mut Errors,
) {
    let kept = before.map(node_ports).unwrap_or_default();
    let allocates = kind(spec) == "NodePort"
        || (kind(spec) == "LoadBalancer" && spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)));
    if has_node_ports(spec) {
        let mut by_port: Vec<(Value, i64)> = Vec::new();
        let mut taken = node_ports(spec);
        let mut random = around.random;
        for (index, port) in items(spec, "ports").enumerate() {
            let number = port.get("nodePort").and_then(Value::as_i64).unwrap_or_default();
            let own = port.get("port").cloned().unwrap_or_default();
            if number != 0 {
                if !kept.contains(&number)
                    && let Some(why) = refusal(number, around)
                {
                    let at = Path::root("spec");
                    let ports_at = at.child("ports");
                    return errors.invalid(&ports_at.index(index).child("nodePort"), number, why);
                }
                by_port.push((own, number));
            } else if allocates {
                // The same port under two protocols has the same port of the nodes.
                let number = by_port.iter().find(|(known, _)| *known == own).map(|(_, number)| *number);
                let number = number.unwrap_or_else(|| free_port(&mut random, &taken, around));
                taken.push(number);
                by_port.push((own, number));
                port.insert("nodePort".to_owned(), json!(number));
            }
        }
    }
}

/// The port by which a load balancer sees whether a node has pods of the service.
fn take_health_port(
    spec: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    around: &WriteContext<'_>,
) -> Result<(), ApiError> {
    if !needs_health_check(spec) {
        return Ok(());
    }
    let known = |spec: &Map<String, Value>| spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
    let asked = known(spec);
    if asked == 0 {
        let mut random = next(around.random);
        let number = free_port(&mut random, &node_ports(spec), around);
        spec.insert("healthCheckNodePort".to_owned(), json!(number));
    } else if before.map(known) != Some(asked)
        && let Some(why) = refusal(asked, around)
    {
        let message = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
        return Err(ApiError::internal(message));
    }
    Ok(())
}

fn refusal(number: i64, around: &WriteContext<'_>) -> Option<String> {
    // A dry run takes no port, and does not look whether it could.
    if !around.dry_run && !u64::try_from(number).is_ok_and(|number| NODE_PORTS.contains(&number)) {
        let range = format!("{}-{}", NODE_PORTS.start, NODE_PORTS.end - 1);
        return Some(format!("provided port is not in the valid range. The range of valid ports is {range}"));
    }
    is_port_taken(number, around).then(|| "provided port is already allocated".to_owned())
}

fn is_port_taken(number: i64, around: &WriteContext<'_>) -> bool {
    let fields = ["nodePort", "healthCheckNodePort"];
    let wanted = fields.map(|field| [format!("\"{field}\":{number},"), format!("\"{field}\":{number}}}")]).concat();
    let holds = |tail: &[u8], text: &str| tail.windows(text.len()).any(|window| window == text.as_bytes());
    let mut others = around.store.collection(around.collection).range("", "");
    others.any(|(_, record)| wanted.iter().any(|text| holds(record.tail(), text)))
}

fn free_port(random: &mut u64, taken: &[i64], around: &WriteContext<'_>) -> i64 {
    if around.dry_run {
        // A dry run shows ports that nothing can have.
        let last = taken.iter().copied().filter(|number| *number != 0).max();
        return last.unwrap_or(DRY_RUN_PORTS) + 1;
    }
    let mut number = 0;
    for _ in 0..256 {
        *random = next(*random);
        let offset = (*random >> 16) % (NODE_PORTS.end - NODE_PORTS.start);
        number = i64::try_from(NODE_PORTS.start + offset).unwrap_or(30000);
        if !taken.contains(&number) && !is_port_taken(number, around) {
            break;
        }
    }
    number
}
