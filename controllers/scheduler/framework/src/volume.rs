//! Volumes of pods, as far as it matters to them where the pod runs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Volume as ApiVolume;
use koord_core::key::ObjectKey;

/// A volume that matters to where its pod runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// A PersistentVolumeClaim of this name.
    Claim(Arc<str>),
    /// A volume of this name with a claim of its own, which is made for the pod.
    Ephemeral(Arc<str>),
    /// A disk that the pod names itself.
    Disk(Disk),
}

/// A disk that a pod names itself, without a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disk {
    /// Whose disk it is.
    pub kind: DiskKind,
    /// Its name: that of the disk, the id of the volume, the IQN, or pool and image.
    pub name: Arc<str>,
    /// The Ceph monitors through which it is reached; none for other kinds.
    pub monitors: Vec<Arc<str>>,
    /// Whether the pod only reads it.
    pub read_only: bool,
}

/// The kinds of disks that pods can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskKind {
    /// `gcePersistentDisk`.
    Gce,
    /// `awsElasticBlockStore`.
    Aws,
    /// `azureDisk`.
    Azure,
    /// `cinder`.
    Cinder,
    /// `portworxVolume`.
    Portworx,
    /// `iscsi`.
    Iscsi,
    /// `rbd`.
    Rbd,
}

/// A claim of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodClaim {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Whether it is made for the pod.
    pub is_ephemeral: bool,
}

impl Volume {
    /// The volume of a pod's spec; none where it may be on any node, as a ConfigMap or an empty directory.
    pub fn of(volume: &ApiVolume) -> Option<Self> {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(Self::Claim(claim.claim_name.as_str().into()));
        }
        if volume.ephemeral.is_some() {
            return Some(Self::Ephemeral(volume.name.as_str().into()));
        }
        Disk::of(volume).map(Self::Disk)
    }
}

impl Disk {
    fn of(volume: &ApiVolume) -> Option<Self> {
        let disk = |kind, name: &str, read_only: Option<bool>| Self {
            kind,
            name: name.into(),
            monitors: Vec::new(),
            read_only: read_only == Some(true),
        };
        let gce =
            volume.gce_persistent_disk.as_ref().map(|source| disk(DiskKind::Gce, &source.pd_name, source.read_only));
        let aws = volume.aws_elastic_block_store.as_ref();
        let aws = aws.map(|source| disk(DiskKind::Aws, &source.volume_id, source.read_only));
        let azure = volume.azure_disk.as_ref().map(|source| disk(DiskKind::Azure, &source.disk_uri, source.read_only));
        let cinder = volume.cinder.as_ref().map(|source| disk(DiskKind::Cinder, &source.volume_id, source.read_only));
        let portworx = volume.portworx_volume.as_ref();
        let portworx = portworx.map(|source| disk(DiskKind::Portworx, &source.volume_id, source.read_only));
        let iscsi = volume.iscsi.as_ref().map(|source| disk(DiskKind::Iscsi, &source.iqn, source.read_only));
        let rbd = volume.rbd.as_ref().map(|source| {
            let name = format!("{}/{}", source.pool.as_deref().unwrap_or("rbd"), source.image);
            let monitors = source.monitors.iter().map(|monitor| monitor.as_str().into()).collect();
            Self { monitors, ..disk(DiskKind::Rbd, &name, source.read_only) }
        });
        gce.or(aws).or(azure).or(cinder).or(portworx).or(iscsi).or(rbd)
    }

    /// Whether two pods of one node cannot both have it.
    pub fn conflicts(&self, other: &Self) -> bool {
        let is_same = self.kind == other.kind && self.name == other.name;
        let both_read = self.read_only && other.read_only;
        is_same
            && match self.kind {
                DiskKind::Gce | DiskKind::Iscsi => !both_read,
                DiskKind::Aws => true,
                DiskKind::Rbd => !both_read && self.monitors.iter().any(|monitor| other.monitors.contains(monitor)),
                DiskKind::Azure | DiskKind::Cinder | DiskKind::Portworx => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(source: &Value) -> Option<Volume> {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        Volume::of(&serde_json::from_value(volume).unwrap())
    }

    #[test]
    fn volumes_that_may_be_anywhere_do_not_matter() {
        let other = json!({"emptyDir": {}});
        assert_eq!(
            [other, json!({"configMap": {"name": "c"}}), json!({"hostPath": {"path": "/"}})].map(|v| volume(&v)),
            [None, None, None]
        );
        assert_eq!(volume(&json!({"persistentVolumeClaim": {"claimName": "c"}})), Some(Volume::Claim("c".into())));
        assert_eq!(volume(&json!({"ephemeral": {}})), Some(Volume::Ephemeral("v".into())));
    }

    #[test]
    fn disks_conflict_unless_both_pods_only_read_them() {
        let conflict = |a: &Value, b: &Value| {
            let disk = |source: &Value| match volume(source) {
                Some(Volume::Disk(disk)) => disk,
                other => panic!("{other:?}"),
            };
            disk(a).conflicts(&disk(b))
        };
        let gce = |name: &str, read_only: bool| json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
        assert!(conflict(&gce("a", false), &gce("a", true)) && !conflict(&gce("a", true), &gce("a", true)));
        assert!(!conflict(&gce("a", false), &gce("b", false)));
        let aws = json!({"awsElasticBlockStore": {"volumeID": "a", "readOnly": true}});
        assert!(conflict(&aws, &aws) && !conflict(&aws, &gce("a", false)));
        let rbd = |monitors: &[&str], image: &str| json!({"rbd": {"monitors": monitors, "image": image}});
        assert!(conflict(&rbd(&["a", "b"], "i"), &rbd(&["b", "c"], "i")));
        assert!(!conflict(&rbd(&["a"], "i"), &rbd(&["b"], "i")) && !conflict(&rbd(&["a"], "i"), &rbd(&["a"], "j")));
        let cinder = json!({"cinder": {"volumeID": "a"}});
        assert!(!conflict(&cinder, &cinder));
    }
}
