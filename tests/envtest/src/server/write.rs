//! A write: what was asked for, and what becomes of it on its way through admission.

use std::sync::Arc;

use serde_json::Value;

use super::ApiServer;
use crate::{
    decode::Decoded,
    encode,
    negotiate::{self, Representation},
    options::WriteOptions,
    registry::ResourceDef,
    request::{ApiRequest, Target, User},
    status::ApiError,
    store::Record,
};

/// What a request does, as admission names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// The end of an object.
    Delete,
}

impl Operation {
    /// The word in reviews and rules.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// Which webhooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Mutating ones, first.
    Mutating,
    /// Validating ones, last.
    Validating,
}

/// What a write does when admission has let it pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    /// Stores the object.
    Store,
    /// Deletes the object.
    Delete(Box<crate::options::DeleteOptions>),
    /// Does what the subresource does, with the reviewed object as its argument.
    Subresource,
}

/// A write on its way through admission.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) definition: Arc<ResourceDef>,
    pub(super) target: Target,
    pub(super) operation: Operation,
    pub(super) effect: Effect,
    pub(super) request: ApiRequest,
    pub(super) representation: Representation,
    pub(super) dry_run: bool,
    /// Options as webhooks see them.
    pub(super) options: Value,
    /// The new object; null for a delete.
    pub(super) object: Value,
    /// The stored object that the decision is about.
    pub(super) old: Option<Stored>,
    /// Whether the client said which revision it changes.
    pub(super) is_conditional: bool,
    /// Whether the object comes from server-side apply, which has recorded its ownership already.
    pub(super) is_applied: bool,
    pub(super) warnings: Vec<String>,
}

/// A stored object, and what it says in the version of the request.
pub(super) type Stored = (Arc<Record>, Value);

/// A write as it was asked for, before its object is known.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) request: &'a ApiRequest,
    pub(super) target: Target,
    pub(super) definition: Arc<ResourceDef>,
    pub(super) options: WriteOptions,
    representation: Representation,
}

/// A write that waits for admission webhooks.
#[derive(Debug)]
pub struct Review {
    pub(super) phase: Phase,
    pub(super) write: Write,
    /// What follows the write in a deletecollection.
    pub(super) rest: Option<Box<super::collection::CollectionDeletion>>,
}

/// A write as webhooks and the authorizer see it.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// What happens.
    pub operation: Operation,
    /// The resource.
    pub definition: &'a Arc<ResourceDef>,
    /// Subresource; empty for none.
    pub subresource: &'a str,
    /// Namespace; empty for cluster scope.
    pub namespace: &'a str,
    /// Name; empty when the server is still to make one.
    pub name: &'a str,
    /// The new object; null for a delete.
    pub object: &'a Value,
    /// The stored object.
    pub old_object: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Who asks.
    pub user: &'a User,
    /// `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
    pub options: &'a Value,
}

/// What webhooks decided together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admitted {
    /// The object with all patches applied, when there were any.
    pub object: Option<Value>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

// === impl Order ===

impl<'a> Order<'a> {
    /// Reads everything but the body. `kind` names the options: `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub(super) fn read(
        request: &'a ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
        kind: &'static str,
        is_apply: bool,
    ) -> Result<Self, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let options = WriteOptions::read(request, kind, is_apply)?;
        Ok(Self { request, target, definition, options, representation })
    }

    /// The write that makes `old` into `new`, or makes `new` out of nothing. `is_conditional` says whether the client
    /// named the revision that it changes.
    pub(super) fn write(self, old: Option<Stored>, new: Decoded, is_conditional: bool) -> Write {
        Write {
            operation: if old.is_none() { Operation::Create } else { Operation::Update },
            effect: Effect::Store,
            request: self.request.clone(),
            representation: self.representation,
            dry_run: self.options.dry_run,
            options: self.options.to_value(),
            definition: self.definition,
            target: self.target,
            object: new.object,
            old,
            is_conditional,
            is_applied: false,
            warnings: new.warnings,
        }
    }
}

// === impl Review ===

impl Review {
    /// Which webhooks are to be asked.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What they are asked about.
    pub fn attributes(&self) -> Attributes<'_> {
        let mut attributes = self.write.attributes();
        if self.rest.is_some() {
            // The objects of a collection are reviewed without their names.
            attributes.name = "";
        }
        attributes
    }
}

// === impl Write ===

impl Write {
    /// The write as admission and authorization see it.
    pub(super) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            operation: self.operation,
            definition: &self.definition,
            subresource: &self.target.subresource,
            // A namespace is reviewed as being in itself.
            namespace: if is_namespace(&self.definition) { &self.target.name } else { &self.target.namespace },
            name: &self.target.name,
            object: &self.object,
            old_object: self.old.as_ref().map(|(_, object)| object),
            dry_run: self.dry_run,
            user: &self.request.user,
            options: &self.options,
        }
    }
}

fn is_namespace(definition: &ResourceDef) -> bool {
    definition.group.is_empty() && definition.plural == "namespaces"
}

impl ApiServer {
    /// The stored object that a write is about.
    pub(super) fn stored(&self, definition: &ResourceDef, target: &Target) -> Option<Stored> {
        let key = definition.key(&target.namespace, &target.name);
        let record = Arc::clone(self.store.collection(definition.collection).get(&key)?);
        let object = encode::value(definition, &record);
        Some((record, object))
    }
}
