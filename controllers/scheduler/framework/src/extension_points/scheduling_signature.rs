//! What makes answers for one pod hold for another.

use crate::{
    cluster::Cluster,
    pod::{Pod, Template},
};

/// Tells which pods get the same answers from [`Filter`](super::Filter) and [`Score`](super::Score), and for how long. Answers are kept by
/// equivalence class; without this trait they depend on [`SignatureFields::All`] and on nothing but the pod and rows of the snapshot.
pub trait SchedulingSignature: Send + Sync + 'static {
    /// What of a pod, beside what it requests, the answers depend on: pods that differ in nothing that any plugin names share them.
    fn signature(&self) -> SignatureFields {
        SignatureFields::All
    }

    /// Whether answers for this pod hold for no other pod of its class.
    fn is_individual(&self, _pod: &Pod, _cluster: &Cluster) -> bool {
        false
    }

    /// Changes whenever filters and scores of a class may change for other reasons than a change of single rows.
    fn epoch(&self, _cluster: &Cluster) -> u64 {
        0
    }

    /// Changes whenever scores alone may change so: filters still hold then.
    fn score_epoch(&self, _cluster: &Cluster) -> u64 {
        0
    }
}

/// The fields of a pod, beside what it requests, that a plugin reads. Most workloads differ from others of their kind in these alone: each Job has labels, and a
/// namespace, that say nothing about where its pods may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureFields {
    /// The namespace, the controller, all labels, and the images.
    All,
    Labels(&'static [&'static str]),
    Images,
    /// All of them where a node has pods that are not there for the pod ([`ReservationRestore`](super::ReservationRestore)), these labels elsewhere.
    WhereRestored(&'static [&'static str]),
}

impl SignatureFields {
    /// None of them.
    pub const NONE: Self = Self::Labels(&[]);

    /// Whether two templates have the same. For one of them pods may not be there.
    pub(crate) fn are_equal(self, one: &Template, other: &Template, is_restored: bool) -> bool {
        match self {
            Self::WhereRestored(labels) if !is_restored => Self::Labels(labels).are_equal(one, other, is_restored),
            Self::All | Self::WhereRestored(_) => {
                (&one.namespace, &one.controller, &one.labels, &one.images)
                    == (&other.namespace, &other.controller, &other.labels, &other.images)
            }
            Self::Images => one.images == other.images,
            Self::Labels(labels) => labels.iter().all(|label| one.labels.get(label) == other.labels.get(label)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_plugin_reads_distinguishes_workloads() {
        let template = |namespace: &str, labels: &[(&str, &str)], image: &str| Template {
            namespace: namespace.into(),
            labels: labels.iter().copied().collect(),
            images: [image.into()].into(),
            ..Template::default()
        };
        let one = template("a", &[("job", "1"), ("pool", "x")], "i");
        let other = template("b", &[("job", "2"), ("pool", "x")], "i");
        let equal = |marks: SignatureFields, is_restored| marks.are_equal(&one, &other, is_restored);
        assert!(
            equal(SignatureFields::NONE, true)
                && equal(SignatureFields::Labels(&["pool"]), true)
                && equal(SignatureFields::Images, true)
        );
        assert!(!equal(SignatureFields::All, false) && !equal(SignatureFields::Labels(&["pool", "job"]), false));
        let reads_pool = SignatureFields::WhereRestored(&["pool"]);
        assert_eq!((equal(reads_pool, false), equal(reads_pool, true)), (true, false));
        assert!(!equal(SignatureFields::WhereRestored(&["job"]), false));
        let of_images =
            [&one, &template("a", &[], "j")].map(|other| SignatureFields::Images.are_equal(&one, other, false));
        assert_eq!(of_images, [true, false]);
    }
}
