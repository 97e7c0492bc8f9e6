//! Pods that are not seen during the attempt of another.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::uid::Uid;

use super::{Cluster, Placed};
use crate::columns::Row;

/// The pods that are not there for one pod while a node is looked for ([`ReservationRestore`](crate::framework::ReservationRestore)).
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// Pods that stand for objects, each with its row, in order. They are hidden when their row is asked.
    pub by_row: Arc<[(Row, Uid)]>,
    /// Other pods, which count in sums over all rows. They are hidden at once.
    pub at_once: Vec<Uid>,
}

impl Cluster {
    /// A pod is not seen any more until [`Cluster::show`], as if it were not on its node. States that see it go can tell this
    /// from a removal: it is hidden by then.
    pub(crate) fn hide(&mut self, uid: &Uid) {
        if let Some(placed) = self.pods.get(uid).cloned() {
            self.hidden.entry(placed.row).or_default().insert(uid.clone(), placed);
            self.take(uid);
        }
    }

    /// These pods are not there for the pod that is tried, until [`Cluster::show`].
    pub(crate) fn offer(&mut self, hidden: impl IntoIterator<Item = Hidden>) {
        let (mut offered, mut more, mut at_once) = (Arc::<[(Row, Uid)]>::default(), Vec::new(), Vec::new());
        for hidden in hidden {
            if offered.is_empty() {
                offered = hidden.by_row;
            } else {
                more.extend(hidden.by_row.iter().cloned());
            }
            at_once.extend(hidden.at_once.into_iter().filter_map(|uid| Some((self.pods.get(&uid)?.row, uid))));
        }
        more.extend(at_once.iter().cloned());
        if !more.is_empty() {
            more.extend(offered.iter().cloned());
            more.sort_unstable();
            offered = more.into();
        }
        self.offered = offered;
        for (_, uid) in &at_once {
            self.hide(uid);
        }
    }

    /// What is not there for the pod that is tried, in order.
    pub(crate) fn offered(&self) -> &Arc<[(Row, Uid)]> {
        &self.offered
    }

    /// Hides what is offered on a row.
    pub(crate) fn hide_on(&mut self, row: Row) {
        if self.offered.is_empty() {
            return;
        }
        let offered = Arc::clone(&self.offered);
        let begin = offered.partition_point(|(at, _)| *at < row);
        let on_row = offered.iter().skip(begin).take_while(|(at, _)| *at == row);
        on_row.for_each(|(_, uid)| self.hide(uid));
    }

    /// Hides all that is offered, for who asks about more than single rows.
    pub fn hide_all(&mut self) {
        let offered = Arc::clone(&self.offered);
        for (_, uid) in offered.iter() {
            self.hide(uid);
        }
    }

    /// What was hidden is seen again.
    pub(crate) fn show(&mut self) {
        self.offered = Arc::default();
        for Placed { pod, row, holds, .. } in
            std::mem::take(&mut self.hidden).into_values().flat_map(BTreeMap::into_values)
        {
            self.put(pod, row, holds);
        }
    }

    /// The pods that are hidden during this attempt.
    pub fn hidden(&self) -> impl Iterator<Item = &Placed> {
        self.hidden.values().flat_map(BTreeMap::values)
    }

    /// Those of a row.
    pub fn hidden_on(&self, row: Row) -> impl Iterator<Item = &Placed> {
        self.hidden.get(&row).into_iter().flat_map(BTreeMap::values)
    }

    /// A pod of a row that is hidden.
    pub fn hidden_pod(&self, uid: &Uid, row: Row) -> Option<&Placed> {
        self.hidden.get(&row)?.get(uid)
    }
}
