//! Which volume of which CSI driver a claim, a disk or an attachment is.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec},
    storage::v1::{CSINode, StorageClass, VolumeAttachment},
};
use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    object::Objects,
    volume::{Disk, DiskKind},
};

use crate::volumes::storage::{class_of_claim, volume_of};

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CsiVolume {
    pub(super) driver: Arc<str>,
    /// What the driver knows it by; the claim of one that is still to be made.
    handle: String,
    /// The plugin that a node has to have handed over to the driver: the volume is none of the driver's before.
    handed_over: Option<&'static str>,
}

/// Which plugins a node has handed over to drivers.
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";
/// Not every node has handed this one over; all others are gone.
const PORTWORX: &str = "kubernetes.io/portworx-volume";

/// Providers whose disks a CSI driver serves: the old name of their volumes, and the driver.
const PROVIDERS: [(DiskKind, &str, &str); 5] = [
    (DiskKind::Aws, "kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    (DiskKind::Gce, "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    (DiskKind::Azure, "kubernetes.io/azure-disk", "disk.csi.azure.com"),
    (DiskKind::Cinder, "kubernetes.io/cinder", "cinder.csi.openstack.org"),
    (DiskKind::Portworx, PORTWORX, "pxd.portworx.com"),
];

impl CsiVolume {
    /// The volume of a claim: the one that it is bound to, or the one that will be made for it.
    pub(super) fn of_claim(key: &ObjectKey, objects: &Objects) -> Option<Self> {
        let claim = objects.get::<PersistentVolumeClaim>(key.as_str())?;
        if let Some(volume) = volume_of(claim).and_then(|name| objects.get::<PersistentVolume>(name)) {
            return Self::of_spec(volume.spec.as_ref()?);
        }
        // Without a class the claim is bound before its pod is scheduled.
        let class = objects.get::<StorageClass>(class_of_claim(claim))?;
        let provider = PROVIDERS.iter().find(|(_, name, _)| *name == class.provisioner);
        let driver = provider.map_or(class.provisioner.as_str(), |(_, _, driver)| *driver);
        let handed_over = handed_over(&class.provisioner);
        Some(Self { driver: driver.into(), handle: format!("the claim {key}"), handed_over })
    }

    /// Whether it is one of its driver on this node.
    pub(super) fn counts_on(&self, node: &CSINode) -> bool {
        let plugins = || node.metadata.annotations.as_ref()?.get(MIGRATED_PLUGINS).map(String::as_str);
        self.handed_over.is_none_or(|plugin| plugins().unwrap_or_default().split(',').any(|known| known == plugin))
    }

    /// The volume of a disk; none where no driver serves such disks.
    pub(super) fn of_disk(disk: &Disk) -> Option<Self> {
        Self::of_provider(disk.kind, &disk.name)
    }

    /// The volume that is attached; none where it is not one of a driver.
    pub(super) fn of_attachment(attachment: &VolumeAttachment, objects: &Objects) -> Option<Self> {
        let volume = attachment.spec.source.persistent_volume_name.as_deref()?;
        let source = objects.get::<PersistentVolume>(volume)?.spec.as_ref()?.csi.as_ref()?;
        let driver = Some(&*attachment.spec.attacher).filter(|attacher| !attacher.is_empty())?;
        Some(Self { driver: driver.into(), handle: source.volume_handle.clone(), handed_over: None })
    }

    fn of_spec(spec: &PersistentVolumeSpec) -> Option<Self> {
        if let Some(source) = &spec.csi {
            let driver = source.driver.as_str().into();
            return Some(Self { driver, handle: source.volume_handle.clone(), handed_over: None });
        }
        let aws = spec.aws_elastic_block_store.as_ref().map(|source| (DiskKind::Aws, &source.volume_id));
        let gce = spec.gce_persistent_disk.as_ref().map(|source| (DiskKind::Gce, &source.pd_name));
        let azure = spec.azure_disk.as_ref().map(|source| (DiskKind::Azure, &source.disk_uri));
        let cinder = spec.cinder.as_ref().map(|source| (DiskKind::Cinder, &source.volume_id));
        let portworx = spec.portworx_volume.as_ref().map(|source| (DiskKind::Portworx, &source.volume_id));
        let (kind, name) = aws.or(gce).or(azure).or(cinder).or(portworx)?;
        Self::of_provider(kind, name)
    }

    fn of_provider(kind: DiskKind, name: &str) -> Option<Self> {
        let (_, plugin, driver) = PROVIDERS.iter().find(|(known, _, _)| *known == kind)?;
        // Ids of volumes at Amazon may be written as `aws://zone/id`.
        let id = if kind == DiskKind::Aws { name.rsplit('/').next().unwrap_or(name) } else { name };
        Some(Self { driver: (*driver).into(), handle: id.to_owned(), handed_over: handed_over(plugin) })
    }
}

fn handed_over(plugin: &str) -> Option<&'static str> {
    (plugin == PORTWORX).then_some(PORTWORX)
}
