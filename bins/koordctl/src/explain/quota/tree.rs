//! The quotas of a cluster or of files, as objects and as the webhook's handlers know them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use koord_api::{
    elastic_quota::ElasticQuota,
    quota::{self, IS_PARENT, NAME, ROOT_QUOTA},
};
use koord_resource::{Resource as _, controller::ResourceKind};
use serde_json::{Value, json};

use crate::{cli::QuotaArgs, connect, listing, manifests, names::question, permission::Missing, reviewer::Reviewer};

/// One quota.
pub(crate) struct Quota {
    /// As it is stored.
    pub(super) object: Value,
    pub(super) typed: ElasticQuota,
}

impl Quota {
    /// Reads an object, which may lack what a list leaves out.
    fn read(mut object: Value) -> Result<Self> {
        let kind = ResourceKind::of(&ElasticQuota::INFO);
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.into();
        let typed = serde_json::from_value(object.clone())?;
        Ok(Self { object, typed })
    }

    pub(crate) fn name(&self) -> &str {
        self.typed.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.typed.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    pub(super) fn label(&self, name: &str) -> &str {
        self.typed.metadata.labels.as_ref().and_then(|labels| labels.get(name)).map_or("", String::as_str)
    }

    pub(super) fn is_parent(&self) -> bool {
        self.label(IS_PARENT.name()) == "true"
    }

    pub(super) fn lends(&self) -> bool {
        self.typed.metadata.labels.as_ref().is_none_or(quota::allows_lending)
    }

    pub(super) fn bound_namespaces(&self) -> Vec<String> {
        self.typed.metadata.annotations.as_ref().map(quota::namespaces).unwrap_or_default()
    }

    /// The name of the quota above; the root's where none is named.
    fn parent(&self) -> &str {
        match self.label(quota::PARENT) {
            "" if self.name() == ROOT_QUOTA => "",
            "" => ROOT_QUOTA,
            parent => parent,
        }
    }
}

/// All quotas.
pub(crate) struct Tree {
    /// By namespace and name.
    quotas: BTreeMap<String, Quota>,
    /// How many pods name a quota.
    pods: BTreeMap<String, usize>,
    /// The handlers, which know the same.
    pub(super) reviewer: Reviewer,
}

impl Tree {
    /// Without quotas.
    pub(crate) fn empty(feature_gates: &str) -> Result<Self> {
        Ok(Self { quotas: BTreeMap::new(), pods: BTreeMap::new(), reviewer: Reviewer::new(feature_gates)? })
    }

    /// All quotas that can be read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Quota> {
        self.quotas.values()
    }

    pub(super) async fn gather(args: &QuotaArgs) -> Result<Self> {
        let mut tree = Self::empty(&args.feature_gates)?;
        if args.filename.is_empty() {
            let client = connect::client(&args.answer.cluster).await?;
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
            missing.none()?;
        } else {
            for object in manifests::objects(&args.filename)? {
                let kind = object["kind"].as_str().unwrap_or_default().to_owned();
                tree.add(&kind, object)?;
            }
        }
        Ok(tree)
    }

    /// Takes an object, unless no rule about quotas looks at its kind.
    pub(crate) fn add(&mut self, kind: &str, mut object: Value) -> Result<()> {
        match kind {
            "ElasticQuota" => {
                manifests::as_stored(&mut object, true);
                self.put(object)
            }
            "Pod" => {
                manifests::as_stored(&mut object, true);
                if let Some(name) = object["metadata"]["labels"][NAME].as_str() {
                    *self.pods.entry(name.to_owned()).or_default() += 1;
                }
                self.reviewer.know(kind, &object.to_string())
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

    /// The quotas above, nearest first and without the root, and the name of the next one where it is missing.
    pub(super) fn above<'t>(&'t self, quota: &'t Quota) -> (Vec<&'t Quota>, Option<String>) {
        let mut above: Vec<&Quota> = Vec::new();
        let mut parent = quota.parent();
        while !parent.is_empty() && parent != ROOT_QUOTA {
            let Some(next) = self.find(parent) else { return (above, Some(parent.to_owned())) };
            // Stored quotas may go round in a circle.
            if next.name() == quota.name() || above.iter().any(|known| known.name() == next.name()) {
                return (above, Some(format!("{parent}, which is below")));
            }
            above.push(next);
            parent = next.parent();
        }
        (above, None)
    }

    pub(super) fn below<'t>(&'t self, quota: &'t Quota) -> impl Iterator<Item = &'t Quota> {
        self.quotas.values().filter(|other| other.parent() == quota.name())
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
        manifests::as_stored(&mut object, true);
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
