//! Volumes and claims are bound to each other: what a volume says of its claim, what a claim says of its volume, and their phases.
//!
//! In a real cluster the volume controller of kube-controller-manager binds them. A server does so after
//! [`ApiServer::maintain_volumes`]. It provisions nothing and deletes nothing: a claim of a class with a provisioner waits for it, and
//! a volume whose claim is gone stays released.

mod find;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use http::Method;
use serde_json::{Value, json};

use super::ApiServer;
use crate::{environment, metadata, registry::ResourceDef, store::CollectionId};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONERS: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];
/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The kinds of volumes, and which volumes and claims may find each other.
#[derive(Clone, Debug)]
pub(super) struct Volumes {
    /// The kind of volumes.
    kind: Arc<ResourceDef>,
    claims: Arc<ResourceDef>,
    classes: Arc<ResourceDef>,
    /// Volumes that name a claim, by the key of the claim.
    of_claim: Index,
    /// Volumes that name none, by class.
    free: Index,
    /// Claims without a volume, by class.
    waiting: Index,
}

/// Keys of objects by something that they have.
#[derive(Clone, Debug, Default)]
struct Index {
    by_value: BTreeMap<String, BTreeSet<String>>,
    values: BTreeMap<String, String>,
}

impl Index {
    /// Takes note of what an object has now; gives what it had before.
    fn set(&mut self, key: &str, value: Option<String>) -> Option<String> {
        let before = match &value {
            Some(value) => self.values.insert(key.to_owned(), value.clone()),
            None => self.values.remove(key),
        };
        if before != value {
            if let Some(before) = &before
                && let Some(keys) = self.by_value.get_mut(before)
            {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_value.remove(before);
                }
            }
            if let Some(value) = value {
                self.by_value.entry(value).or_default().insert(key.to_owned());
            }
        }
        before
    }

    fn of(&self, value: &str) -> Vec<String> {
        self.by_value.get(value).into_iter().flatten().cloned().collect()
    }
}

impl ApiServer {
    /// Binds volumes and claims from now on.
    pub fn maintain_volumes(&mut self) {
        let find = |group: &str, plural: &str| self.registry.any_version(group, plural).cloned();
        let (Some(volumes), Some(claims), Some(classes)) = (
            find("", "persistentvolumes"),
            find("", "persistentvolumeclaims"),
            find("storage.k8s.io", "storageclasses"),
        ) else {
            return;
        };
        self.follow_all(&volumes);
        self.follow_all(&claims);
        let [of_claim, free, waiting] = [(); 3].map(|()| Index::default());
        self.volumes = Some(Volumes { kind: volumes, claims, classes, of_claim, free, waiting });
        self.follow_changes();
    }

    /// Brings what depends on changed volumes, claims and classes up to date.
    pub(super) fn reconcile_volumes(&mut self, changed: &[(CollectionId, String)]) {
        let Some(mut known) = self.volumes.take() else { return };
        for (collection, key) in changed {
            if *collection == known.kind.collection {
                self.volume_changed(&mut known, key);
            } else if *collection == known.claims.collection {
                self.claim_changed(&mut known, key);
            } else if *collection == known.classes.collection {
                for claim in known.waiting.of(key) {
                    self.sync_claim(&mut known, &claim);
                }
            }
        }
        self.volumes = Some(known);
    }

    fn volume_changed(&mut self, known: &mut Volumes, name: &str) {
        let volume = self.object(&known.kind, "", name);
        let before = known.note_volume(name, volume.as_ref());
        if volume.is_some() {
            self.sync_volume(known, name);
        }
        // A claim whose volume is gone, or names another, is lost.
        let now = known.of_claim.values.get(name).cloned();
        for claim in before.into_iter().chain(now).collect::<BTreeSet<_>>() {
            self.sync_claim(known, &claim);
        }
        if let Some(class) = known.free.values.get(name).cloned() {
            for claim in known.waiting.of(&class) {
                if !known.free.values.contains_key(name) {
                    break;
                }
                self.sync_claim(known, &claim);
            }
        }
    }

    fn claim_changed(&mut self, known: &mut Volumes, key: &str) {
        let claim = self.claim(known, key);
        known.note_claim(key, claim.as_ref());
        for volume in known.of_claim.of(key) {
            self.sync_volume(known, &volume);
        }
        self.sync_claim(known, key);
    }

    fn claim(&self, known: &Volumes, key: &str) -> Option<Value> {
        let (namespace, name) = key.split_once('/')?;
        self.object(&known.claims, namespace, name)
    }

    /// A volume is free, bound to a claim that says so too, or left over by a claim that is gone.
    fn sync_volume(&mut self, known: &mut Volumes, name: &str) {
        let Some(mut volume) = self.object(&known.kind, "", name) else { return };
        let reference = volume["spec"]["claimRef"].clone();
        let uid = reference["uid"].as_str().unwrap_or_default();
        if uid.is_empty() {
            self.set_volume_phase(known, volume, "Available");
            return;
        }
        let claim = self.claim(known, &claim_key(&reference)).filter(|claim| metadata::text(claim, "uid") == uid);
        let Some(claim) = claim else {
            if !matches!(phase(&volume), "Released" | "Failed") {
                self.set_volume_phase(known, volume, "Released");
            }
            return;
        };
        match claim["spec"]["volumeName"].as_str().unwrap_or_default() {
            "" => self.sync_claim(known, &claim_key(&reference)),
            own if own == name => self.set_volume_phase(known, volume, "Bound"),
            // The claim has another volume.
            _ => {
                if annotation(&volume, BOUND_BY_CONTROLLER).is_empty() {
                    volume["spec"]["claimRef"]["uid"] = json!("");
                } else {
                    remove_annotation(&mut volume, BOUND_BY_CONTROLLER);
                    if let Some(spec) = volume["spec"].as_object_mut() {
                        spec.remove("claimRef");
                    }
                }
                let volume = self.put_volume(known, &volume);
                self.set_volume_phase(known, volume, "Available");
            }
        }
    }

    fn sync_claim(&mut self, known: &mut Volumes, key: &str) {
        let Some(claim) = self.claim(known, key) else { return };
        let name = claim["spec"]["volumeName"].as_str().unwrap_or_default().to_owned();
        let is_completed = !annotation(&claim, BIND_COMPLETED).is_empty();
        if name.is_empty() && !is_completed {
            self.find_volume(known, claim);
            return;
        }
        let volume = self.object(&known.kind, "", &name);
        match volume {
            Some(volume) if find::is_bound_to(&volume, &claim) => self.bind_volume(known, volume, claim),
            Some(volume)
                if !volume["spec"]["claimRef"].is_object() && (is_completed || find::satisfies(&volume, &claim)) =>
            {
                self.bind_volume(known, volume, claim);
            }
            _ => self.set_claim_status(known, claim, if is_completed { "Lost" } else { "Pending" }, None),
        }
    }

    fn find_volume(&mut self, known: &mut Volumes, mut claim: Value) {
        let class = self.object(&known.classes, "", &class_of(&claim));
        let waits_for_pod = class.as_ref().is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer");
        let named = known.of_claim.of(&claim_key(&claim["metadata"]));
        let free = if waits_for_pod { Vec::new() } else { known.free.of(&class_of(&claim)) };
        let candidates = named.into_iter().chain(free).filter_map(|name| self.object(&known.kind, "", &name));
        if let Some(volume) = find::best(candidates, &claim, &class_of(&claim)) {
            self.bind_volume(known, volume, claim);
            return;
        }
        let provisioner = class.as_ref().and_then(|class| class["provisioner"].as_str()).unwrap_or(NO_PROVISIONER);
        let is_due = !waits_for_pod || !annotation(&claim, SELECTED_NODE).is_empty();
        if is_due && provisioner != NO_PROVISIONER && annotation(&claim, PROVISIONERS[1]) != provisioner {
            for name in PROVISIONERS {
                set_annotation(&mut claim, name, provisioner);
            }
            claim = self.put_claim(known, &claim);
        }
        self.set_claim_status(known, claim, "Pending", None);
    }

    /// Each says of the other that they belong together, the volume first.
    fn bind_volume(&mut self, known: &mut Volumes, mut volume: Value, mut claim: Value) {
        let is_ours = !find::is_bound_to(&volume, &claim) || !volume["spec"]["claimRef"].is_object();
        let uid = metadata::text(&claim, "uid").to_owned();
        let mut is_changed = false;
        if is_ours || volume["spec"]["claimRef"]["uid"] != uid {
            volume["spec"]["claimRef"] = json!({
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": uid,
                "namespace": metadata::text(&claim, "namespace"), "name": metadata::text(&claim, "name"),
                "resourceVersion": metadata::text(&claim, "resourceVersion"),
            });
            is_changed = true;
        }
        if is_ours {
            set_annotation(&mut volume, BOUND_BY_CONTROLLER, "yes");
        }
        if is_changed {
            volume = self.put_volume(known, &volume);
            if volume["spec"]["claimRef"]["uid"] != uid {
                return;
            }
        }
        let (name, size, modes) = (
            volume["metadata"]["name"].clone(),
            volume["spec"]["capacity"].clone(),
            volume["spec"]["accessModes"].clone(),
        );
        self.set_volume_phase(known, volume, "Bound");
        let mut is_changed = annotation(&claim, BIND_COMPLETED).is_empty();
        if claim["spec"]["volumeName"] != name {
            claim["spec"]["volumeName"] = name;
            set_annotation(&mut claim, BOUND_BY_CONTROLLER, "yes");
            is_changed = true;
        }
        if is_changed {
            set_annotation(&mut claim, BIND_COMPLETED, "yes");
            claim = self.put_claim(known, &claim);
        }
        self.set_claim_status(known, claim, "Bound", Some((size, modes)));
    }

    fn set_volume_phase(&mut self, known: &mut Volumes, mut volume: Value, to: &str) {
        if phase(&volume) == to {
            return;
        }
        let now = environment::time_text(self.environment.now());
        volume["status"]["phase"] = json!(to);
        volume["status"]["lastPhaseTransitionTime"] = json!(now);
        let name = metadata::text(&volume, "name").to_owned();
        self.write_own(Method::PUT, &format!("/api/v1/persistentvolumes/{name}/status"), &volume);
        known.note_volume(&name, self.object(&known.kind, "", &name).as_ref());
    }

    /// `of_volume` are its capacity and its access modes.
    fn set_claim_status(&mut self, known: &mut Volumes, mut claim: Value, to: &str, of_volume: Option<(Value, Value)>) {
        let before = claim["status"].clone();
        claim["status"]["phase"] = json!(to);
        match of_volume {
            Some((capacity, modes)) => {
                // A volume that grew keeps the size that its file system has, until a resize is over.
                if before["phase"] != "Bound" || !before["capacity"].is_object() {
                    claim["status"]["capacity"] = capacity;
                }
                claim["status"]["accessModes"] = modes;
            }
            None if to == "Pending" => {
                if let Some(status) = claim["status"].as_object_mut() {
                    status.retain(|field, _| !matches!(field.as_str(), "capacity" | "accessModes"));
                }
            }
            None => {}
        }
        if claim["status"] != before {
            self.write_own(Method::PUT, &format!("{}/status", claim_path(&claim)), &claim);
        }
        let key = claim_key(&claim["metadata"]);
        known.note_claim(&key, self.claim(known, &key).as_ref());
    }

    /// Stores a volume; gives what is stored then.
    fn put_volume(&mut self, known: &mut Volumes, volume: &Value) -> Value {
        let name = metadata::text(volume, "name");
        self.write_own(Method::PUT, &format!("/api/v1/persistentvolumes/{name}"), volume);
        let stored = self.object(&known.kind, "", name);
        known.note_volume(name, stored.as_ref());
        stored.unwrap_or_default()
    }

    fn put_claim(&mut self, known: &Volumes, claim: &Value) -> Value {
        self.write_own(Method::PUT, &claim_path(claim), claim);
        self.claim(known, &claim_key(&claim["metadata"])).unwrap_or_default()
    }
}

// === impl Volumes ===

impl Volumes {
    /// Takes note of a volume; gives the claim that it named before.
    fn note_volume(&mut self, name: &str, volume: Option<&Value>) -> Option<String> {
        let claim = volume.map(|volume| &volume["spec"]["claimRef"]).filter(|claim| claim.is_object());
        let is_free = claim.is_none();
        self.free.set(name, volume.filter(|_| is_free).map(class_of));
        self.of_claim.set(name, claim.map(claim_key))
    }

    fn note_claim(&mut self, key: &str, claim: Option<&Value>) {
        let waiting = claim.filter(|claim| claim["spec"]["volumeName"].as_str().unwrap_or_default().is_empty());
        self.waiting.set(key, waiting.map(class_of));
    }
}

/// The class of a volume or claim; empty for none.
fn class_of(object: &Value) -> String {
    match annotation(object, CLASS) {
        "" => object["spec"]["storageClassName"].as_str().unwrap_or_default().to_owned(),
        class => class.to_owned(),
    }
}

fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

/// The key of the claim that a reference, or its own metadata, names.
fn claim_key(of: &Value) -> String {
    format!("{}/{}", of["namespace"].as_str().unwrap_or_default(), of["name"].as_str().unwrap_or_default())
}

fn claim_path(claim: &Value) -> String {
    let (namespace, name) = (metadata::text(claim, "namespace"), metadata::text(claim, "name"));
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}

fn set_annotation(object: &mut Value, name: &str, value: &str) {
    let annotations = metadata::of_mut(object).entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[name] = json!(value);
}

fn remove_annotation(object: &mut Value, name: &str) {
    let fields = metadata::of_mut(object);
    let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove(name);
    if annotations.is_empty() {
        fields.remove("annotations");
    }
}
