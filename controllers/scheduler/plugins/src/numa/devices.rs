//! DeviceShare beside this plugin: both must find what a pod wants on the same NUMA nodes (`spec/scheduler.md` 2.12 and 3F.6).

use std::{collections::BTreeSet, sync::Arc};

use koord_engine::{
    cluster::{Class, Cluster},
    columns::Row,
    framework::{Reason, Request},
    pod::Pod,
};
use koord_scheduling::NumaMask;

use super::manager::{Hint, Hints, Provider};
use crate::{
    device_share::{DeviceShare, NumaHint},
    reservation::lots::Source,
};

/// A pod, and the plugin of its profile that would give it devices.
pub(super) struct WantedDevices {
    plugin: DeviceShare,
    pod: Arc<Pod>,
    class: Arc<Class>,
}

/// The devices of one node.
pub(super) struct OfferedDevices<'a> {
    wanted: &'a WantedDevices,
    cluster: &'a Cluster,
    row: Row,
    source: &'a Source,
}

impl WantedDevices {
    /// None where the pod wants no devices, or its profile gives none.
    pub(super) fn of(request: &Request<'_>) -> Option<Self> {
        let plugin = request.plugin::<DeviceShare>().filter(|_| DeviceShare::is_wanted(request.template()))?.clone();
        Some(Self { plugin, pod: Arc::clone(request.pod), class: Arc::clone(request.class) })
    }

    /// Asked about the node of a row.
    pub(super) fn on<'a>(&'a self, cluster: &'a Cluster, row: Row, source: &'a Source) -> OfferedDevices<'a> {
        OfferedDevices { wanted: self, cluster, row, source }
    }
}

impl OfferedDevices<'_> {
    fn request(&self) -> Request<'_> {
        Request { pod: &self.wanted.pod, class: &self.wanted.class, plugins: &[] }
    }
}

impl Provider for OfferedDevices<'_> {
    fn hints<'a>(&'a self, nodes_max: u32, into: &mut Hints<'a>) -> Result<(), Vec<Reason>> {
        let (plugin, request) = (&self.wanted.plugin, self.request());
        let Some(found) = plugin.numa_hints(&request, self.cluster, self.row, nodes_max, self.source) else {
            return Ok(());
        };
        let hint = |NumaHint { nodes, is_preferred, score }: &NumaHint| Hint {
            affinity: Some(*nodes),
            is_preferred: *is_preferred,
            score: *score,
            is_unsatisfied: false,
        };
        let said = |refused| plugin.reasons_of(refused, &request, self.cluster, self.row);
        let (kinds, found) = found.map_err(said)?;
        let names: BTreeSet<String> = kinds.iter().map(ToString::to_string).collect();
        for kind in names {
            into.add(kind, found.iter().map(hint));
        }
        Ok(())
    }

    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        let fits = self.wanted.plugin.fits(&self.request(), self.cluster, self.row, affinity, self.source);
        fits.map_err(|refused| vec![refused.reason()])
    }
}
