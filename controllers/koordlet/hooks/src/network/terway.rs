//! Network QoS by the agent of Terway: the files that it reads.

use std::{collections::BTreeMap, fmt::Write as _};

use koord_koordlet_framework::Pod;
use koord_koordlet_system::QosFolder;
use koord_types::{
    node_slo::{NetQosPolicy, ResourceQosStrategy},
    pod_annotations::NETWORK_QOS,
    qos::QosClass,
};
use serde::Serialize;

use super::{Bandwidths, bandwidth};
use crate::{pod_view::PodView, refused::Refused};

/// Below the folder of Terway.
pub const POD_FILE: &str = "qos/pod.json";
pub const NODE_FILE: &str = "qos/global_bps_config";
const TOTAL: &str = "NodeSLO systemStrategy.totalNetworkBandwidth";
const CLASSES: &str = "NodeSLO resourceQOSStrategy.*.networkQOS";

/// What the files say. Without a plan they do not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerwayFiles {
    /// `pod.json`: the limits of each pod, by uid.
    pub pods: String,
    /// `global_bps_config`: the limits of the node and its classes, in bytes per second.
    pub node: String,
}

/// The bandwidths of the node and its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerwayRule {
    total_bits: i64,
    node: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodLimits<'a> {
    pod_name: &'a str,
    pod_namespace: &'a str,
    #[serde(rename = "podUID")]
    pod_uid: &'a str,
    prio: u8,
    cgroup_dir: String,
    qos_config: Limits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    ingress_bandwidth: i64,
    egress_bandwidth: i64,
}

impl TerwayRule {
    /// The rule of a merged strategy; `None` when the policy is another one, or a bandwidth is refused.
    pub(crate) fn new(strategy: &ResourceQosStrategy, total_bits: i64, refused: &mut Vec<Refused>) -> Option<Self> {
        let policy = strategy.policies.as_ref().and_then(|policies| policies.net_qos_policy.as_ref());
        if policy != Some(&NetQosPolicy::TerwayQos) {
            return None;
        }
        let mut class = |class| match Bandwidths::of_class(class, total_bits) {
            Ok(bandwidths) => {
                let bandwidths = bandwidths.unwrap_or_default();
                let largest = [
                    bandwidths.egress_request,
                    bandwidths.egress_limit,
                    bandwidths.ingress_request,
                    bandwidths.ingress_limit,
                ]
                .into_iter()
                .fold(0, i64::max);
                if largest > total_bits {
                    let reason = format!("{largest} bit/s are more than the {total_bits} of the node");
                    refused.push(Refused::node(TOTAL, reason));
                    return None;
                }
                Some(bandwidths)
            }
            Err(reason) => {
                refused.push(Refused::node(CLASSES, reason));
                None
            }
        };
        let (l1, l2) = (class(strategy.ls_class.as_ref())?, class(strategy.be_class.as_ref())?);
        let lines = [
            ("hw_tx_bps_max", total_bits),
            ("hw_rx_bps_max", total_bits),
            ("offline_l1_tx_bps_min", l1.egress_request),
            ("offline_l1_tx_bps_max", l1.egress_limit),
            ("offline_l2_tx_bps_min", l2.egress_request),
            ("offline_l2_tx_bps_max", l2.egress_limit),
            ("offline_l1_rx_bps_min", l1.ingress_request),
            ("offline_l1_rx_bps_max", l1.ingress_limit),
            ("offline_l2_rx_bps_min", l2.ingress_request),
            ("offline_l2_rx_bps_max", l2.ingress_limit),
        ];
        let node = lines.iter().fold(String::new(), |mut text, (key, bits)| {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{key} {}", bits / 8);
            text
        });
        Some(Self { total_bits, node })
    }

    /// The files for these pods. A pod whose limits cannot be read is left out.
    pub(crate) fn files(&self, pods: &[(&Pod, PodView<'_>)], refused: &mut Vec<Refused>) -> TerwayFiles {
        let mut limits = BTreeMap::new();
        for (pod, view) in pods {
            let Ok(network) = view.read(&NETWORK_QOS, refused) else { continue };
            let network = network.filter(|network| network.enable != Some(false)).unwrap_or_default();
            let bytes = |value| Ok::<_, String>(bandwidth(value, self.total_bits)?.unwrap_or(0) / 8);
            let found = bytes(network.ingress_limit.as_ref()).and_then(|ingress_bandwidth| {
                let egress_bandwidth = bytes(network.egress_limit.as_ref())?;
                Ok(Limits { ingress_bandwidth, egress_bandwidth })
            });
            match found {
                Ok(qos_config) => {
                    let of_pod = PodLimits {
                        pod_name: &pod.name,
                        pod_namespace: &pod.namespace,
                        pod_uid: &pod.uid,
                        prio: priority(pod),
                        cgroup_dir: format!("/sys/fs/cgroup/net_cls/{}", pod.cgroup.as_str()),
                        qos_config,
                    };
                    limits.insert(&*pod.uid, of_pod);
                }
                Err(reason) => refused.push(view.refusal(NETWORK_QOS.name(), reason)),
            }
        }
        // Strings and integers can always be written.
        let pods = serde_json::to_string(&limits).unwrap_or_default();
        TerwayFiles { pods, node: self.node.clone() }
    }
}

fn priority(pod: &Pod) -> u8 {
    match pod.qos_label {
        Some(QosClass::System) => 0,
        Some(QosClass::Lse | QosClass::Lsr | QosClass::Ls) => 1,
        Some(QosClass::Be) => 2,
        _ => match pod.folder() {
            QosFolder::Guaranteed | QosFolder::Burstable => 1,
            QosFolder::BestEffort => 2,
        },
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_framework::read_pod;
    use koord_koordlet_system::{Driver, Layout, Version};
    use serde_json::json;

    use super::*;

    fn rule(class: &serde_json::Value) -> Result<TerwayRule, Vec<String>> {
        let strategy = json!({"policies": {"netQOSPolicy": "terway-qos"}, "lsClass": {"networkQOS": class}});
        let mut refused = Vec::new();
        let rule = TerwayRule::new(&serde_json::from_value(strategy).unwrap(), 1_000_000_000, &mut refused);
        rule.ok_or(refused.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn bandwidths_of_the_node_are_bytes() {
        let rule =
            rule(&json!({"enable": true, "egressRequest": 50, "egressLimit": "800M", "ingressLimit": 100})).unwrap();
        let expected = "hw_tx_bps_max 125000000\nhw_rx_bps_max 125000000\noffline_l1_tx_bps_min 62500000\n\
            offline_l1_tx_bps_max 100000000\noffline_l2_tx_bps_min 0\noffline_l2_tx_bps_max 0\noffline_l1_rx_bps_min 0\n\
            offline_l1_rx_bps_max 125000000\noffline_l2_rx_bps_min 0\noffline_l2_rx_bps_max 0\n";
        assert_eq!(rule.node, expected);
    }

    #[test]
    fn more_than_the_node_has_is_refused() {
        let error = "node: NodeSLO systemStrategy.totalNetworkBandwidth: 2000000000 bit/s are more than the 1000000000 of the node";
        assert_eq!(rule(&json!({"enable": true, "egressLimit": "2G"})), Err(vec![error.to_owned()]));
        let strategy = serde_json::from_value(json!({"policies": {"netQOSPolicy": "tc"}})).unwrap();
        assert_eq!(TerwayRule::new(&strategy, 1000, &mut Vec::new()), None);
    }

    #[test]
    fn pods_have_their_limits_and_priority() {
        let pod = |name: &str, qos: &str, class: &str, network: &str| {
            let annotations =
                if network.is_empty() { json!({}) } else { json!({"koordinator.sh/networkQOS": network}) };
            let text = json!({
                "metadata": {"name": name, "namespace": "shop", "uid": name, "annotations": annotations, "labels": {"koordinator.sh/qosClass": qos}},
                "status": {"qosClass": class},
            });
            read_pod(&text.to_string(), Layout::new(Version::V1, Driver::Cgroupfs)).unwrap()
        };
        let pods = [
            pod("ls", "LS", "Burstable", r#"{"egressLimit":"80M","ingressLimit":10}"#),
            pod("one-way", "SYSTEM", "Burstable", r#"{"egressLimit":"80M"}"#),
            pod("be", "", "BestEffort", ""),
            pod("bad", "LS", "Burstable", r#"{"egressLimit":"fast"}"#),
        ];
        let views: Vec<_> = pods.iter().map(|pod| (pod, PodView::of_pod(pod, None))).collect();
        let mut refused = Vec::new();
        let files = rule(&json!({"enable": true})).unwrap().files(&views, &mut refused);
        let found: serde_json::Value = serde_json::from_str(&files.pods).unwrap();
        let expected = |name: &str, prio: u8, dir: &str, ingress: i64, egress: i64| {
            json!({"podName": name, "podNamespace": "shop", "podUID": name, "prio": prio,
                "cgroupDir": format!("/sys/fs/cgroup/net_cls/kubepods/{dir}/pod{name}"),
                "qosConfig": {"ingressBandwidth": ingress, "egressBandwidth": egress}})
        };
        let all = json!({
            "ls": expected("ls", 1, "burstable", 12_500_000, 10_000_000),
            "one-way": expected("one-way", 0, "burstable", 0, 10_000_000),
            "be": expected("be", 2, "besteffort", 0, 0),
        });
        assert_eq!(found, all);
        assert_eq!(
            refused[0].to_string(),
            "pod shop/bad: koordinator.sh/networkQOS: \"fast\" is no bandwidth such as 50M"
        );
    }
}
