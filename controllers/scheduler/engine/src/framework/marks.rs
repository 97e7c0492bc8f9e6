//! What tells workloads apart that ask for the same.

use crate::pod::Template;

/// The marks of pods that a plugin reads. Most workloads differ from others of their kind in these alone: each Job has labels, and a
/// namespace, that say nothing about where its pods may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureFields {
    /// The namespace, the controller, all labels, and the images.
    All,
    /// These labels.
    Labels(&'static [&'static str]),
    /// The images.
    Images,
    /// All of them where a node has pods that are not there for the pod ([`Plugin::hides`](super::Plugin::hides)), these labels elsewhere.
    WhereOffered(&'static [&'static str]),
}

impl SignatureFields {
    /// None of them.
    pub const NONE: Self = Self::Labels(&[]);

    /// Whether two templates have the same. For one of them pods may not be there.
    pub(crate) fn are_equal(self, one: &Template, other: &Template, is_offered: bool) -> bool {
        match self {
            Self::WhereOffered(labels) if !is_offered => Self::Labels(labels).are_equal(one, other, is_offered),
            Self::All | Self::WhereOffered(_) => {
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
    fn only_what_a_plugin_reads_tells_workloads_apart() {
        let template = |namespace: &str, labels: &[(&str, &str)], image: &str| Template {
            namespace: namespace.into(),
            labels: labels.iter().copied().collect(),
            images: [image.into()].into(),
            ..Template::default()
        };
        let one = template("a", &[("job", "1"), ("pool", "x")], "i");
        let other = template("b", &[("job", "2"), ("pool", "x")], "i");
        let equal = |marks: SignatureFields, is_offered| marks.are_equal(&one, &other, is_offered);
        assert!(
            equal(SignatureFields::NONE, true)
                && equal(SignatureFields::Labels(&["pool"]), true)
                && equal(SignatureFields::Images, true)
        );
        assert!(!equal(SignatureFields::All, false) && !equal(SignatureFields::Labels(&["pool", "job"]), false));
        let reads_pool = SignatureFields::WhereOffered(&["pool"]);
        assert_eq!((equal(reads_pool, false), equal(reads_pool, true)), (true, false));
        assert!(!equal(SignatureFields::WhereOffered(&["job"]), false));
        let of_images =
            [&one, &template("a", &[], "j")].map(|other| SignatureFields::Images.are_equal(&one, other, false));
        assert_eq!(of_images, [true, false]);
    }
}
