//! What would become of changes, one after the other.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use koord_manager_assembly::reviewer::QUOTAS;
use koord_program::{files, screen::Screen};
use koord_resource::admission::{Denial, Operation};
use serde_json::{Value, json};

use super::{
    refusal_json, refusal_text,
    tree::{self, Tree},
};
use crate::QuotaOptions;

/// What became of one proposed change.
pub(super) struct Step {
    /// `create` or `update`.
    operation: &'static str,
    /// Namespace and name.
    key: String,
    /// Why it is refused; none when it is admitted.
    pub(super) refusal: Option<Denial>,
}

/// Plays the proposals in their order; what is admitted counts for those that follow.
pub(super) fn play(tree: &mut Tree, options: &QuotaOptions<'_>) -> Result<Vec<Step>> {
    let namespace = options.namespace.unwrap_or("default");
    proposals(options.what_if, namespace)?.into_iter().map(|proposal| play_one(tree, &proposal)).collect()
}

fn proposals(files: &[PathBuf], namespace: &str) -> Result<Vec<Value>> {
    let mut proposals = files::objects(files)?;
    for proposal in &mut proposals {
        let kind = proposal["kind"].as_str().unwrap_or_default();
        if kind != "ElasticQuota" {
            bail!(
                "--what-if takes ElasticQuotas, not {}",
                if kind.is_empty() { "an object without a kind" } else { kind }
            );
        }
        if proposal["metadata"]["name"].as_str().is_none_or(str::is_empty) {
            bail!("--what-if: an ElasticQuota has no metadata.name");
        }
        if proposal["metadata"]["namespace"].is_null() {
            proposal["metadata"]["namespace"] = namespace.into();
        }
    }
    Ok(proposals)
}

fn play_one(tree: &mut Tree, proposal: &Value) -> Result<Step> {
    let text = |field: &str| proposal["metadata"][field].as_str().unwrap_or_default();
    let key = format!("{}/{}", text("namespace"), text("name"));
    let stored = tree.get(&key);
    let object = tree::applied(proposal, stored);
    let (operation, word) = match stored {
        Some(_) => (Operation::Update, "update"),
        None => (Operation::Create, "create"),
    };
    let old = stored.map(|stored| stored.object.clone());
    let refusal = match tree.reviewer.admit(QUOTAS, operation, &object, old.as_ref()) {
        Ok(admitted) => {
            tree.put(tree::newer(admitted)).with_context(|| key.clone())?;
            None
        }
        Err(denial) => Some(denial),
    };
    Ok(Step { operation: word, key, refusal })
}

impl Step {
    pub(super) fn to_text(&self, screen: Screen) -> String {
        match &self.refusal {
            None => format!("{} {}: admitted\n", self.operation, self.key),
            Some(denial) => format!("{} {}: refused\n{}", self.operation, self.key, refusal_text(denial, screen)),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({"operation": self.operation, "quota": self.key, "admitted": self.refusal.is_none()});
        if let Some(denial) = &self.refusal {
            json["refusal"] = refusal_json(denial);
        }
        json
    }
}
