//! The quotas of a cluster or of files, as objects and as the webhook's handlers know them.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result, bail};
use koord_manager_assembly::reviewer::Reviewer;
use koord_program::{connect, files, listing, names::question, permission::Missing};
use koord_quota::{Demand, Quota as Place, Snapshot, Top};
use koord_resource::{Resource as _, ResourceList, controller::ResourceKind};
use koord_types::{
    elastic_quota::ElasticQuota,
    quota::{DEFAULT_QUOTA, NAME, SYSTEM_QUOTA},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::QuotaOptions;

/// One quota.
pub struct Quota {
    /// As it is stored.
    pub(super) object: Value,
    pub(super) typed: ElasticQuota,
    /// Its place in the tree.
    pub(super) place: Arc<Place>,
}

impl Quota {
    /// Reads an object, which may lack what a list leaves out.
    fn read(mut object: Value) -> Result<Self> {
        let kind = ResourceKind::of(&ElasticQuota::INFO);
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.into();
        let typed = serde_json::from_value(object.clone())?;
        let place = Arc::new(Place::from(&typed));
        Ok(Self { object, typed, place })
    }

    pub fn name(&self) -> &str {
        self.typed.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.typed.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }
}

pub struct Tree {
    /// By namespace and name.
    quotas: BTreeMap<String, Quota>,
    /// How many pods name a quota.
    pods: BTreeMap<String, usize>,
    /// What the nodes can allocate together.
    nodes: ResourceList,
    /// The handlers, which know the same.
    pub(super) reviewer: Reviewer,
}

impl Tree {
    /// Without quotas.
    pub fn empty(feature_gates: &str) -> Result<Self> {
        Ok(Self {
            quotas: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: ResourceList::new(),
            reviewer: Reviewer::new(feature_gates)?,
        })
    }

    /// All quotas that can be read.
    pub fn all(&self) -> impl Iterator<Item = &Quota> {
        self.quotas.values()
    }

    pub(super) async fn gather(options: &QuotaOptions<'_>) -> Result<Self> {
        let mut tree = Self::empty(options.feature_gates)?;
        if options.files.is_empty() {
            let client = connect::client(&options.cluster).await?;
            let quotas = ResourceKind::of(&ElasticQuota::INFO).url_path("", None);
            let read = listing::each(&client, &quotas, "", listing::Part::Whole, |object| {
                tree.add("ElasticQuota", serde_json::from_str(object)?)
            });
            let mut missing = Missing::default();
            if let Err(error) = read.await {
                let unlisted = "the quotas cannot be listed; `koordctl doctor` says whether their CRD is installed";
                missing.note(error).context(unlisted)?;
            }
            let pods = ResourceKind::POD.url_path("", None);
            let read = listing::each(&client, &pods, "", listing::Part::Metadata, |object| {
                tree.add("Pod", serde_json::from_str(object)?)
            });
            if let Err(error) = read.await {
                missing.note(error).context("the pods cannot be listed")?;
            }
            // The runtime quota is a share of what all nodes have.
            let nodes = ResourceKind::NODE.url_path("", None);
            let read = listing::each(&client, &nodes, "", listing::Part::Whole, |object| {
                tree.add("Node", serde_json::from_str(object)?)
            });
            if let Err(error) = read.await {
                missing.note(error).context("the nodes cannot be listed")?;
            }
            missing.none()?;
        } else {
            for object in files::objects(options.files)? {
                let kind = object["kind"].as_str().unwrap_or_default().to_owned();
                tree.add(&kind, object)?;
            }
        }
        Ok(tree)
    }

    /// Takes an object, unless no rule about quotas looks at its kind.
    pub fn add(&mut self, kind: &str, mut object: Value) -> Result<()> {
        match kind {
            "ElasticQuota" => {
                files::as_stored(&mut object, true);
                self.put(object)
            }
            "Pod" => {
                files::as_stored(&mut object, true);
                if let Some(name) = object["metadata"]["labels"][NAME].as_str() {
                    *self.pods.entry(name.to_owned()).or_default() += 1;
                }
                self.reviewer.know(kind, &object.to_string())
            }
            "Node" => {
                self.nodes.add(&ResourceList::deserialize(&object["status"]["allocatable"]).unwrap_or_default());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds a quota, or puts it in the place of the one of its name. One that cannot be read is set aside, as the
    /// webhook does.
    pub(super) fn put(&mut self, object: Value) -> Result<()> {
        self.reviewer.know("ElasticQuota", &object.to_string())?;
        if let Ok(quota) = Quota::read(object) {
            self.quotas.insert(quota.key(), quota);
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<&Quota> {
        self.quotas.get(key)
    }

    /// The quota of a name, in whatever namespace where none is given.
    pub(super) fn named(&self, name: &str, namespace: Option<&str>) -> Result<&Quota> {
        let fits =
            |quota: &&Quota| quota.name() == name && namespace.is_none_or(|namespace| quota.namespace() == namespace);
        let found: Vec<&Quota> = self.quotas.values().filter(fits).collect();
        match found[..] {
            [quota] => Ok(quota),
            [] => {
                let place = namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
                let elsewhere = self.find(name).map(|quota| format!("there is one in {}", quota.namespace()));
                let known = self.quotas.values().map(Quota::name);
                let hint = elsewhere.or_else(|| question(name, known));
                let hint = hint.unwrap_or_else(|| "`kubectl get elasticquotas -A` shows those that are".to_owned());
                bail!("there is no quota {name}{place}; {hint}")
            }
            _ => {
                let namespaces: Vec<&str> = found.iter().map(|quota| quota.namespace()).collect();
                bail!("there are quotas {name} in {}; choose one with -n", namespaces.join(", "))
            }
        }
    }

    /// The first quota of a name: names are one for all namespaces.
    fn find(&self, name: &str) -> Option<&Quota> {
        self.quotas.values().find(|quota| quota.name() == name)
    }

    fn snapshot(&self) -> Snapshot {
        self.quotas.values().map(|quota| Arc::clone(&quota.place)).collect()
    }

    /// The ancestors, nearest first and without the root, and the name of the next one where it is missing.
    pub(super) fn above(&self, quota: &Quota) -> (Vec<&Quota>, Option<String>) {
        let snapshot = self.snapshot();
        let above = snapshot.above(&quota.place);
        let quotas = above.quotas.iter().filter_map(|above| self.find(&above.name)).collect();
        let missing = match above.top {
            Top::Root => None,
            Top::Missing(name) => Some(name.to_owned()),
            Top::Circle(name) => Some(format!("{name}, which is below")),
        };
        (quotas, missing)
    }

    pub(super) fn below<'t>(&'t self, quota: &'t Quota) -> impl Iterator<Item = &'t Quota> {
        self.quotas.values().filter(|other| other.place.parent == quota.name())
    }

    /// What the quota may use now, by what the quotas' annotations say is requested; none where the resources of its
    /// tree are not known.
    pub(super) fn runtime(&self, quota: &Quota) -> Option<ResourceList> {
        let tree_id = &quota.place.tree_id;
        let of_tree = || self.quotas.values().map(|quota| &quota.place).filter(|place| place.tree_id == *tree_id);
        let own = of_tree().find(|place| place.begins_tree && !place.total.is_empty());
        let total = own.map_or(&self.nodes, |root| &root.total);
        if total.is_empty() {
            return None;
        }
        let used = [SYSTEM_QUOTA, DEFAULT_QUOTA].into_iter().filter_map(|name| self.find(name));
        let used = used.fold(ResourceList::new(), |sum, quota| sum.plus(&quota.typed.status.used));
        let total = total.minus(&used.only(&total.names().collect::<Vec<_>>()));
        // What a parent's children request is theirs.
        let leaves = of_tree().filter(|place| !place.is_parent);
        let requests = leaves.map(|place| (place.name.as_str(), place.requested.clone())).collect();
        let snapshot: Snapshot = of_tree().map(Arc::clone).collect();
        let demand = Demand { total: &total, requests: &requests, scale_min: true, guarantee: false };
        koord_quota::runtime(&snapshot, demand).remove(quota.name())
    }

    pub(super) fn pods_of(&self, quota: &Quota) -> usize {
        self.pods.get(quota.name()).copied().unwrap_or_default()
    }
}

/// The object of a proposal as it would be stored: of what is there, labels and annotations that it does not name and
/// the status stay, as they do when it is applied.
pub(super) fn applied(proposal: &Value, stored: Option<&Quota>) -> Value {
    let mut object = proposal.clone();
    let Some(stored) = stored.map(|quota| &quota.object) else {
        files::as_stored(&mut object, true);
        return object;
    };
    for part in ["labels", "annotations"] {
        let mut merged = stored["metadata"][part].as_object().cloned().unwrap_or_default();
        merged.extend(proposal["metadata"][part].as_object().cloned().unwrap_or_default());
        object["metadata"][part] = Value::Object(merged);
    }
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        object["metadata"][field] = stored["metadata"][field].clone();
    }
    if !stored["status"].is_null() {
        object["status"] = stored["status"].clone();
    }
    object
}

/// The object with the next revision, so that caches take it for newer.
pub(super) fn newer(mut object: Value) -> Value {
    let revision = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
    object["metadata"]["resourceVersion"] = json!(revision.unwrap_or_default().saturating_add(1).to_string());
    object
}
