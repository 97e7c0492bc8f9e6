//! The volumes of a node and its attachments, counted anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::storage::v1::VolumeAttachment;
use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Subject},
    columns::Row,
};

use super::{Attached, OnRow};

impl Attached {
    /// Compares the volumes of a node with those of its pods, and sets right what differs.
    pub(super) fn audit_row(&mut self, cluster: &Cluster, row: Row) -> Option<String> {
        let mut actual = OnRow::default();
        let with_volumes = cluster.pods_on(row).filter(|placed| !placed.pod.template.volumes.is_empty());
        with_volumes.for_each(|placed| actual.add(&placed.pod));
        let nothing = OnRow::default();
        let cached = self.rows.get(&row).unwrap_or(&nothing);
        if *cached == actual {
            return None;
        }
        let uses = |of: &OnRow| of.claims.values().sum::<u32>() + of.disks.values().sum::<u32>();
        let count =
            |of: &OnRow| format!("{} uses of {} claims and {} disks", uses(of), of.claims.len(), of.disks.len());
        let details = format!("{} instead of {}", count(cached), count(&actual));
        if actual == nothing {
            self.rows.remove(&row);
        } else {
            self.rows.insert(row, actual);
        }
        Some(details)
    }

    /// Compares which VolumeAttachments each node has with these objects, and sets right what differs.
    pub(super) fn audit_attachments(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let mut actual: BTreeMap<Arc<str>, BTreeSet<ObjectKey>> = BTreeMap::new();
        for (key, attachment) in cluster.objects().of::<VolumeAttachment>() {
            actual.entry(attachment.spec.node_name.as_str().into()).or_default().insert(key.clone());
        }
        if self.attachments == actual {
            return Vec::new();
        }
        let count = |of: &BTreeMap<_, BTreeSet<_>>| {
            format!("{} on {} nodes", of.values().map(BTreeSet::len).sum::<usize>(), of.len())
        };
        let details = format!("{} instead of {}", count(&self.attachments), count(&actual));
        self.attachments = actual;
        vec![Mismatch::new(Subject::Cluster, "volume_attachments", details)]
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::node;
    use serde_json::json;

    use super::*;
    use crate::volumes::{
        NodeVolumeLimits,
        testing::{cluster, place, with_claims},
    };

    /// What makes a sum wrong.
    type Spoil = fn(&mut Attached);

    #[test]
    fn volumes_that_are_spoilt_are_found_and_counted_anew() {
        let spoil: [(&str, &str, Spoil); 3] = [
            ("volumes", "0 uses of 0 claims and 0 disks instead of 2 uses of 2 claims and 0 disks", |state| {
                state.rows.clear();
            }),
            ("volumes", "3 uses of 2 claims and 0 disks instead of 2 uses of 2 claims and 0 disks", |state| {
                state.rows.values_mut().for_each(|row| *row.claims.first_entry().unwrap().get_mut() += 1);
            }),
            ("volume_attachments", "0 on 0 nodes instead of 1 on 1 nodes", |state| state.attachments.clear()),
        ];
        for (sum, details, spoil) in spoil {
            let attachment =
                json!({"spec": {"attacher": "d", "nodeName": "a", "source": {}}, "status": {"attached": true}});
            let mut cluster = cluster(&NodeVolumeLimits, &[node("a", &json!({}))], &[("attachment", "v", attachment)]);
            place(&mut cluster, "p", "a", &with_claims(&["c1", "c2"]));
            let right = cluster.state::<Attached>().cloned();
            let audit = |cluster: &mut Cluster| {
                let mut found = cluster.audit(cluster.row("a").unwrap());
                found.extend(cluster.audit_whole(1));
                found.into_iter().map(|found| (found.sum, found.details)).collect::<Vec<_>>()
            };
            assert_eq!(audit(&mut cluster), []);
            spoil(cluster.state_mut::<Attached>().unwrap());
            assert_eq!(audit(&mut cluster), [(sum, details.to_owned())]);
            assert_eq!(cluster.state::<Attached>().cloned(), right);
        }
    }
}
