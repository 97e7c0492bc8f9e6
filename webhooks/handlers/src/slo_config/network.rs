//! Bandwidth of the QoS classes: percentages of the network, or amounts that together fit into it.

use koord_resource::{Quantity, admission::Denial, schema::go_text::quote};
use koord_types::slo_config::{Draft, NodeDraft, SYSTEM_CONFIG};
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

/// What `system-config` says of the network; nothing where it says nothing.
#[derive(Default)]
pub(super) struct Network(Draft);

/// Reads what is known of the network. The key may be absent, empty or `null`; what is there must be readable.
pub(super) fn network(map: &Checked<'_>) -> Result<Network, Denial> {
    let text = map.data.get(SYSTEM_CONFIG).map_or("", |text| text.trim());
    if matches!(text, "" | "null") { Ok(Network::default()) } else { read(SYSTEM_CONFIG, map).map(Network) }
}

/// Checks the bandwidths of `resource-qos-config` by themselves, against each other, and against the network: each
/// rule for all nodes and then for those of each strategy, before the next rule. Percentages add up to 100 at most, amounts to what
/// the nodes may have, where that is known.
pub(super) fn check(qos: &Draft, Network(system): &Network) -> Result<(), Denial> {
    let strategies = || {
        let cluster = std::iter::once((Place::Cluster, &qos.cluster));
        cluster.chain(qos.nodes.iter().enumerate().map(|(index, node)| (Place::Node(index), &node.strategy)))
    };
    for (place, strategy) in strategies() {
        check_values(strategy, &place)?;
    }
    for (place, strategy) in strategies() {
        let (texts, numbers) = requests(strategy).partition::<Vec<_>, _>(|(_, request)| request.is_string());
        if !texts.is_empty() && !numbers.is_empty() {
            return Err(Denial::bad_request(place.mixed()));
        }
    }
    for (place, strategy) in strategies() {
        if exceeds(strategy, 100, Value::as_i64) {
            return Err(Denial::bad_request(place.over_one_hundred()));
        }
    }
    for (place, strategy) in strategies() {
        let total = match place {
            Place::Cluster => total(&system.cluster),
            Place::Node(index) => total_of_node(&qos.nodes[index], system),
        };
        if total.is_some_and(|total| exceeds(strategy, total, bytes)) {
            return Err(Denial::bad_request(place.over_the_network()));
        }
    }
    Ok(())
}

/// Where a strategy stands, as messages say it.
enum Place {
    Cluster,
    Node(usize),
}

impl Place {
    fn path(&self) -> String {
        match self {
            Self::Cluster => "ClusterStrategy".to_owned(),
            Self::Node(index) => format!("nodeStrategy.{index}"),
        }
    }

    fn mixed(&self) -> String {
        let place = match self {
            Self::Cluster => "clusterStrategy".to_owned(),
            Self::Node(index) => format!("nodeStrategy[{index}]"),
        };
        format!("only one type can be used for percentages or quantity in {place}")
    }

    fn over_one_hundred(&self) -> String {
        match self {
            Self::Cluster => "ClusterStrategy total net bandwidth percentage already over 100".to_owned(),
            Self::Node(index) => {
                format!("cfg.NodeStrategies[{index}] total net bandwidth percentage already over 100")
            }
        }
    }

    fn over_the_network(&self) -> String {
        match self {
            Self::Cluster => "total net bandwidth over total network bandwidth in clusterStrategy".to_owned(),
            Self::Node(index) => {
                format!(
                    "total net bandwidth quantity already over total network bandwidth in cfg.NodeStrategies[{index}]"
                )
            }
        }
    }
}

/// The bytes of the network; none where nobody said them.
fn total(system: &Value) -> Option<i64> {
    let total: Quantity = system.get("totalNetworkBandwidth")?.as_str()?.parse().ok()?;
    Some(total.value())
}

/// What the nodes of a strategy may have at most: what `system-config` says of those that it selects in the same words, or for all
/// nodes. Where it selects others in other words, nobody knows which of them are these, and the most that any has counts.
fn total_of_node(node: &NodeDraft, system: &Draft) -> Option<i64> {
    let of_all = total(&system.cluster);
    let own = |other: &NodeDraft| total(&other.strategy).or(of_all);
    let same = |other: &&NodeDraft| other.profile.node_selector == node.profile.node_selector;
    if let Some(other) = system.nodes.iter().find(same) {
        return own(other);
    }
    system.nodes.iter().map(own).try_fold(of_all?, |most, total| Some(most.max(total?)))
}

fn check_values(strategy: &Value, place: &Place) -> Result<(), Denial> {
    for (class, go_class) in CLASSES {
        for (field, go_field) in FIELDS {
            let Some(value) = bandwidth(strategy, class, field) else { continue };
            check_value(value).map_err(|(shown, why)| {
                let path = place.path();
                Denial::bad_request(format!(
                    "ResourceQOSCfg.{path}.{go_class}.{go_field}: Invalid value: {shown}: {why}"
                ))
            })?;
        }
    }
    Ok(())
}

/// What is asked for, of all classes in both directions.
fn requests(strategy: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let fields = CLASSES.into_iter().flat_map(|(class, _)| REQUESTS.map(|field| (class, field)));
    fields.filter_map(move |(class, field)| Some((field, bandwidth(strategy, class, field)?)))
}

/// Whether the requests of one direction that are counted so add up to more than `most`.
fn exceeds(strategy: &Value, most: i64, count: impl Fn(&Value) -> Option<i64>) -> bool {
    REQUESTS.iter().any(|direction| {
        let of_direction = requests(strategy).filter(|(field, _)| field == direction);
        let counted = of_direction.filter_map(|(_, request)| count(request));
        counted.fold(most, i64::saturating_sub) < 0
    })
}

/// An amount of bytes; none of a percentage.
fn bytes(request: &Value) -> Option<i64> {
    Some(request.as_str()?.parse::<Quantity>().ok()?.value())
}

fn bandwidth<'a>(strategy: &'a Value, class: &str, field: &str) -> Option<&'a Value> {
    strategy.get(class)?.get("networkQOS")?.get(field)
}

/// What is wrong with a value: how it is shown, and why.
fn check_value(value: &Value) -> Result<(), (String, String)> {
    match value {
        Value::String(text) => text.parse::<Quantity>().map(drop).map_err(|error| (quote(text), error.to_string())),
        share if share.as_i64().is_some_and(|share| (0..=100).contains(&share)) => Ok(()),
        share => Err((share.to_string(), "must be percentage value just in 0-100'".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use koord_types::slo_config::RESOURCE_QOS_CONFIG;

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
        network(&map).and_then(|network| check(&draft, &network)).err().map(|denial| denial.message)
    }

    fn cluster(be: &str, ls: &str) -> String {
        let class = |request: &str| format!(r#"{{"networkQOS":{{"ingressRequest":{request}}}}}"#);
        format!(r#"{{"clusterStrategy":{{"beClass":{},"lsClass":{}}}}}"#, class(be), class(ls))
    }

    fn bytes(total: &str) -> String {
        format!(r#"{{"clusterStrategy":{{"totalNetworkBandwidth":"{total}"}}}}"#)
    }

    const OVER_100: &str = "ClusterStrategy total net bandwidth percentage already over 100";
    const OVER_NETWORK: &str = "total net bandwidth over total network bandwidth in clusterStrategy";

    #[test]
    fn percentages_are_compared_with_100_and_amounts_with_the_bytes_of_the_network() {
        let refused = |be: &str, ls: &str, total: &str| refused(&cluster(be, ls), Some(&bytes(total)));
        assert_eq!(refused("50", "50", "1000M"), None);
        assert_eq!(refused("60", "50", "1000M").as_deref(), Some(OVER_100));
        assert_eq!(refused(r#""500M""#, r#""1""#, "1000M"), None);
        assert_eq!(refused(r#""500M""#, r#""501M""#, "1000M").as_deref(), Some(OVER_NETWORK));
        assert_eq!(refused(r#""1""#, r#""0""#, "0").as_deref(), Some(OVER_NETWORK));
        assert_eq!(refused(r#""50""#, r#""50m""#, "1000M"), None);
        assert_eq!(refused("50", "0", "10"), None, "percentages are no bytes");
        assert_eq!(refused("0", "0", "0"), None);
    }

    #[test]
    fn amounts_are_not_compared_with_a_network_of_which_nothing_is_said() {
        for system in [None, Some(""), Some(" "), Some("null"), Some("{}"), Some(r#"{"clusterStrategy":{}}"#)] {
            assert_eq!(refused("{}", system), None, "{system:?}");
            assert_eq!(refused(&cluster("50", "50"), system), None, "{system:?}");
            assert_eq!(refused(&cluster(r#""500M""#, r#""1""#), system), None, "{system:?}");
            assert_eq!(refused(&cluster("60", "50"), system).as_deref(), Some(OVER_100), "{system:?}");
        }
        assert!(refused("{}", Some("{")).unwrap().contains("unexpected end of JSON input"));
    }

    #[test]
    fn nodes_have_the_network_of_their_own_selector_or_of_all_or_the_most_that_any_has() {
        let qos = |request: &str| {
            format!(
                r#"{{"nodeStrategies":[{{"nodeSelector":{{"matchLabels":{{"x":"y"}}}},"beClass":{{"networkQOS":{{"egressRequest":{request}}}}}}}]}}"#
            )
        };
        let system = |node: &str, all: &str, own: &str| {
            let own = if own.is_empty() { String::new() } else { format!(r#","totalNetworkBandwidth":"{own}""#) };
            format!(
                r#"{{"clusterStrategy":{{"totalNetworkBandwidth":"{all}"}},"nodeStrategies":[{{"nodeSelector":{{"matchLabels":{{"x":"{node}"}}}}{own}}}]}}"#
            )
        };
        let over = "total net bandwidth quantity already over total network bandwidth in cfg.NodeStrategies[0]";
        let amount = qos(r#""50M""#);
        for (system, refusal) in [
            (system("y", "10M", "100M"), None),
            (system("y", "100M", "10M"), Some(over)),
            (system("y", "100M", ""), None),
            (system("y", "10M", ""), Some(over)),
            (system("z", "10M", "100M"), None),
            (system("z", "100M", "10M"), None),
            (system("z", "10M", "20M"), Some(over)),
            (bytes("100M"), None),
            (bytes("49M"), Some(over)),
            ("{}".to_owned(), None),
            (r#"{"clusterStrategy":{}}"#.to_owned(), None),
        ] {
            assert_eq!(refused(&amount, Some(&system)).as_deref(), refusal, "{system}");
            assert_eq!(refused(&qos("50"), Some(&system)), None, "percentages are no bytes: {system}");
        }
    }

    #[test]
    fn percentages_and_amounts_do_not_mix_not_even_in_two_directions() {
        let mixed = "only one type can be used for percentages or quantity in clusterStrategy";
        assert_eq!(refused(&cluster("10", r#""10M""#), Some("{}")).as_deref(), Some(mixed));
        let directions = r#"{"clusterStrategy":{"beClass":{"networkQOS":{"ingressRequest":10,"egressRequest":"10"}}}}"#;
        assert_eq!(refused(directions, Some("{}")).as_deref(), Some(mixed));
    }

    #[test]
    fn a_rule_is_tried_everywhere_before_the_next_one() {
        let qos = r#"{"clusterStrategy":{"beClass":{"networkQOS":{"ingressRequest":60}},"lsClass":{"networkQOS":{"ingressRequest":60}}},
            "nodeStrategies":[{"nodeSelector":{"matchLabels":{"x":"y"}},"beClass":{"networkQOS":{"egressLimit":101}}}]}"#;
        let value = "ResourceQOSCfg.nodeStrategy.0.BEClass.EgressLimit: Invalid value: 101: must be percentage value just in 0-100'";
        assert_eq!(refused(qos, Some("{}")).as_deref(), Some(value));
    }
}
