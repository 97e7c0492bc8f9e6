//! What one kind does differently from all others.

use jiff::Timestamp;
use koord_schema::field::Errors;
use serde_json::Value;

use crate::{
    names::NameRule,
    request::User,
    status::ApiError,
    store::{CollectionId, Store},
};

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They lose their owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// When `metadata.generation` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Never: the field is absent.
    Untracked,
    /// When a top-level field other than `metadata` and `status` changes.
    Spec,
    /// When any top-level field other than `metadata` changes.
    All,
    /// It stays at 1.
    Never,
}

/// Which metadata a write of the subresource `status` does not touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKeeps {
    /// All that users write.
    Metadata,
    /// Labels alone.
    Labels,
    /// None: the status endpoint writes metadata as the main one does.
    Nothing,
}

/// What a kind may look at while it prepares a new object.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    /// All objects.
    pub store: &'a Store,
    /// Where the kind's own objects stand.
    pub collection: CollectionId,
    /// A fresh random number.
    pub random: u64,
    /// The present time, as objects state it.
    pub now: &'a str,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: &'a User,
}

/// The rules of one kind. Every method has the answer of a plain kind, such as ConfigMap without its own rules.
///
/// Objects are the JSON that clients send, with `apiVersion` and `kind`. The order of a write is: defaults, metadata,
/// mutating admission, `allocate`, `prepare_*`, `check_*`, validating admission.
pub trait Strategy: Send + Sync {
    /// The rule of the kind's names.
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }

    /// When the generation moves.
    fn generation(&self) -> Generation {
        Generation::Untracked
    }

    /// Whether `status` is written through its own subresource only.
    fn has_status(&self) -> bool {
        false
    }

    /// Whether this subresource writes the status, and nothing else of the object but metadata.
    fn writes_status(&self, subresource: &str) -> bool {
        subresource == "status"
    }

    /// Which metadata a write of the status leaves as it is.
    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Nothing
    }

    /// Whether the generation moves for what changed in metadata too.
    fn metadata_moves_generation(&self, _new: &Value, _old: &Value) -> bool {
        false
    }

    /// Whether a PUT of an absent object creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// Whether a PUT may leave `resourceVersion` out.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// How often an update checks what identifies the object, and how often labels and annotations: the generic code
    /// and the kind's own both do, and clients see each error.
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 4)
    }

    /// Fills in defaults; runs on whatever a client sent, also after a patch.
    fn set_defaults(&self, _object: &mut Value) {}

    /// Fills in the defaults that an object has when it is read from the store: also those below `status`, which the
    /// endpoint of the object drops from what a client sent.
    fn set_stored_defaults(&self, _object: &mut Value) {}

    /// Sets what only the server may set on a new object.
    fn prepare_create(&self, _object: &mut Value, _around: &WriteContext<'_>) {}

    /// Built-in admission of the kind's own new objects, before webhooks; what it sets, the client does not own.
    fn admit_create(&self, _object: &mut Value) {}

    /// Takes for a new or changed object what the cluster has only once, such as addresses. What is refused here is not
    /// checked further.
    fn allocate(
        &self,
        _object: &mut Value,
        _old: Option<&Value>,
        _around: &WriteContext<'_>,
        _errors: &mut Errors,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Keeps what this endpoint may not change; `subresource` is empty for the object itself.
    fn prepare_update(&self, _new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {}

    /// Checks a new object.
    fn check_create(&self, _object: &Value, _errors: &mut Errors) {}

    /// Checks a changed object.
    fn check_update(&self, _new: &Value, _old: &Value, _subresource: &str, _errors: &mut Errors) {}

    /// Warnings about a new or changed object that is valid but probably not what the user meant.
    fn warnings(&self, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// The seconds that a graceful deletion takes, given the seconds asked for; none deletes at once.
    fn grace_seconds(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// What happens to dependents when a delete does not say.
    fn default_propagation(&self) -> Propagation {
        Propagation::Background
    }

    /// Whether a delete answers with the object instead of a `Status`.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// The kind's own way of beginning a deletion: the object as it stays; none for the common way.
    fn delete(&self, _object: &Value, _now: Timestamp) -> Result<Option<Value>, ApiError> {
        Ok(None)
    }

    /// Whether the `apiVersion` `to` writes the same object differently from `from`, beyond the field itself.
    fn converts(&self, _from: &str, _to: &str) -> bool {
        false
    }

    /// Rewrites an object from one `apiVersion` to another, beyond `apiVersion` and `kind` themselves.
    fn convert(&self, _object: &mut Value, _from: &str, _to: &str) {}

    /// Whether a field selector that names an unknown field is answered with the short message.
    fn has_own_field_labels(&self) -> bool {
        false
    }
}

/// A kind without rules of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Strategy for Plain {}
