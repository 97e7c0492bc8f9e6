//! Fills the caches of controllers from lists of a cluster or from files.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, ensure};
use koord_resource::controller::ResourceKind;
use koord_runtime::{Core, Watch, key::ObjectKey, reflector::Selection};
use koord_scheduling::{FieldSelector, Selector};
use kube::Client;
use serde_json::Value;

use crate::{files, listing, permission::Missing};

/// Where the objects come from.
#[derive(Clone)]
pub enum Source {
    /// A cluster, of which every collection is listed.
    Cluster(Client),
    /// Objects of files: these are all that there are.
    Files(Vec<Value>),
}

/// The objects of the kinds that controllers write, as they are.
pub(super) struct Stored {
    kinds: BTreeSet<ResourceKind>,
    objects: BTreeMap<(ResourceKind, ObjectKey), Held>,
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
        let kinds = core.watches().iter().map(|watch| watch.kind).filter(|kind| is_written(kind));
        Self { kinds: kinds.collect(), objects: BTreeMap::new() }
    }

    fn keep(&mut self, kind: ResourceKind, text: &str) -> Result<()> {
        if !self.kinds.contains(&kind) {
            return Ok(());
        }
        let Named { metadata } =
            serde_json::from_str(text).with_context(|| format!("a {} without a name", kind.kind))?;
        let key = ObjectKey::new(&metadata.namespace, &metadata.name);
        self.objects.insert((kind, key), Held::Text(text.into()));
        Ok(())
    }

    /// The object; null when there is none.
    pub(super) fn get(&self, kind: ResourceKind, key: &ObjectKey) -> Value {
        match self.objects.get(&(kind, key.clone())) {
            None => Value::Null,
            Some(Held::Tree(object)) => object.clone(),
            Some(Held::Text(text)) => {
                let mut object = serde_json::from_str(text).unwrap_or_default();
                complete(&mut object, kind);
                object
            }
        }
    }

    /// What a planned write leaves, for the writes after it.
    pub(super) fn put(&mut self, kind: ResourceKind, key: &ObjectKey, object: Value) {
        self.objects.insert((kind, key.clone()), Held::Tree(object));
    }
}

/// The items of a list do not say what they are.
fn complete(object: &mut Value, kind: ResourceKind) {
    let Some(object) = object.as_object_mut() else { return };
    object.entry("apiVersion").or_insert_with(|| kind.api_version().into());
    object.entry("kind").or_insert_with(|| kind.kind.into());
}

/// A collection, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collection {
    /// Its URL path.
    pub path: String,
    selection: Selection,
}

/// Every collection with the caches that it feeds.
pub fn collections(core: &Core) -> BTreeMap<Collection, Vec<&Watch>> {
    let mut collections: BTreeMap<_, Vec<&Watch>> = BTreeMap::new();
    for watch in core.watches() {
        let collection = Collection { path: watch.path(), selection: watch.selection.clone() };
        collections.entry(collection).or_default().push(watch);
    }
    collections
}

/// Hands every object of a collection to `see`.
pub async fn list(client: &Client, collection: &Collection, see: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let Collection { path, selection } = collection;
    let query = listing::query(&selection.fields, &selection.labels);
    listing::each(client, path, &query, listing::Part::Whole, see).await
}

/// Fills all caches of a core, as for a plan.
pub async fn fill_caches(core: &Core, source: Source) -> Result<()> {
    fill(core, source).await.map(drop)
}

/// Fills all caches: every collection is read once, however many caches it feeds.
pub(super) async fn fill(core: &Core, source: Source) -> Result<Stored> {
    let mut stored = Stored::of(core);
    core.watches().iter().for_each(|watch| watch.sink.begin_list(true));
    match source {
        Source::Cluster(client) => {
            each(core, &client, |kind, watches, text| {
                stored.keep(kind, text)?;
                feed(watches, text)
            })
            .await?;
        }
        Source::Files(objects) => objects.into_iter().try_for_each(|object| offer(core, object, &mut stored))?,
    }
    core.watches().iter().for_each(|watch| watch.sink.end_list());
    Ok(stored)
}

/// Every object of a cluster that the caches of a core want, as files have it.
pub async fn read(core: &Core, client: &Client) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    each(core, client, |kind, watches, text| {
        let mut object = serde_json::from_str(text)?;
        complete(&mut object, watches.first().map_or(kind, |watch| watch.asked()));
        objects.push(object);
        Ok(())
    })
    .await?;
    Ok(objects)
}

/// Hands every object of every collection to `see`, with its kind and the caches that want it.
async fn each(
    core: &Core,
    client: &Client,
    mut see: impl FnMut(ResourceKind, &[&Watch], &str) -> Result<()>,
) -> Result<()> {
    let mut missing = Missing::default();
    for (mut collection, watches) in collections(core) {
        let Some(first) = watches.first() else { continue };
        let kind = first.kind;
        let mut listed = list(client, &collection, |text| see(kind, &watches, text)).await;
        while listed.as_ref().is_err_and(is_absence) && first.next_version() {
            collection.path = first.path();
            listed = list(client, &collection, |text| see(kind, &watches, text)).await;
        }
        let Err(error) = listed else { continue };
        let is_absent = is_absence(&error);
        if is_absent && watches.iter().all(|watch| watch.is_optional()) {
            continue;
        }
        let question = if is_absent { " (is their definition installed?)" } else { "" };
        missing.note(error).with_context(|| format!("{} cannot be listed{question}", kind.plural))?;
    }
    missing.none()?;
    Ok(())
}

fn is_absence(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

/// Gives an object of a file to the caches that want it.
fn offer(core: &Core, mut object: Value, stored: &mut Stored) -> Result<()> {
    let Some(kind) = kind_of(core, &object)? else { return Ok(()) };
    files::as_stored(&mut object, kind.namespaced);
    let text = object.to_string();
    stored.keep(kind, &text)?;
    feed(&wanting(core, kind, &object)?, &text)
}

/// The kind of an object of a file, if a cache of a core wants such objects.
pub fn kind_of(core: &Core, object: &Value) -> Result<Option<ResourceKind>> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_it = |kind: ResourceKind| kind.kind == name && (api_version.is_empty() || kind.group == group);
    let Some(watch) = core.watches().iter().find(|watch| is_it(watch.kind)) else { return Ok(None) };
    let kind = watch.kind;
    ensure!(
        api_version.is_empty() || watch.decodes(api_version),
        "{name} {}: it is written in {api_version}, and {} is read, which only an API server converts it to: kubectl get {}.{}.{} -o yaml",
        object["metadata"]["name"].as_str().unwrap_or_default(),
        kind.api_version(),
        kind.plural,
        kind.version,
        kind.group,
    );
    Ok(Some(kind))
}

/// The caches of a core that want this object of a kind.
pub fn wanting<'c>(core: &'c Core, kind: ResourceKind, object: &Value) -> Result<Vec<&'c Watch>> {
    let mut wanting = Vec::new();
    for watch in core.watches().iter().filter(|watch| watch.kind == kind) {
        if selects(&watch.selection, object)? {
            wanting.push(&**watch);
        }
    }
    Ok(wanting)
}

/// Gives an object to caches.
pub fn feed(watches: &[&Watch], text: &str) -> Result<()> {
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
