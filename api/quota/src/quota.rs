//! What is read of an ElasticQuota.

use koord_resource::{ResourceList, go_json};
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{
        ADMISSION, ALLOW_FORCE_UPDATE, ALLOW_LENT_RESOURCE, CHILD_REQUEST, GUARANTEED, IGNORE_DEFAULT_TREE, IS_PARENT,
        IS_ROOT, NAMESPACES, PARENT, ROOT_QUOTA, SHARED_WEIGHT, TOTAL_RESOURCE, TREE_ID,
    },
};

/// A quota's place in the tree and its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// The namespace of the object.
    pub namespace: String,
    /// The name, which is unique in all namespaces.
    pub name: String,
    /// The parent; empty for the root.
    pub parent: String,
    /// The tree; empty for the default tree.
    pub tree_id: String,
    /// Whether it may have children. A parent has no pods, a leaf no children.
    pub is_parent: bool,
    /// Whether it is the root of its tree.
    pub begins_tree: bool,
    /// Whether the resources of its tree are not taken from those of the default tree.
    pub ignores_default_tree: bool,
    /// Whether changes may break the rules about `min`.
    pub forced: bool,
    /// Whether other quotas may use what it does not request of its `min`.
    pub lends: bool,
    /// What it gets in any case.
    pub min: ResourceList,
    /// What it gets at most.
    pub max: ResourceList,
    /// What it is guaranteed, as the scheduler has written it.
    pub guaranteed: ResourceList,
    /// Namespaces whose pods belong to it.
    pub namespaces: Vec<String>,
    /// What its pods may request when they are created; none where that is `max`.
    pub admission: Option<ResourceList>,
    /// What its pods and children request together, as it was written last.
    pub requested: ResourceList,
    /// Its weight where quotas compete; see [`Quota::weights`].
    pub shared_weight: ResourceList,
    /// The resources of its tree, where they are not those of the cluster.
    pub total: ResourceList,
    /// Why an annotation that quota admission reads cannot be decoded; pods are refused meanwhile.
    pub decode_error: Option<Box<str>>,
}

impl Quota {
    /// Reads labels and annotations. An annotation that cannot be decoded counts as absent, except for quota admission.
    pub fn placed<'t>(
        namespace: &str,
        name: &str,
        label: impl Fn(&str) -> Option<&'t str>,
        annotation: impl Fn(&str) -> Option<&'t str>,
    ) -> Self {
        let parent = label(PARENT).filter(|parent| !parent.is_empty());
        let root = if name == ROOT_QUOTA { "" } else { ROOT_QUOTA };
        let mut reasons: Vec<String> = Vec::new();
        let mut counted = |key: &str| {
            let text = annotation(key).filter(|text| !text.is_empty())?;
            let amounts = serde_json::from_str::<Option<ResourceList>>(text);
            amounts.map_err(|error| reasons.push(go_json::reason(text, &error))).ok().flatten()
        };
        let requested = counted(CHILD_REQUEST.name()).unwrap_or_default();
        let admission = counted(ADMISSION.name()).filter(|limit| !limit.is_empty());
        // The same reason of both stands once, as Go's aggregate of errors prints it.
        reasons.dedup();
        let decode_error = match reasons.as_slice() {
            [] => None,
            [reason] => Some(reason.as_str().into()),
            several => Some(format!("[{}]", several.join(", ")).into()),
        };
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            parent: parent.unwrap_or(root).to_owned(),
            tree_id: label(TREE_ID).unwrap_or_default().to_owned(),
            is_parent: label(IS_PARENT.name()) == Some("true"),
            begins_tree: label(IS_ROOT.name()) == Some("true"),
            ignores_default_tree: label(IGNORE_DEFAULT_TREE.name()) == Some("true"),
            forced: label(ALLOW_FORCE_UPDATE.name()) == Some("true"),
            lends: label(ALLOW_LENT_RESOURCE.name()) != Some("false"),
            guaranteed: annotation(GUARANTEED.name()).and_then(decoded).unwrap_or_default(),
            namespaces: annotation(NAMESPACES.name()).and_then(decoded).unwrap_or_default(),
            admission,
            requested,
            shared_weight: annotation(SHARED_WEIGHT.name()).and_then(decoded).unwrap_or_default(),
            total: annotation(TOTAL_RESOURCE.name()).and_then(decoded).unwrap_or_default(),
            decode_error,
            ..Self::default()
        }
    }

    /// The weights by which resources are shared: those of the annotation as a whole, so that a resource which it does
    /// not name has weight 0, or `max` where the annotation is absent, cannot be decoded or is all zero.
    pub fn weights(&self) -> &ResourceList {
        if self.shared_weight.is_zero() { &self.max } else { &self.shared_weight }
    }
}

impl From<&ElasticQuota> for Quota {
    fn from(quota: &ElasticQuota) -> Self {
        let metadata = &quota.metadata;
        let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
        let label = |key: &str| metadata.labels.as_ref()?.get(key).map(String::as_str);
        let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str);
        let placed = Self::placed(&text(&metadata.namespace), &text(&metadata.name), label, annotation);
        Self { min: quota.spec.min.clone(), max: quota.spec.max.clone(), ..placed }
    }
}

fn decoded<T: for<'de> serde::Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_str::<Option<T>>(text).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn quota(annotations: &[(&str, &str)]) -> Quota {
        let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
        Quota::placed("n", "q", |_| None, |key| annotations.get(key).copied())
    }

    #[test]
    fn a_quota_without_labels_is_a_lending_leaf_below_the_root() {
        let quota = quota(&[]);
        assert_eq!(
            (quota.parent.as_str(), quota.is_parent, quota.lends, quota.forced),
            (ROOT_QUOTA, false, true, false)
        );
        assert_eq!(Quota::placed("n", ROOT_QUOTA, |_| None, |_| None).parent, "");
    }

    #[test]
    fn only_annotations_of_quota_admission_report_a_decode_error() {
        for key in [GUARANTEED.name(), NAMESPACES.name(), SHARED_WEIGHT.name(), TOTAL_RESOURCE.name()] {
            assert_eq!(quota(&[(key, "{")]), quota(&[]), "{key}");
        }
        for key in [ADMISSION.name(), CHILD_REQUEST.name()] {
            assert_eq!(quota(&[(key, "{")]).decode_error.as_deref(), Some("unexpected end of JSON input"), "{key}");
            assert_eq!(quota(&[(key, "")]), quota(&[]), "{key}");
            assert_eq!(quota(&[(key, "null")]), quota(&[]), "{key}");
        }
        let both = |requested, admission| {
            quota(&[(CHILD_REQUEST.name(), requested), (ADMISSION.name(), admission)]).decode_error
        };
        let (ends, character) =
            ("unexpected end of JSON input", "invalid character 'x' looking for beginning of value");
        assert_eq!(both("{", "{").as_deref(), Some(ends));
        assert_eq!(both("{", "x").as_deref(), Some(&*format!("[{ends}, {character}]")));
    }

    #[test]
    fn weights_are_the_annotation_as_a_whole_or_max() {
        let max: ResourceList =
            [("cpu", "10".parse().unwrap()), ("memory", "1Gi".parse().unwrap())].into_iter().collect();
        let weights =
            |text: &str| Quota { max: max.clone(), ..quota(&[(SHARED_WEIGHT.name(), text)]) }.weights().clone();
        for fallback in ["", "{", "{}", "null", r#"{"cpu":"0"}"#] {
            assert_eq!(weights(fallback), max, "{fallback}");
        }
        assert_eq!(weights(r#"{"cpu":"3"}"#).amount("memory").value(), 0);
    }
}
