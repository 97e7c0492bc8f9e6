//! A profile as caches keep it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_core::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject},
};
use koord_resource::{Resource, controller::ResourceKind};
use koord_scheduling::Selector;
use koord_types::cluster_colocation_profile::{ClusterColocationProfile, ClusterColocationProfileSpec};
use serde::Deserialize;

use crate::Overlay;

/// The annotation by which a profile leaves the resources of pods as they are.
pub const SKIP_UPDATE_RESOURCES: &str = "config.koordinator.sh/skip-update-resources";

/// The label by which a profile is also applied to pods that are there already.
pub const CONTROLLER_MANAGED: &str = "config.koordinator.sh/controller-managed";

/// A ClusterColocationProfile with everything prepared that does not depend on the pod.
#[derive(Debug, PartialEq)]
pub struct Profile {
    pub name: String,
    /// Which namespaces it selects; everything where it does not say.
    pub namespaces: Selector,
    /// Which pods it selects; everything where it does not say.
    pub objects: Selector,
    /// Whether the resources of its pods stay as they are.
    pub skip_update_resources: bool,
    /// Whether its label gives it to the controller.
    pub controller_managed: bool,
    /// Its own patch, prepared for pods.
    pub overlay: Option<Overlay>,
    pub spec: ClusterColocationProfileSpec,
}

/// What is read of a ClusterColocationProfile.
#[derive(Deserialize)]
pub struct ProfileMembers {
    #[serde(default)]
    spec: ClusterColocationProfileSpec,
}

impl Projection for Profile {
    const KIND: ResourceKind = ResourceKind::of(&ClusterColocationProfile::INFO);
    type Wire<'a> = WireObject<'a, ProfileMembers>;
    type Index = ();

    /// A profile whose selector cannot be understood is set aside: it must not match every pod, as in the original.
    /// Labels without expressions are not checked, and select nothing where no label can be like that.
    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let selector = |field, selector: &Option<LabelSelector>| match selector {
            Some(selector) => Selector::lenient(selector).map_err(|error| DecodeError::new(field, error)),
            None => Ok(Selector::default()),
        };
        let annotations = Labels::read("metadata.annotations", wire.metadata.annotations, strings)?;
        let labels = Labels::read("metadata.labels", wire.metadata.labels, strings)?;
        Ok(Self {
            name: wire.metadata.name.into_owned(),
            namespaces: selector("spec.namespaceSelector", &wire.members.spec.namespace_selector)?,
            objects: selector("spec.selector", &wire.members.spec.selector)?,
            overlay: wire.members.spec.patch.as_ref().map(Overlay::new),
            skip_update_resources: annotations.get(SKIP_UPDATE_RESOURCES).is_some(),
            controller_managed: labels.get(CONTROLLER_MANAGED) == Some("true"),
            spec: wire.members.spec,
        })
    }
}

#[cfg(test)]
mod tests {
    use koord_core::cache::Cache;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_nobody_understands_sets_the_profile_aside() {
        let put = |spec: serde_json::Value| {
            let mut profiles = Cache::<Profile>::default();
            let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
            profiles.upsert(&object.to_string()).unwrap();
            assert_eq!(profiles.iter().count(), 0);
            profiles.quarantined("p").unwrap().reason.to_string()
        };
        let expression =
            |operator: &str| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": []}]});
        assert_eq!(
            put(json!({"selector": expression("In")})),
            "spec.selector: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            put(json!({"namespaceSelector": expression("Foo")})),
            "spec.namespaceSelector: \"Foo\" is not a valid label selector operator"
        );
    }

    #[test]
    fn labels_that_no_object_can_have_select_nothing() {
        let mut profiles = Cache::<Profile>::default();
        let spec = json!({"selector": {"matchLabels": {"app": "no label: @"}}, "namespaceSelector": {"matchLabels": {"-": "x"}}});
        let object = json!({"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": spec});
        profiles.upsert(&object.to_string()).unwrap();
        assert!(profiles.quarantined("p").is_none());
        let profile = &profiles.get("p").unwrap().value;
        assert!(!profile.objects.selects(|key| (key == "app").then_some("web")));
        assert!(!profile.namespaces.selects(|_| None));
    }
}
