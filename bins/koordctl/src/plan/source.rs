//! Fills the caches of controllers from lists of a cluster or from files.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow};
use envtest::selector::FieldSelector;
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{Core, Watch, reflector::Selection};
use koord_scheduling::Selector;
use serde_json::Value;

use kube::Client;

use crate::{cli::PlanArgs, connect, listing, manifests, permission::Missing};

/// The objects of the kinds that controllers write, as they are.
pub(super) struct Stored {
    kinds: BTreeSet<&'static str>,
    objects: BTreeMap<(String, String), Held>,
}

/// Most objects are never looked at again, and text is small.
enum Held {
    Text(Box<str>),
    Tree(Value),
}

#[derive(serde::Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(serde::Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
}

impl Stored {
    /// None yet, of the kinds that these controllers write.
    fn of(core: &Core) -> Self {
        let rules: Vec<_> = core.workers().iter().flat_map(|worker| worker.spec().rbac_rules()).collect();
        let is_written = |kind: &ResourceKind| {
            rules.iter().any(|rule| {
                let plural = rule.resource.split('/').next().unwrap_or_default();
                (rule.group, plural) == (kind.group, kind.plural)
                    && rule.verbs.iter().any(|verb| ["create", "delete", "patch", "update"].contains(verb))
            })
        };
        let kinds = core.watches().iter().map(|watch| &watch.kind).filter(|kind| is_written(kind));
        Self { kinds: kinds.map(|kind| kind.kind).collect(), objects: BTreeMap::new() }
    }

    fn keep(&mut self, kind: &ResourceKind, text: &str) -> Result<()> {
        if !self.kinds.contains(kind.kind) {
            return Ok(());
        }
        let Named { metadata } =
            serde_json::from_str(text).with_context(|| format!("a {} without a name", kind.kind))?;
        let key = match metadata.namespace.as_str() {
            "" => metadata.name,
            namespace => format!("{namespace}/{}", metadata.name),
        };
        self.objects.insert((kind.kind.to_owned(), key), Held::Text(text.into()));
        Ok(())
    }

    /// The object; null when there is none.
    pub(super) fn get(&self, kind: &str, key: &str) -> Value {
        match self.objects.get(&(kind.to_owned(), key.to_owned())) {
            None => Value::Null,
            Some(Held::Tree(object)) => object.clone(),
            Some(Held::Text(text)) => serde_json::from_str(text).unwrap_or_default(),
        }
    }

    /// What a planned write leaves, for the writes after it.
    pub(super) fn put(&mut self, kind: &str, key: &str, object: Value) {
        self.objects.insert((kind.to_owned(), key.to_owned()), Held::Tree(object));
    }
}

/// Where the objects come from.
pub(super) enum Source {
    Cluster(Client, Option<Timestamp>),
    Files(Vec<Value>),
}

impl Source {
    /// Opens what was asked for.
    pub(super) async fn open(args: &PlanArgs) -> Result<Self> {
        if args.filename.is_empty() {
            let server = connect::reach(&args.answer.cluster).await?;
            return Ok(Self::Cluster(server.client, server.time));
        }
        Ok(Self::Files(manifests::objects(&args.filename)?))
    }

    /// What time it is there.
    pub(super) fn time(&self) -> Timestamp {
        let server_time = match self {
            Self::Cluster(_, time) => *time,
            Self::Files(_) => None,
        };
        server_time.unwrap_or_else(Timestamp::now)
    }
}

/// A collection, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Collection {
    pub(crate) path: String,
    selection: Selection,
}

/// Every collection with the caches that it feeds.
pub(crate) fn collections(core: &Core) -> BTreeMap<Collection, Vec<&Watch>> {
    let mut collections: BTreeMap<_, Vec<&Watch>> = BTreeMap::new();
    for watch in core.watches() {
        let collection = Collection { path: watch.path(), selection: watch.selection.clone() };
        collections.entry(collection).or_default().push(watch);
    }
    collections
}

/// Hands every object of a collection to `see`.
pub(crate) async fn list(client: &Client, collection: &Collection, see: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let Collection { path, selection } = collection;
    let query = listing::query(&selection.fields, &selection.labels);
    listing::each(client, path, &query, listing::Part::Whole, see).await
}

/// Fills all caches: every collection is read once, however many caches it feeds.
pub(super) async fn fill(core: &Core, source: Source) -> Result<Stored> {
    let mut stored = Stored::of(core);
    core.watches().iter().for_each(|watch| watch.sink.begin_list(true));
    match source {
        Source::Cluster(client, _) => {
            let mut missing = Missing::default();
            for (collection, watches) in collections(core) {
                let Some(kind) = watches.first().map(|watch| watch.kind) else { continue };
                let listed = list(&client, &collection, |text| {
                    stored.keep(&kind, text)?;
                    feed(&watches, text)
                });
                let Err(error) = listed.await else { continue };
                missing.note(error).with_context(|| {
                    let plural = kind.plural;
                    format!("{plural} cannot be listed, so that the plan is not known; `koordctl doctor` says more")
                })?;
            }
            missing.none()?;
        }
        Source::Files(objects) => objects.into_iter().try_for_each(|object| offer(core, object, &mut stored))?,
    }
    core.watches().iter().for_each(|watch| watch.sink.end_list());
    Ok(stored)
}

/// Gives an object of a file to the caches that want it.
fn offer(core: &Core, mut object: Value, stored: &mut Stored) -> Result<()> {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let watches: Vec<&Watch> =
        core.watches().iter().map(AsRef::as_ref).filter(|watch: &&Watch| watch.kind.kind == kind).collect();
    let Some(first) = watches.first() else { return Ok(()) };
    manifests::as_stored(&mut object, first.kind.namespaced);
    let text = object.to_string();
    stored.keep(&first.kind, &text)?;
    for watch in watches {
        if selects(&watch.selection, &object)? {
            feed(&[watch], &text)?;
        }
    }
    Ok(())
}

/// Gives an object to caches.
pub(crate) fn feed(watches: &[&Watch], text: &str) -> Result<()> {
    for watch in watches {
        watch.sink.upsert(text).map_err(|error| anyhow!("a {} has no usable metadata: {error}", watch.kind.kind))?;
    }
    Ok(())
}

/// Whether an object is of the part of its collection that a cache keeps.
fn selects(selection: &Selection, object: &Value) -> Result<bool> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let fields = FieldSelector::parse(&selection.fields).map_err(|error| anyhow!(error))?;
    let labels = Selector::parse(&selection.labels).map_err(|error| anyhow!(error))?;
    Ok((selection.namespace.is_empty() || selection.namespace == text("/metadata/namespace"))
        && fields.matches(|field| text(&format!("/{}", field.replace('.', "/"))))
        && labels.selects(|label| object["metadata"]["labels"][label].as_str()))
}
