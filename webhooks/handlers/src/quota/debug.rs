//! `/elasticQuota`: the tree as this replica sees it, for people who look for a mistake.

use std::collections::BTreeMap;

use koord_resource::ResourceList;
use koord_types::quota::ROOT_QUOTA;
use koord_webhook_server::Page;
use serde::Serialize;

use super::{Forest, Quota, QuotaView, TreeView};

/// The names are the original's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    quota_info_map: BTreeMap<&'a str, Info<'a>>,
    quota_hierarchy_info: BTreeMap<&'a str, Vec<&'a str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    name: &'a str,
    is_parent: bool,
    parent_name: &'a str,
    allow_lent_resource: bool,
    max: Option<&'a ResourceList>,
    min: Option<&'a ResourceList>,
}

impl<'a> From<&'a Quota> for Info<'a> {
    fn from(quota: &'a Quota) -> Self {
        let bounds = |list: &'a ResourceList| Some(list).filter(|list| !list.is_empty());
        Self {
            name: &quota.name,
            is_parent: quota.is_parent,
            parent_name: &quota.parent,
            allow_lent_resource: quota.lends,
            max: bounds(&quota.max),
            min: bounds(&quota.min),
        }
    }
}

/// All quotas as they are expected to be, and who stands below whom.
pub(crate) fn page(view: QuotaView<'_>) -> Page {
    let quotas = view.quotas.read();
    let mut admitted = view.admitted.lock();
    let forest = Forest::new(&quotas, admitted.settle(&quotas, view.clock.moment()));
    let all = forest.tree(TreeView::Expected).all();
    let mut below = BTreeMap::from([(ROOT_QUOTA, Vec::new())]);
    for (name, quota) in &all {
        below.entry(name).or_insert_with(Vec::new);
        if !quota.parent.is_empty() {
            below.entry(&quota.parent).or_insert_with(Vec::new).push(*name);
        }
    }
    let infos = all.iter().map(|(name, quota)| (*name, Info::from(*quota))).collect();
    match serde_json::to_vec(&Summary { quota_info_map: infos, quota_hierarchy_info: below }) {
        Ok(body) => Page { body, ..Page::default() },
        Err(error) => Page { status: http::StatusCode::INTERNAL_SERVER_ERROR, body: error.to_string().into_bytes() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Ctx;

    #[test]
    fn bounds_without_resources_are_null() {
        let ctx = Ctx::detached(|_| false);
        for (name, spec) in [("absent", json!({"max": {"cpu": "1"}})), ("empty", json!({"max": {}, "min": {}}))] {
            let metadata = json!({"name": name, "namespace": "team", "uid": name, "resourceVersion": "1"});
            ctx.put("ElasticQuota", &json!({"metadata": metadata, "spec": spec}).to_string()).unwrap();
        }
        let shown: Value = serde_json::from_slice(&page(ctx.quotas()).body).unwrap();
        let bounds = |name: &str| {
            let info = shown["quotaInfoMap"][name].as_object().unwrap();
            json!([info["max"], info["min"]])
        };
        assert_eq!(bounds("absent"), json!([{"cpu": "1"}, null]));
        assert_eq!(bounds("empty"), json!([null, null]));
    }
}
