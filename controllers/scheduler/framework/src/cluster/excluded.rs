//! Pods that are excluded from the snapshot during the attempt of another: reserve pods and owners of the reservations that are restored for it.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::uid::Uid;

use super::{Cluster, Placed};
use crate::columns::Row;

/// The pods that are excluded for one pod while its node is sought ([`ReservationRestore`](crate::ReservationRestore)).
#[derive(Clone, Debug, Default)]
pub struct ExcludedPods {
    /// Reserve pods, each with its row, in order. They are excluded when their row is evaluated.
    pub by_row: Arc<[(Row, Uid)]>,
    /// Other pods, which count in sums over all rows. They are excluded at once.
    pub at_once: Vec<Uid>,
}

impl Cluster {
    /// Takes a pod off its node until [`Cluster::include_all`]. States can distinguish this from a removal: it is among the
    /// excluded pods by then.
    pub fn exclude_pod(&mut self, uid: &Uid) {
        if let Some(placed) = self.pods.get(uid).cloned() {
            self.excluded_pods.entry(placed.row).or_default().insert(uid.clone(), placed);
            self.take(uid);
        }
    }

    /// Excludes these pods until [`Cluster::include_all`]: those of a row when the row is evaluated.
    pub fn exclude(&mut self, pods: impl IntoIterator<Item = ExcludedPods>) {
        let (mut to_exclude, mut more, mut at_once) = (Arc::<[(Row, Uid)]>::default(), Vec::new(), Vec::new());
        for pods in pods {
            if to_exclude.is_empty() {
                to_exclude = pods.by_row;
            } else {
                more.extend(pods.by_row.iter().cloned());
            }
            at_once.extend(pods.at_once.into_iter().filter_map(|uid| Some((self.pods.get(&uid)?.row, uid))));
        }
        more.extend(at_once.iter().cloned());
        if !more.is_empty() {
            more.extend(to_exclude.iter().cloned());
            more.sort_unstable();
            to_exclude = more.into();
        }
        self.to_exclude = to_exclude;
        for (_, uid) in &at_once {
            self.exclude_pod(uid);
        }
    }

    /// The pods that are to be excluded for the pod that is tried, by row.
    pub(crate) fn to_exclude(&self) -> &Arc<[(Row, Uid)]> {
        &self.to_exclude
    }

    /// Excludes the pods of a row that are to be excluded.
    pub fn exclude_on(&mut self, row: Row) {
        if self.to_exclude.is_empty() {
            return;
        }
        let to_exclude = Arc::clone(&self.to_exclude);
        let begin = to_exclude.partition_point(|(at, _)| *at < row);
        let on_row = to_exclude.iter().skip(begin).take_while(|(at, _)| *at == row);
        on_row.for_each(|(_, uid)| self.exclude_pod(uid));
    }

    /// Excludes the pods of all rows that are to be excluded, before more than single rows are evaluated.
    pub fn exclude_all(&mut self) {
        let to_exclude = Arc::clone(&self.to_exclude);
        for (_, uid) in to_exclude.iter() {
            self.exclude_pod(uid);
        }
    }

    /// Puts all excluded pods back on their nodes.
    pub fn include_all(&mut self) {
        self.to_exclude = Arc::default();
        for Placed { pod, row, holds, .. } in
            std::mem::take(&mut self.excluded_pods).into_values().flat_map(BTreeMap::into_values)
        {
            self.put(pod, row, holds);
        }
    }

    /// The pods that are excluded now.
    pub fn excluded_pods(&self) -> impl Iterator<Item = &Placed> {
        self.excluded_pods.values().flat_map(BTreeMap::values)
    }

    /// The pods of a row that are excluded now.
    pub fn excluded_on(&self, row: Row) -> impl Iterator<Item = &Placed> {
        self.excluded_pods.get(&row).into_iter().flat_map(BTreeMap::values)
    }

    /// A pod of a row, if it is excluded now.
    pub fn excluded_pod(&self, uid: &Uid, row: Row) -> Option<&Placed> {
        self.excluded_pods.get(&row)?.get(uid)
    }
}
