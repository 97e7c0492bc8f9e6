//! Who has just become leader decides nothing before its caches agree with the API server: what the last leader bound counts then.
//!
//! Each collection is read once, consistently. A cache agrees when its watch has come as far as that, or when it holds the same:
//! of a collection that does not change, a watch says nothing for a minute. A cache that lacks an object because something panicked agrees
//! with nobody: it is listed anew first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Watch,
    api::{Api, Part},
    cache::Revision,
    clock::SharedClock,
    key::ObjectKey,
};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::feed::Feed;

/// How often caches are looked at, and how soon a request that has failed is made again.
const PAUSE: Duration = Duration::from_millis(100);
/// So many times longer is waited while a cache is known to lack something: whoever gives out devices then gives them out twice.
const LACKING: u32 = 6;
/// How often a collection is fetched anew of which a cache lacks something.
const AGAIN: u32 = 10;
/// Objects of a page.
const PAGE: usize = 500;
/// Pages that are read of a collection: where there are more objects, its watch has to come as far as the first page.
const PAGES_MAX: usize = 50;
/// Of pods, only those without a node are compared: all others have been bound by somebody, and their number shows whether some
/// are missing.
const WITHOUT_NODE: &str = "&fieldSelector=spec.nodeName%3D";

/// A collection as it was read.
#[derive(Debug, Default)]
struct Snapshot {
    revision: Revision,
    /// What was read; none where that was not all.
    objects: Option<Vec<(ObjectKey, Revision)>>,
    /// How many there are in all, of pods.
    pods: usize,
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: String,
    #[serde(default)]
    remaining_item_count: usize,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    resource_version: String,
}

/// Waits until all caches agree with the API server, or until the time or the lead is over. Says whether the time was enough.
///
/// A watch that has merely not said how far it has come may be quiet, and is waited for until the limit. What was not listed yet, could not
/// be read to compare it, or lacks an object is known to be wrong, and is waited for [`LACKING`] times as long: not for ever, so that
/// a collection that an API server cannot serve does not end all scheduling.
pub(crate) async fn agree(
    feed: &Feed,
    clock: &SharedClock,
    api: &Api,
    end: &CancellationToken,
    limit: Duration,
) -> bool {
    let mut behind: Vec<&'static str> = Vec::new();
    let lacks = AtomicBool::new(true);
    let agreed = async {
        while !feed.is_complete() {
            clock.sleep(PAUSE).await;
        }
        let mut open = Vec::new();
        for watch in feed.all_watches().filter(|watch| watch.idle().is_none()) {
            behind = vec![watch.kind.kind];
            // A request that fails is made again until it succeeds.
            if let Some(snapshot) = read(watch, feed, clock, api).await {
                open.push((watch, snapshot));
            }
        }
        for looks in 0.. {
            open.retain(|(watch, snapshot)| !snapshot.agrees(watch, feed));
            let owing: Vec<&Arc<Watch>> = feed.all_watches().filter(|watch| watch.sink.owes()).collect();
            let lagging = open.iter().map(|(watch, _)| *watch);
            behind = lagging.chain(owing.iter().copied()).map(|watch| watch.kind.kind).collect();
            if behind.is_empty() {
                return;
            }
            lacks.store(!owing.is_empty(), Ordering::Relaxed);
            if looks % AGAIN == 0 {
                for watch in &owing {
                    watch.list_again();
                }
            }
            clock.sleep(PAUSE).await;
        }
    };
    let patience = async {
        let begun = clock.moment();
        clock.sleep(limit).await;
        while lacks.load(Ordering::Relaxed) && clock.moment().since(begun) < limit * LACKING {
            clock.sleep(PAUSE).await;
        }
    };
    let is_over = tokio::select! {
        biased;
        () = end.cancelled() => false,
        () = agreed => false,
        () = patience => true,
    };
    if is_over {
        tracing::warn!(?behind, "caches are behind the API server; pods are scheduled all the same");
    }
    !is_over
}

/// What the collection of a watch is; none where the watch has come as far already, or the API server does not serve it any more.
async fn read(watch: &Watch, feed: &Feed, clock: &SharedClock, api: &Api) -> Option<Snapshot> {
    loop {
        match snapshot(watch, feed, api).await {
            Ok(snapshot) => return snapshot,
            Err(_) if watch.idle().is_some() => return None,
            Err(error) => {
                tracing::warn!(%error, kind = watch.kind.kind, "what a cache is compared with could not be read");
            }
        }
        clock.sleep(PAUSE).await;
    }
}

async fn snapshot(watch: &Watch, feed: &Feed, api: &Api) -> Result<Option<Snapshot>, String> {
    let is_of_pods = watch.kind == ResourceKind::POD;
    let selected = match watch.selection.fields.as_str() {
        "" => String::new(),
        fields => format!("&fieldSelector={}", fields.replace('=', "%3D")),
    };
    let first = page(watch, api, if is_of_pods { 1 } else { PAGE }, &selected, "").await?;
    let mut snapshot = Snapshot { revision: revision(&first.metadata.resource_version)?, ..Snapshot::default() };
    if snapshot.agrees(watch, feed) {
        return Ok(None);
    }
    snapshot.pods = first.items.len() + first.metadata.remaining_item_count;
    let mut page_read = if is_of_pods { page(watch, api, PAGE, WITHOUT_NODE, "").await? } else { first };
    let selected = if is_of_pods { WITHOUT_NODE } else { &selected };
    let mut objects = Vec::new();
    for _ in 0..PAGES_MAX {
        for Item { metadata } in page_read.items {
            objects.push((ObjectKey::new(&metadata.namespace, &metadata.name), revision(&metadata.resource_version)?));
        }
        if page_read.metadata.token.is_empty() {
            snapshot.objects = Some(objects);
            break;
        }
        page_read = page(watch, api, PAGE, selected, &page_read.metadata.token).await?;
    }
    Ok(Some(snapshot))
}

async fn page(watch: &Watch, api: &Api, limit: usize, selected: &str, token: &str) -> Result<Page, String> {
    let token = if token.is_empty() { String::new() } else { format!("&continue={}", encoded(token)) };
    let uri = format!("{}?limit={limit}{selected}{token}", watch.path());
    let answer = api.list(uri, Part::Metadata).await.map_err(|error| error.message)?;
    if answer.code != 200 {
        return Err(format!("status {}: {}", answer.code, answer.body));
    }
    serde_json::from_str(&answer.body).map_err(|error| error.to_string())
}

fn revision(text: &str) -> Result<Revision, String> {
    Revision::parse(text).map_err(|error| error.to_string())
}

fn encoded(token: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    token.bytes().map(byte).collect()
}

impl Snapshot {
    fn agrees(&self, watch: &Watch, feed: &Feed) -> bool {
        watch.revision() >= self.revision
            || self.objects.as_ref().is_some_and(|objects| self.is_held(objects, watch, feed))
    }

    /// Whether a cache holds just these objects, none of them older.
    fn is_held(&self, objects: &[(ObjectKey, Revision)], watch: &Watch, feed: &Feed) -> bool {
        let sizes = watch.sink.sizes();
        let all = sizes.objects + sizes.quarantined;
        let is_complete = if watch.kind == ResourceKind::POD {
            all == self.pods && feed.pods.without_node() == objects.len()
        } else {
            all == objects.len()
        };
        is_complete && objects.iter().all(|(key, revision)| watch.sink.holds(key, *revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_part_of_a_query() {
        assert_eq!(encoded("to/ken=_1"), "to%2Fken%3D_1");
    }
}
