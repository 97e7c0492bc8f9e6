//! From and to a data directory.

use std::sync::Arc;

use serde_json::Value;

use super::ApiServer;
use crate::{
    encode,
    journal::{Contents, Entry},
    registry::ResourceDef,
    store::{ChangeKind, CollectionId, Labels, ObjectText, Record},
};

impl ApiServer {
    /// Keeps every further change until [`Self::take_journal`]; readers see it when it is on disk.
    pub fn start_journal(&mut self) {
        self.journal = Some(Vec::new());
        self.store.hide_changes();
    }

    /// Undoes what did not come to the disk. Gives the entries that put the disk back, should it have kept a part.
    pub(crate) fn undo_hidden(&mut self) -> Vec<Entry> {
        let undone = self.store.undo_hidden();
        let shown = self.store.shown();
        self.changed.retain(|(_, revision)| *revision <= shown);
        self.take_journal();
        let mut entries = Vec::with_capacity(undone.len());
        for (collection, change) in undone {
            self.garbage.note_undone(collection, &change);
            self.unfollowed.push((collection, change.key.to_string()));
            entries.push(Entry {
                collection: self.store.collection_name(collection).to_owned(),
                key: change.key.to_string(),
                revision: change.old.as_ref().map_or(shown, |old| old.revision),
                object: change.old.as_ref().map(|old| (Arc::clone(&old.version), old.text.shared_tail())),
            });
        }
        self.follow_changes();
        entries
    }

    /// Changes since the last call, in order.
    pub fn take_journal(&mut self) -> Vec<Entry> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts back what a data directory holds: definitions first, so that the kinds of the rest are known.
    pub fn restore(&mut self, contents: Contents) {
        let definitions = format!("{}/{}", crate::custom::GROUP, crate::custom::PLURAL);
        let (first, rest): (Vec<Entry>, Vec<Entry>) =
            contents.entries.into_iter().partition(|entry| entry.collection == definitions);
        let collection = self.store.collection_id(&definitions);
        self.unfollowed.extend(first.iter().map(|entry| (collection, entry.key.clone())));
        self.restore_entries(first);
        self.follow_changes();
        self.restore_entries(rest);
        self.store.restore_revision(contents.revision);
        // Nobody can resume a watch from before the restart.
        let revision = self.store.revision();
        self.store.compact(revision);
    }

    fn restore_entries(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let Some((version, tail)) = entry.object else { continue };
            let collection = self.store.collection_id(&entry.collection);
            let mut text = vec![b'{'];
            text.extend_from_slice(&tail);
            let Ok(mut object) = serde_json::from_slice::<Value>(&text) else {
                tracing::warn!(key = %entry.key, "an object in the data directory is no JSON and is left out");
                continue;
            };
            let definition = self
                .registry
                .iter()
                .find(|known| known.collection == collection && known.is_api_version(&version))
                .or_else(|| self.registry.iter().find(|known| known.collection == collection))
                .cloned();
            let record = match &definition {
                Some(definition) => {
                    Record { version, ..encode::record(definition, &mut object, entry.revision, ChangeKind::Added) }
                }
                // A kind that is not served: kept as it is.
                None => Record {
                    revision: entry.revision,
                    version,
                    text: ObjectText::of_tail(tail),
                    labels: Labels::default(),
                    fields: Box::default(),
                    owners: Box::default(),
                },
            };
            self.garbage.note_put(collection, &entry.key, None, &record, &object);
            self.store.restore(collection, &entry.key, record);
        }
    }

    /// Notes a change for the data directory.
    pub(super) fn note_change(&mut self, definition: &ResourceDef, key: &str, record: Option<&Record>) {
        let collection: CollectionId = definition.collection;
        if let Some(journal) = &mut self.journal {
            journal.push(Entry {
                collection: self.store.collection_name(collection).to_owned(),
                key: key.to_owned(),
                revision: self.store.revision(),
                object: record.map(|record| (Arc::clone(&record.version), record.text.shared_tail())),
            });
        }
    }
}
