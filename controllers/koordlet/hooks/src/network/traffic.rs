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
