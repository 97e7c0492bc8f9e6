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
