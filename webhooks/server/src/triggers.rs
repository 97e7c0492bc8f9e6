//! What wakes the controller: changes of the Secret, of the two webhook configurations and of converted kinds' definitions.
//!
//! A cache keeps only a fingerprint of them. The objects themselves are few and are read when something is to be done.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    marker::PhantomData,
};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    intern::Interner,
    projection::{DecodeError, Projection, WireObject},
    reflector::Selection,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Environment;

/// The kind MutatingWebhookConfiguration.
pub(crate) const MUTATING: ResourceKind =
    configuration("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
/// The kind ValidatingWebhookConfiguration.
pub(crate) const VALIDATING: ResourceKind =
    configuration("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");

/// The kind CustomResourceDefinition.
pub(crate) const DEFINITION: ResourceKind = ResourceKind {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
};

const fn configuration(kind: &'static str, plural: &'static str) -> ResourceKind {
    ResourceKind { group: "admissionregistration.k8s.io", version: "v1", kind, plural, namespaced: false }
}

/// Calls `wake` whenever one of the objects changes.
pub(crate) fn watch(
    core: &mut Core,
    environment: &Environment,
    definitions: &[String],
    wake: impl Fn() + Clone + Send + Sync + 'static,
) {
    let named = |name: &str| Selection { fields: format!("metadata.name={name}"), ..Selection::default() };
    let secret = Selection { namespace: environment.namespace.clone(), ..named(&environment.secret) };
    let on = wake.clone();
    core.store::<Fingerprint<Secret>>(&secret).listen(move |_| on());
    let on = wake.clone();
    core.store::<Fingerprint<Mutating>>(&named(&environment.mutating)).listen(move |_| on());
    let on = wake.clone();
    core.store::<Fingerprint<Validating>>(&named(&environment.validating)).listen(move |_| on());
    for name in definitions {
        let on = wake.clone();
        core.store::<Fingerprint<Definition>>(&named(name)).listen(move |_| on());
    }
}

trait Watched: Send + Sync + 'static {
    const KIND: ResourceKind;
}

struct Secret;
struct Mutating;
struct Validating;
struct Definition;

impl Watched for Secret {
    const KIND: ResourceKind = ResourceKind::SECRET;
}
impl Watched for Mutating {
    const KIND: ResourceKind = MUTATING;
}
impl Watched for Validating {
    const KIND: ResourceKind = VALIDATING;
}
impl Watched for Definition {
    const KIND: ResourceKind = DEFINITION;
}

/// Differs when the content differs.
struct Fingerprint<K> {
    hash: u64,
    kind: PhantomData<K>,
}

impl<K> PartialEq for Fingerprint<K> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    webhooks: Option<&'a RawValue>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

impl<K: Watched> Projection for Fingerprint<K> {
    const KIND: ResourceKind = K::KIND;
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        let mut hasher = DefaultHasher::new();
        for part in [wire.metadata.annotations, wire.members.data, wire.members.webhooks, wire.members.spec] {
            part.map(RawValue::get).hash(&mut hasher);
        }
        Ok(Self { hash: hasher.finish(), kind: PhantomData })
    }
}
