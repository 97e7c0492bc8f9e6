//! Bandwidth of the QoS classes: shares of the network, or amounts that together fit into it.

use koord_api::slo_config::{Draft, SYSTEM_CONFIG};
use koord_resource::{Quantity, admission::Denial, schema::go_text::quote};
use serde_json::Value;

use super::{Checked, read};

const CLASSES: [(&str, &str); 3] = [("lsrClass", "LSRClass"), ("lsClass", "LSClass"), ("beClass", "BEClass")];
const FIELDS: [(&str, &str); 4] = [
    ("ingressRequest", "IngressRequest"),
    ("ingressLimit", "IngressLimit"),
    ("egressRequest", "EgressRequest"),
    ("egressLimit", "EgressLimit"),
];
const REQUESTS: [&str; 2] = ["ingressRequest", "egressRequest"];

/// Where a strategy stands, as messages say it: for values, for mixed types, for shares, and for amounts.
struct Place {
    path: String,
    mixed: String,
    shares: String,
    amounts: String,
}

/// Checks the bandwidths of `resource-qos-config` against each other and against the network of `system-config`.
///
/// The original does not without `system-config`, takes amounts for shares and the other way round, and knows no
/// network for nodes that `system-config` says nothing about (docs/divergences.md).
pub(super) fn check(qos: &Draft, map: &Checked<'_>) -> Result<(), Denial> {
    let system = match map.data.get(SYSTEM_CONFIG) {
        Some(text) if !text.is_empty() => read(SYSTEM_CONFIG, map)?,
        _ => Draft::default(),
    };
    let everywhere = total(&system.cluster);
    let place = Place {
        path: "ClusterStrategy".to_owned(),
        mixed: "clusterStrategy".to_owned(),
        shares: "ClusterStrategy total net bandwidth percentage already over 100".to_owned(),
        amounts: "total net bandwidth over total network bandwidth in clusterStrategy".to_owned(),
    };
    check_strategy(&qos.cluster, everywhere.as_ref(), &place)?;
    for (index, node) in qos.nodes.iter().enumerate() {
        let same =
            |other: &&koord_api::slo_config::NodeDraft| other.profile.node_selector == node.profile.node_selector;
        let there = system.nodes.iter().find(same).and_then(|other| total(&other.strategy));
        let place = Place {
            path: format!("nodeStrategy.{index}"),
            mixed: format!("nodeStrategy[{index}]"),
            shares: format!("cfg.NodeStrategies[{index}] total net bandwidth percentage already over 100"),
            amounts: format!(
                "total net bandwidth quantity already over total network bandwidth in cfg.NodeStrategies[{index}]"
            ),
        };
        check_strategy(&node.strategy, there.as_ref().or(everywhere.as_ref()), &place)?;
    }
    Ok(())
}

/// The bandwidth of the network, where somebody said it.
fn total(system: &Value) -> Option<Quantity> {
    let total: Quantity = system.get("totalNetworkBandwidth")?.as_str()?.parse().ok()?;
    (total.signum() > 0).then_some(total)
}

fn check_strategy(strategy: &Value, total: Option<&Quantity>, place: &Place) -> Result<(), Denial> {
    for (class, go_class) in CLASSES {
        for (field, go_field) in FIELDS {
            if let Some(value) = bandwidth(strategy, class, field) {
                let wrong = |shown: String, why: String| {
                    let path = &place.path;
                    Denial::bad_request(format!(
                        "ResourceQOSCfg.{path}.{go_class}.{go_field}: Invalid value: {shown}: {why}"
                    ))
                };
                check_value(value, wrong)?;
            }
        }
    }
    for field in REQUESTS {
        let requests = CLASSES.iter().filter_map(|(class, _)| bandwidth(strategy, class, field));
        check_sum(requests, total, place)?;
    }
    Ok(())
}

fn bandwidth<'a>(strategy: &'a Value, class: &str, field: &str) -> Option<&'a Value> {
    strategy.get(class)?.get("networkQOS")?.get(field)
}

fn check_value(value: &Value, wrong: impl Fn(String, String) -> Denial) -> Result<(), Denial> {
    match value {
        Value::String(text) => {
            text.parse::<Quantity>().map(drop).map_err(|error| wrong(quote(text), error.to_string()))
        }
        share if share.as_i64().is_some_and(|share| (0..=100).contains(&share)) => Ok(()),
        share => Err(wrong(share.to_string(), "must be percentage value just in 0-100'".to_owned())),
    }
}

/// The requests of all classes in one direction: all of them shares, or all of them amounts.
fn check_sum<'a>(
    requests: impl Iterator<Item = &'a Value>,
    total: Option<&Quantity>,
    place: &Place,
) -> Result<(), Denial> {
    let (mut shares, mut amounts) = (None, None);
    for request in requests {
        if let Some(share) = request.as_i64() {
            shares = Some(shares.unwrap_or(0i64).saturating_add(share));
        } else if let Some(amount) = request.as_str().and_then(|text| text.parse::<Quantity>().ok()) {
            amounts = Some(amounts.unwrap_or(0i64).saturating_add(amount.value()));
        }
    }
    let refuse = |text: &str| Err(Denial::bad_request(text));
    match (shares, amounts) {
        (Some(_), Some(_)) => {
            refuse(&format!("only one type can be used for percentages or quantity in {}", place.mixed))
        }
        (Some(shares), _) if shares > 100 => refuse(&place.shares),
        (_, Some(amounts)) if total.is_some_and(|total| amounts > total.value()) => refuse(&place.amounts),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use koord_api::slo_config::RESOURCE_QOS_CONFIG;

    use super::*;

    fn refused(qos: &str, system: Option<&str>) -> Option<String> {
        let data: BTreeMap<String, String> =
            system.into_iter().map(|text| (SYSTEM_CONFIG.to_owned(), text.to_owned())).collect();
        let map = Checked {
            namespace: "koordinator-system",
            name: "slo-controller-config",
            data: &data,
            names_needed: false,
        };
        let draft = Draft::read(RESOURCE_QOS_CONFIG, qos).unwrap();
        check(&draft, &map).err().map(|denial| denial.message)
    }

    fn cluster(be: &str, ls: &str) -> String {
        let class = |request: &str| format!(r#"{{"networkQOS":{{"ingressRequest":{request}}}}}"#);
        format!(r#"{{"clusterStrategy":{{"beClass":{},"lsClass":{}}}}}"#, class(be), class(ls))
    }

    #[test]
    fn shares_need_no_network_and_add_up_to_one_hundred() {
        assert_eq!(refused(&cluster("50", "50"), None), None);
        assert_eq!(refused(&cluster("50", "50"), Some(r#"{"clusterStrategy":{"totalNetworkBandwidth":"10"}}"#)), None);
        let over = "ClusterStrategy total net bandwidth percentage already over 100";
        assert_eq!(refused(&cluster("60", "50"), None).as_deref(), Some(over));
    }

    #[test]
    fn amounts_fit_into_the_network_where_it_is_known() {
        let system = r#"{"clusterStrategy":{"totalNetworkBandwidth":"1000M"}}"#;
        assert_eq!(refused(&cluster(r#""500M""#, r#""500M""#), Some(system)), None);
        assert_eq!(refused(&cluster(r#""500M""#, r#""501M""#), None), None);
        let over = "total net bandwidth over total network bandwidth in clusterStrategy";
        assert_eq!(refused(&cluster(r#""500M""#, r#""501M""#), Some(system)).as_deref(), Some(over));
    }

    #[test]
    fn nodes_have_the_network_of_their_own_selector_or_that_of_all() {
        let qos = r#"{"nodeStrategies":[{"nodeSelector":{"matchLabels":{"x":"y"}},"beClass":{"networkQOS":{"egressRequest":"50M"}}}]}"#;
        let system = |node: &str| {
            format!(
                r#"{{"clusterStrategy":{{"totalNetworkBandwidth":"10M"}},"nodeStrategies":[{{"nodeSelector":{{"matchLabels":{{"x":"{node}"}}}},"totalNetworkBandwidth":"100M"}}]}}"#
            )
        };
        assert_eq!(refused(qos, Some(&system("y"))), None);
        let over = "total net bandwidth quantity already over total network bandwidth in cfg.NodeStrategies[0]";
        assert_eq!(refused(qos, Some(&system("z"))).as_deref(), Some(over));
    }

    #[test]
    fn shares_and_amounts_do_not_mix() {
        let mixed = "only one type can be used for percentages or quantity in clusterStrategy";
        assert_eq!(refused(&cluster("10", r#""10M""#), None).as_deref(), Some(mixed));
    }
}
