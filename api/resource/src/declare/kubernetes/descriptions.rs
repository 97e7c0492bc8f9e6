//! Descriptions of the types that Koordinator's kinds embed. The OpenAPI documents are kept without theirs, so that schemas of all other
//! types have none, as with controller-gen's `crd:maxDescLen=0`.

use koord_schema::Schema as Node;

/// A definition, its description, and those of its fields.
type Description = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

pub(super) const DESCRIPTIONS: [Description; 14] = [
    (
        "io.k8s.api.core.v1.LocalObjectReference",
        "Names one object in the same namespace.",
        &[("name", "Name of the object.")],
    ),
    (
        "io.k8s.api.core.v1.NodeSelectorRequirement",
        "A condition on one label or field of a node.",
        &[
            ("key", "The label's key."),
            ("operator", "In, NotIn, Exists, DoesNotExist, Gt or Lt."),
            ("values", "The values for In and NotIn; empty otherwise."),
        ],
    ),
    (
        "io.k8s.api.core.v1.NodeSelectorTerm",
        "Selects nodes; every condition must hold.",
        &[("matchExpressions", "Conditions on labels."), ("matchFields", "Conditions on fields.")],
    ),
    (
        "io.k8s.api.core.v1.ObjectReference",
        "Names one object, or a part of it.",
        &[
            ("apiVersion", "API version of the object."),
            ("fieldPath", "The part that is meant, such as spec.containers[0]."),
            ("kind", "Kind of the object."),
            ("name", "Name of the object."),
            ("namespace", "Namespace of the object."),
            ("resourceVersion", "The resourceVersion that is meant."),
            ("uid", "UID of the object."),
        ],
    ),
    (
        "io.k8s.api.core.v1.ResourceClaim",
        "Names a claim of the pod.",
        &[("name", "Name of the claim in the pod."), ("request", "Name of one request in the claim; empty for all.")],
    ),
    (
        "io.k8s.api.core.v1.ResourceRequirements",
        "What a container needs.",
        &[
            ("claims", "Claims of the pod that the container uses."),
            ("limits", "The most that it may use."),
            ("requests", "What is set aside for it."),
        ],
    ),
    (
        "io.k8s.api.core.v1.SecretKeySelector",
        "Names one key of a Secret in the same namespace.",
        &[
            ("key", "Key in the Secret."),
            ("name", "Name of the Secret."),
            ("optional", "Whether the Secret or its key may be missing."),
        ],
    ),
    (
        "io.k8s.api.core.v1.Taint",
        "Keeps pods away that do not tolerate it.",
        &[
            ("effect", "NoSchedule, PreferNoSchedule or NoExecute."),
            ("key", "The taint's key."),
            ("timeAdded", "When the taint was added."),
            ("value", "The taint's value."),
        ],
    ),
    (
        "io.k8s.api.core.v1.Toleration",
        "Lets a pod onto nodes with a matching taint.",
        &[
            ("effect", "The effect that is tolerated; empty for all."),
            ("key", "The key that is tolerated; empty for all."),
            ("operator", "Exists or Equal, which is the default."),
            ("tolerationSeconds", "How long a NoExecute taint is tolerated."),
            ("value", "The value that is tolerated."),
        ],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "How an object is deleted.",
        &[
            ("apiVersion", "API version of these options."),
            ("dryRun", "All, to change nothing."),
            ("gracePeriodSeconds", "Seconds until the object is removed; 0 is at once."),
            (
                "ignoreStoreReadErrorWithClusterBreakingPotential",
                "Whether to delete an object that cannot be read any more, without its finalizers.",
            ),
            ("kind", "Kind of these options."),
            ("orphanDependents", "Whether dependents stay; propagationPolicy takes its place."),
            ("preconditions", "What must be true of the object."),
            ("propagationPolicy", "Orphan, Background or Foreground."),
        ],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
        "Selects objects by their labels; every condition must hold.",
        &[("matchExpressions", "Conditions on labels."), ("matchLabels", "Labels with the value that each must have.")],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
        "A condition on one label.",
        &[
            ("key", "The label's key."),
            ("operator", "In, NotIn, Exists or DoesNotExist."),
            ("values", "The values for In and NotIn; empty otherwise."),
        ],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
        "Names the object that another one belongs to.",
        &[
            ("apiVersion", "API version of the owner."),
            ("blockOwnerDeletion", "Whether the owner stays until this object is gone."),
            ("controller", "Whether the owner is the managing controller."),
            ("kind", "Kind of the owner."),
            ("name", "Name of the owner."),
            ("uid", "UID of the owner."),
        ],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
        "What must be true of the object before it is deleted.",
        &[("resourceVersion", "The resourceVersion that it must have."), ("uid", "The UID that it must have.")],
    ),
];

/// Adds descriptions to the schema of a definition and to its fields.
pub(super) fn describe(name: &str, schema: &mut Node) {
    let Some((_, description, fields)) = DESCRIPTIONS.iter().find(|(described, ..)| *described == name) else { return };
    schema.description = Some((*description).to_owned());
    for (field, description) in *fields {
        if let Some(property) = schema.properties.get_mut(*field) {
            property.description = Some((*description).to_owned());
        }
    }
}
