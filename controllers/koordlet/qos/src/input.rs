//! What strategies look at in one round.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeSlo, NodeTopology, Pod};
use koord_koordlet_metrics::{Measure, Store, Subject};
use koord_koordlet_system::{
    DeviceNumber, Disks, FileTree, Kernel, Roots,
    resctrl::{CacheMask, Vendor},
};

use crate::{eviction::Ledger, feature::Features};

/// What is known of the node in one round. Nothing changes while strategies run.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub now: Moment,
    /// The time of day, for what is reported.
    pub time: Timestamp,
    /// How often usage is sampled.
    pub collect_interval: Duration,
    pub features: Features,
    /// How often each object has changed.
    pub generations: Generations,
    /// `None` before it was received.
    pub node: Option<&'a Node>,
    /// `None` before it was received.
    pub slo: Option<&'a NodeSlo>,
    /// `None` before it was discovered.
    pub topology: Option<&'a NodeTopology>,
    pub pods: &'a [Arc<Pod>],
    pub store: &'a Store,
    pub kernel: &'a dyn Kernel,
    /// The trees in which system files are.
    pub roots: &'a Roots,
    /// System files, such as `/proc/sys/vm/min_free_kbytes`.
    pub files: &'a dyn FileTree,
    /// Pods that were evicted and are still present.
    pub evicted: &'a Ledger,
    /// `None` before they were discovered.
    pub disks: Option<&'a dyn PodDisks>,
    /// `None` where caches and bandwidth cannot be shared out.
    pub resctrl: Option<&'a Resctrl>,
}

/// How often objects have changed, so that what follows from objects alone is computed only when one of them has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generations {
    pub pods: u64,
    pub node: u64,
    pub slo: u64,
    pub topology: u64,
    /// Of disks and PersistentVolumeClaims.
    pub disks: u64,
}

/// How caches and bandwidth can be shared out on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resctrl {
    pub vendor: Vendor,
    /// All ways of the L3 cache; `None` where the kernel reports none, or a mask with gaps.
    pub cache: Option<CacheMask>,
}

/// Where disks are looked up.
pub trait PodDisks {
    /// The disks of the machine.
    fn disks(&self) -> &Disks;

    /// The PersistentVolume of a claim.
    fn volume_of_claim(&self, namespace: &str, claim: &str) -> Option<Arc<str>>;

    /// The folder of the kubelet, in which volumes are mounted.
    fn kubelet_folder(&self) -> &Path;

    /// The disk behind a volume that a CSI driver mounted for a pod.
    fn of_csi_volume(&self, pod_uid: &str, volume: &str) -> Option<DeviceNumber> {
        let mount = self.kubelet_folder().join("pods").join(pod_uid).join("volumes/kubernetes.io~csi");
        self.disks().of_mount_point(mount.join(volume).join("mount").to_str()?)
    }
}

impl Input<'_> {
    /// The youngest sample, unless it is older than two rounds of collection.
    pub fn last(&self, subject: Subject<'_>, measure: Measure) -> Option<f64> {
        self.store.last(subject, measure, self.now, self.collect_interval * 2).map(|sample| sample.value)
    }

    /// The mean of the samples of a span that ends now.
    pub fn average(&self, subject: Subject<'_>, measure: Measure, span: Duration) -> Option<f64> {
        self.store.window(subject, measure, self.before(span), self.now).average()
    }

    /// The time this long ago.
    pub fn before(&self, span: Duration) -> Moment {
        Moment::at(self.now.since(Moment::default()).saturating_sub(span))
    }
}
