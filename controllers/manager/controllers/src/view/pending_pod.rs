//! A pod that waits for a node.

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject, text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A pod that waits for a node: what a profile may read or change of it.
#[derive(Debug, PartialEq)]
pub struct PendingPodView {
    pub labels: Labels,
    /// The object, without its status and without what only the API server writes into its metadata.
    pub object: Box<str>,
}

/// What is read of a Pod.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

// By hand: the object is kept as one text, without its status and managed fields.
impl Projection for PendingPodView {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let WireObject { metadata, members } = wire;
        let mut object = String::from(r#"{"metadata":{"#);
        let parts = [
            ("labels", metadata.labels),
            ("annotations", metadata.annotations),
            ("finalizers", metadata.finalizers),
            ("ownerReferences", metadata.owner_references),
        ];
        let mut separator = "";
        for (name, part) in parts {
            let Some(part) = part else { continue };
            for text in [separator, "\"", name, "\":", part.get()] {
                object.push_str(text);
            }
            separator = ",";
        }
        for text in [r#"},"spec":"#, text(members.spec), "}"] {
            object.push_str(text);
        }
        Ok(Self { labels: Labels::read("metadata.labels", metadata.labels, strings)?, object: object.into() })
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn everything_that_a_profile_may_change_is_kept() {
        let mut cache = Cache::<PendingPodView>::default();
        let kept = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"]},
                          "spec": {"containers": [{"name": "x"}]}});
        let mut object = kept.clone();
        for (field, value) in [("name", "p"), ("namespace", "n"), ("uid", "u"), ("resourceVersion", "1")] {
            object["metadata"][field] = value.into();
        }
        object["status"] = json!({"phase": "Pending"});
        cache.upsert(&object.to_string()).unwrap();
        let pod = &cache.get("n/p").unwrap().value;
        assert_eq!(serde_json::from_str::<Value>(&pod.object).unwrap(), kept);
        let bare = r#"{"metadata":{"name":"q","namespace":"n","uid":"u","resourceVersion":"1"}}"#;
        cache.upsert(bare).unwrap();
        assert_eq!(&*cache.get("n/q").unwrap().value.object, r#"{"metadata":{},"spec":null}"#);
    }
}
