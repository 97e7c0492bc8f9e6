//! Traffic control: HTB classes of the node's network card, and how packets of pods find theirs.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::Arc,
};

use koord_koordlet_framework::Pod;
use koord_types::{
    node_slo::{NetQosPolicy, ResourceQosStrategy},
    pod_annotations::NETWORK_QOS,
    qos::QosClass,
};

use super::{Bandwidths, bandwidth};
use crate::{pod_view::PodView, refused::Refused, values::Wanted};

/// The major number of the queueing discipline; its handle is `1:0` and packets without a class go to `1:2`.
pub const MAJOR: u16 = 1;
pub const DEFAULT_MINOR: u16 = SYSTEM_MINOR;
const ROOT_MINOR: u16 = 1;
const SYSTEM_MINOR: u16 = 2;
const LS_MINOR: u16 = 3;
const BE_MINOR: u16 = 4;
/// Classes of single pods begin here.
const POD_MINOR_MIN: u16 = 0x100;

const CLASSES: &str = "NodeSLO resourceQOSStrategy.*.networkQOS";
/// The smallest burst, in bytes.
const BURST_BYTES_MIN: u64 = 200;
/// The largest packet, in bytes.
const PACKET_BYTES: u64 = 1600;
/// How often the kernel gives a class its share.
const TICKS_PER_SECOND: u64 = 250;

/// Everything of ours that is on the node's network card, the one of the default route. Without a plan nothing of ours is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficPlan {
    /// Classes, parents first.
    pub classes: Vec<TrafficClass>,
    /// Sets of the type `hash:ip` with the addresses of pods without a class of their own: their packets go to the class.
    pub address_sets: BTreeMap<&'static str, BTreeSet<Ipv4Addr>>,
    /// Rules of the chain POSTROUTING of the table mangle: packets from an address in the set are classified as `1:minor`.
    pub marks: Vec<(&'static str, u16)>,
    /// Packets from this address go to the class `1:minor`.
    pub pod_filters: Vec<(Ipv4Addr, u16)>,
}

/// A class of the discipline `htb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficClass {
    pub minor: u16,
    /// `None` for the class below the discipline itself.
    pub parent: Option<u16>,
    pub rate_bytes: u64,
    pub ceil_bytes: u64,
    pub priority: u32,
    pub burst_bytes: u64,
    /// The pod whose class it is.
    pub pod_uid: Option<Arc<str>>,
}

/// The classes of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrafficRule {
    total_bits: i64,
    ls: Option<Bandwidths>,
    be: Option<Bandwidths>,
}

/// Which pods have which class of their own. A pod keeps its class as long as it is limited.
#[derive(Debug, Default)]
pub(crate) struct PodMinors(BTreeMap<Arc<str>, u16>);

impl TrafficRule {
    /// The rule of a merged strategy; `None` when the policy is another one, no class is enabled, or the bandwidth of the node is not known.
    pub(crate) fn new(strategy: &ResourceQosStrategy, total_bits: i64, refused: &mut Vec<Refused>) -> Option<Self> {
        let policy = strategy.policies.as_ref().and_then(|policies| policies.net_qos_policy.as_ref());
        if policy.is_some_and(|policy| *policy != NetQosPolicy::Tc && !policy.as_str().is_empty()) {
            return None;
        }
        let mut class = |class| {
            Bandwidths::of_class(class, total_bits).unwrap_or_else(|reason| {
                refused.push(Refused::node(CLASSES, reason));
                None
            })
        };
        let (ls, be) = (class(strategy.ls_class.as_ref()), class(strategy.be_class.as_ref()));
        if ls.is_none() && be.is_none() {
            return None;
        }
        if total_bits <= 0 {
            refused
                .push(Refused::node("NodeSLO systemStrategy.totalNetworkBandwidth", "it is needed to limit classes"));
            return None;
        }
        Some(Self { total_bits, ls, be })
    }

    /// The limit of a pod's packets to others, in bits per second; `None` when it has none of its own.
    fn pod_limit(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<i64> {
        let network = pod.read(&NETWORK_QOS, refused).ok()??;
        if network.enable == Some(false) {
            return None;
        }
        match bandwidth(network.egress_limit.as_ref(), self.total_bits) {
            Ok(limit) => limit.filter(|bits| *bits > 0),
            Err(reason) => {
                refused.push(pod.refusal(NETWORK_QOS.name(), reason));
                None
            }
        }
    }

    /// The classes, filters and sets for these pods, and the class of each pod.
    pub(crate) fn plan(
        &self,
        pods: &[(&Pod, PodView<'_>)],
        minors: &mut PodMinors,
        refused: &mut Vec<Refused>,
    ) -> (TrafficPlan, BTreeMap<Arc<str>, Wanted<u32>>) {
        let mut plan = TrafficPlan { classes: self.classes(), ..TrafficPlan::default() };
        for (set, minor) in [("system_class", SYSTEM_MINOR), ("ls_class", LS_MINOR), ("be_class", BE_MINOR)] {
            plan.address_sets.insert(set, BTreeSet::new());
            plan.marks.push((set, minor));
        }
        let limits: Vec<Option<i64>> = pods.iter().map(|(_, view)| self.pod_limit(view, refused)).collect();
        let limited = pods.iter().zip(&limits).filter(|(_, limit)| limit.is_some()).map(|((pod, _), _)| &pod.uid);
        minors.keep(limited.cloned().collect());
        let mut of_pods = BTreeMap::new();
        for ((pod, _), limit) in pods.iter().zip(limits) {
            let (set, class_minor, priority) = match pod.qos() {
                Some(QosClass::System) => ("system_class", SYSTEM_MINOR, 1),
                Some(QosClass::Be) => ("be_class", BE_MINOR, 3),
                _ => ("ls_class", LS_MINOR, 2),
            };
            let own = limit.and_then(|bits| Some((bits, minors.minor(&pod.uid)?)));
            let class = match own {
                Some((bits, minor)) => {
                    let bytes = (bits / 8).unsigned_abs();
                    let uid = Some(Arc::clone(&pod.uid));
                    plan.classes
                        .push(TrafficClass { pod_uid: uid, ..class(minor, Some(ROOT_MINOR), bytes, bytes, priority) });
                    let formula = format!("own class 1:{minor:x} of {bits} bit/s / 8 = {bytes} bytes/s");
                    Wanted::new(handle(minor), NETWORK_QOS.name(), formula)
                }
                None => Wanted::new(handle(class_minor), CLASSES, format!("class 1:{class_minor}")),
            };
            of_pods.insert(Arc::clone(&pod.uid), class);
            // The address of a pod on the host's network is that of the node; such pods are known by their cgroup.
            let addresses =
                pod.ips.iter().filter(|_| !pod.uses_host_network).filter_map(|ip| ip.parse::<Ipv4Addr>().ok());
            match own {
                Some((_, minor)) => plan.pod_filters.extend(addresses.map(|address| (address, minor))),
                None => {
                    if let Some(set) = plan.address_sets.get_mut(set) {
                        set.extend(addresses);
                    }
                }
            }
        }
        (plan, of_pods)
    }

    fn classes(&self) -> Vec<TrafficClass> {
        let bytes = |bits: i64| (bits.max(0) / 8).unsigned_abs();
        let total = bytes(self.total_bits);
        let requests =
            [self.ls, self.be].into_iter().flatten().fold(0, |sum: i64, of| sum.saturating_add(of.egress_request));
        let of_class = |minor, class_of: Option<Bandwidths>, priority| match class_of {
            Some(of) => class(minor, Some(ROOT_MINOR), bytes(of.egress_request), bytes(of.egress_limit), priority),
            // A class that is not enabled is not limited.
            None => class(minor, Some(ROOT_MINOR), 0, total, priority),
        };
        vec![
            class(ROOT_MINOR, None, total, total, 0),
            class(SYSTEM_MINOR, Some(ROOT_MINOR), bytes(self.total_bits.saturating_sub(requests)), total, 1),
            of_class(LS_MINOR, self.ls, 2),
            of_class(BE_MINOR, self.be, 3),
        ]
    }
}

/// A class; without a ceiling it is the rate, and a rate of 0 is 1 byte, as the kernel refuses 0.
fn class(minor: u16, parent: Option<u16>, rate_bytes: u64, ceil_bytes: u64, priority: u32) -> TrafficClass {
    let rate_bytes = rate_bytes.max(1);
    let ceil_bytes = if ceil_bytes == 0 { rate_bytes } else { ceil_bytes };
    let burst_bytes = (ceil_bytes / TICKS_PER_SECOND).saturating_add(PACKET_BYTES).max(BURST_BYTES_MIN);
    TrafficClass { minor, parent, rate_bytes, ceil_bytes, priority, burst_bytes, pod_uid: None }
}

/// The number of a class: `1:3` is 65539.
fn handle(minor: u16) -> u32 {
    (u32::from(MAJOR) << 16) | u32::from(minor)
}

impl PodMinors {
    /// Gives each of these pods a class, and takes them from others.
    fn keep(&mut self, pods: BTreeSet<Arc<str>>) {
        self.0.retain(|uid, _| pods.contains(uid));
        let mut used: BTreeSet<u16> = self.0.values().copied().collect();
        for pod in pods {
            if !self.0.contains_key(&pod)
                && let Some(minor) = (POD_MINOR_MIN..=u16::MAX).find(|minor| !used.contains(minor))
            {
                used.insert(minor);
                self.0.insert(pod, minor);
            }
        }
    }

    fn minor(&self, uid: &str) -> Option<u16> {
        self.0.get(uid).copied()
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_framework::read_pod;
    use koord_koordlet_system::{Driver, Layout, Version};
    use serde_json::json;

    use super::*;

    fn rule() -> TrafficRule {
        let strategy = serde_json::from_value(json!({
            "lsClass": {"networkQOS": {"enable": true, "egressRequest": 50, "egressLimit": 100}},
            "beClass": {"networkQOS": {"enable": true, "egressRequest": "200M"}},
        }));
        TrafficRule::new(&strategy.unwrap(), 1_000_000_000, &mut Vec::new()).unwrap()
    }

    fn pod(name: &str, qos: &str, ip: &str, host: bool, network: &str) -> Pod {
        let annotations = if network.is_empty() { json!({}) } else { json!({"koordinator.sh/networkQOS": network}) };
        let text = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "annotations": annotations, "labels": {"koordinator.sh/qosClass": qos}},
            "spec": {"containers": [], "hostNetwork": host},
            "status": {"phase": "Running", "qosClass": "Burstable", "podIP": ip},
        });
        read_pod(&text.to_string(), Layout::new(Version::V1, Driver::Cgroupfs)).unwrap()
    }

    #[test]
    fn classes_divide_the_bandwidth_of_the_node() {
        let rates: Vec<_> = rule()
            .classes()
            .iter()
            .map(|class| (class.minor, class.rate_bytes, class.ceil_bytes, class.priority))
            .collect();
        let expected = [
            (1, 125_000_000, 125_000_000, 0),
            (2, 37_500_000, 125_000_000, 1),
            (3, 62_500_000, 125_000_000, 2),
            (4, 25_000_000, 25_000_000, 3),
        ];
        assert_eq!(rates, expected);
        assert!(rule().classes().iter().all(|class| class.burst_bytes >= 200));
    }

    #[test]
    fn nothing_is_divided_where_no_class_is_enabled() {
        let mut refused = Vec::new();
        for (strategy, total, refusals) in [
            (json!({}), 1000, 0),
            (json!({"lsClass": {"networkQOS": {"egressLimit": 50}}}), 1000, 0),
            (json!({"policies": {"netQOSPolicy": "terway-qos"}, "lsClass": {"networkQOS": {"enable": true}}}), 1000, 0),
            (json!({"lsClass": {"networkQOS": {"enable": true}}}), 0, 1),
            (json!({"lsClass": {"networkQOS": {"enable": true, "egressLimit": "fast"}}}), 1000, 1),
        ] {
            refused.clear();
            let strategy_ = serde_json::from_value(strategy.clone()).unwrap();
            assert_eq!(TrafficRule::new(&strategy_, total, &mut refused), None, "{strategy}");
            assert_eq!(refused.len(), refusals, "{strategy}");
        }
    }

    #[test]
    fn packets_of_pods_find_their_class() {
        let pods = [
            pod("ls", "LS", "10.0.0.1", false, ""),
            pod("be", "BE", "10.0.0.2", false, ""),
            pod("sys", "SYSTEM", "10.0.0.3", false, ""),
            pod("six", "LS", "fd00::1", false, ""),
            pod("new", "LS", "", false, ""),
            pod("host", "LS", "192.168.0.1", true, ""),
            pod("limited", "LS", "10.0.0.4", false, r#"{"egressLimit":"80M"}"#),
            pod("host-limited", "BE", "192.168.0.1", true, r#"{"egressLimit":10}"#),
            // A limit of what comes in has no class.
            pod("ingress", "LS", "10.0.0.5", false, r#"{"ingressLimit":"80M"}"#),
            pod("bad", "LS", "10.0.0.6", false, "{"),
        ];
        let views: Vec<_> = pods.iter().map(|pod| (pod, PodView::of_pod(pod, None))).collect();
        let (mut minors, mut refused) = (PodMinors::default(), Vec::new());
        let (plan, classes) = rule().plan(&views, &mut minors, &mut refused);
        let ips = |ips: &[&str]| ips.iter().map(|ip| ip.parse().unwrap()).collect::<BTreeSet<Ipv4Addr>>();
        assert_eq!(plan.address_sets["ls_class"], ips(&["10.0.0.1", "10.0.0.5", "10.0.0.6"]));
        assert_eq!(plan.address_sets["be_class"], ips(&["10.0.0.2"]));
        assert_eq!(plan.address_sets["system_class"], ips(&["10.0.0.3"]));
        assert_eq!(plan.marks, [("system_class", 2), ("ls_class", 3), ("be_class", 4)]);
        assert_eq!(plan.pod_filters, [("10.0.0.4".parse().unwrap(), 0x101)]);
        let own: Vec<_> = plan.classes.iter().skip(4).map(|class| (class.minor, class.rate_bytes)).collect();
        // Bits become bytes once.
        assert_eq!(own, [(0x101, 10_000_000), (0x100, 12_500_000)]);
        let class = |name: &str| classes[name].value;
        assert_eq!([class("ls"), class("be"), class("sys"), class("host")], [65_539, 65_540, 65_538, 65_539]);
        assert_eq!([class("limited"), class("host-limited")], [0x1_0101, 0x1_0100]);
        assert_eq!(refused.len(), 1);
        // A pod keeps its class when others come and go.
        let (plan, _) = rule().plan(&views[6..7], &mut minors, &mut refused);
        assert_eq!(plan.pod_filters, [("10.0.0.4".parse().unwrap(), 0x101)]);
    }
}
