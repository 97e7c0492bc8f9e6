//! Children: objects that a controller declares whole, as values of their Rust types, and that are written by server-side apply.
//!
//! What is ours of a child is what we declared, as its `managedFields` record it. The cache keeps that part alone; what the
//! API server and others filled in is neither compared nor written.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use koord_resource::{
    controller::{ObjectScope, ResourceKind},
    k8s_openapi,
    schema::fieldset::{FieldSet, extract},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    index::Index,
    intern::Interner,
    key::ObjectKey,
    ownership::{Controlled, Owner},
    projection::{DecodeError, Metadata, Projection, WireMetadata},
    uid::Uid,
};

/// An object type of k8s-openapi, or one that is declared with `#[derive(Resource)]`.
pub trait Object: k8s_openapi::Resource<Scope: ObjectScope> + Serialize + 'static {
    /// Its identity.
    const IDENTITY: ResourceKind = ResourceKind::typed::<Self>();
}

impl<T: k8s_openapi::Resource<Scope: ObjectScope> + Serialize + 'static> Object for T {}

/// What the cache keeps of a child: the part that this program applied, who controls it, and what the controller reads of
/// it besides, such as a struct with the one field of the status that matters.
pub struct Child<T, V = Nothing> {
    /// What is read beside what was applied.
    pub seen: V,
    controller: Option<Owner>,
    /// JSON of what this program owns of the object by its applies; none where it never applied it.
    owned: Option<Box<str>>,
    /// The digest of a declaration that was found to agree with `owned`; 0 for none. What is compared once need not be
    /// compared again.
    agreed: AtomicU64,
    of: PhantomData<fn() -> T>,
}

/// Nothing is read of a child beside what was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Nothing {}

impl<T, V: PartialEq> PartialEq for Child<T, V> {
    fn eq(&self, other: &Self) -> bool {
        self.seen == other.seen && self.controller == other.controller && self.owned == other.owned
    }
}

impl<T, V: fmt::Debug> fmt::Debug for Child<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seen, controller, owned, .. } = self;
        f.debug_struct("Child").field("seen", seen).field("controller", controller).field("owned", owned).finish()
    }
}

/// The text of a child, and its metadata.
pub struct WireChild<'a> {
    text: &'a RawValue,
    metadata: WireMetadata<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WireChild<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            metadata: WireMetadata<'a>,
        }
        let text = <&RawValue>::deserialize(deserializer)?;
        let Parts { metadata } = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { text, metadata })
    }
}

impl<'a> Metadata<'a> for WireChild<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<T: Object, V: DeserializeOwned + PartialEq + Send + Sync + 'static> Projection for Child<T, V> {
    const KIND: ResourceKind = T::IDENTITY;
    type Wire<'a> = WireChild<'a>;
    type Index = Children;

    fn project(wire: WireChild<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let text = wire.text.get();
        let fields = wire.metadata.managed_fields.map(|fields| applied_by(strings.field_manager(), fields));
        let owned = match fields.transpose()?.flatten() {
            None => None,
            Some(set) => {
                let object: Value = serde_json::from_str(text).map_err(|error| DecodeError::new("object", error))?;
                Some(extract(&object, &set).to_string().into())
            }
        };
        Ok(Self {
            seen: serde_json::from_str(text).map_err(|error| DecodeError::new("object", error))?,
            controller: Owner::read(wire.metadata.owner_references, strings)?,
            owned,
            agreed: AtomicU64::new(0),
            of: PhantomData,
        })
    }
}

/// The fields that a manager has applied, as `managedFields` record them.
fn applied_by(manager: &str, entries: &RawValue) -> Result<Option<FieldSet>, DecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry<'a> {
        #[serde(borrow, default)]
        manager: Cow<'a, str>,
        #[serde(borrow, default)]
        operation: Cow<'a, str>,
        #[serde(borrow, default)]
        subresource: Cow<'a, str>,
        #[serde(borrow, default, rename = "fieldsV1")]
        fields: Option<&'a RawValue>,
    }
    let wrong = |error: &dyn fmt::Display| DecodeError::new("metadata.managedFields", error);
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_str(entries.get()).map_err(|error| wrong(&error))?;
    let ours =
        |entry: &Entry<'_>| entry.manager == manager && entry.operation == "Apply" && entry.subresource.is_empty();
    let Some(fields) = entries.into_iter().flatten().find(ours).and_then(|entry| entry.fields) else { return Ok(None) };
    let fields: Value = serde_json::from_str(fields.get()).map_err(|error| wrong(&error))?;
    FieldSet::from_json(&fields).map(Some).map_err(|error| wrong(&error))
}

impl<T: Object, V: DeserializeOwned + PartialEq + Send + Sync + 'static> Controlled for Child<T, V> {
    fn controller(&self) -> Option<&Owner> {
        self.controller.as_ref()
    }
}

impl<T, V> Child<T, V> {
    /// What this program owns of the object by its applies; `null` where it never applied it.
    pub fn owned(&self) -> Value {
        self.owned.as_ref().map_or(Value::Null, |owned| serde_json::from_str(owned).unwrap_or_default())
    }

    /// Whether a declaration of this digest is known to agree with the object.
    pub(crate) fn agrees_with(&self, digest: u64) -> bool {
        self.agreed.load(Ordering::Relaxed) == digest
    }

    /// A declaration of this digest agrees with the object.
    pub(crate) fn agree(&self, digest: u64) {
        self.agreed.store(digest, Ordering::Relaxed);
    }
}

/// Children by the object that controls them, and what the API server made of declarations that it writes differently.
#[derive(Debug, Default)]
pub struct Children {
    by_owner: BTreeMap<Uid, BTreeSet<ObjectKey>>,
    /// Digests of declarations that were applied, where the object has not changed since.
    sent: BTreeMap<ObjectKey, u64>,
    /// `1000m` is stored as `1`: what was declared and what became of it, where they differ.
    normalized: BTreeMap<ObjectKey, Normalized>,
    /// Of an object that was removed and perhaps comes again with its next value.
    changing: Option<(ObjectKey, Normalized)>,
}

/// Digests of a declaration, and of what the object shows of ours after it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Normalized {
    declared: u64,
    owned: u64,
}

impl Children {
    /// The objects that another controls, in the order of their keys.
    pub fn of(&self, owner: &Uid) -> impl Iterator<Item = &ObjectKey> {
        self.by_owner.get(owner).into_iter().flatten()
    }

    /// Whether the API server made of this declaration what the object shows.
    pub(crate) fn is_normalized<T, V>(&self, key: &ObjectKey, declared: &Value, child: &Child<T, V>) -> bool {
        self.normalized.get(key) == Some(&Normalized { declared: digest(declared), owned: child.digest() })
    }

    /// Whether this declaration was the last that was applied, and the object has not changed since.
    pub(crate) fn is_sent(&self, key: &ObjectKey, declared: &Value) -> bool {
        self.sent.get(key) == Some(&digest(declared))
    }
}

impl<T: Object, V: DeserializeOwned + PartialEq + Send + Sync + 'static> Index<Child<T, V>> for Children {
    fn insert(&mut self, key: &ObjectKey, child: &Child<T, V>) {
        self.sent.remove(key);
        if let Some(owner) = &child.controller {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if let Some((changed, normalized)) = self.changing.take()
            && changed == *key
        {
            self.normalized.insert(changed, normalized);
        }
    }

    fn remove(&mut self, key: &ObjectKey, child: &Child<T, V>) {
        if let Some(owner) = &child.controller
            && let Some(keys) = self.by_owner.get_mut(&owner.uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_owner.remove(&owner.uid);
            }
        }
        self.sent.remove(key);
        self.changing = self.normalized.remove_entry(key);
    }

    fn applied(&mut self, key: &ObjectKey, declared: &Value, answered: &Child<T, V>) {
        self.sent.insert(key.clone(), digest(declared));
        if comparable(declared) == answered.owned() {
            self.normalized.remove(key);
        } else {
            let normalized = Normalized { declared: digest(declared), owned: answered.digest() };
            self.normalized.insert(key.clone(), normalized);
        }
    }
}

impl<T, V> Child<T, V> {
    fn digest(&self) -> u64 {
        digest_of(self.owned.as_deref().unwrap_or_default().as_bytes())
    }
}

/// The part of a declaration that `managedFields` records, and so [`Child::owned`] shows: all but its identity.
pub fn comparable(declared: &Value) -> Value {
    let mut declared = declared.clone();
    if let Value::Object(object) = &mut declared {
        object.remove("apiVersion");
        object.remove("kind");
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            for identity in ["name", "namespace", "uid"] {
                metadata.remove(identity);
            }
            if metadata.is_empty() {
                object.remove("metadata");
            }
        }
    }
    declared
}

fn digest(declared: &Value) -> u64 {
    digest_of(comparable(declared).to_string().as_bytes())
}

/// A number that stands for a text; never 0.
pub(crate) fn digest_of(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish().max(1)
}
