//! `/elasticQuota`: the tree as this replica sees it, for people who look for a mistake.

use std::collections::BTreeMap;

use koord_api::quota::ROOT_QUOTA;
use koord_resource::ResourceList;
use koord_webhook::Page;
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
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    max: &'a ResourceList,
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    min: &'a ResourceList,
}

impl<'a> From<&'a Quota> for Info<'a> {
    fn from(quota: &'a Quota) -> Self {
        Self {
            name: &quota.name,
            is_parent: quota.is_parent,
            parent_name: &quota.parent,
            allow_lent_resource: quota.lends,
            max: &quota.max,
            min: &quota.min,
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
