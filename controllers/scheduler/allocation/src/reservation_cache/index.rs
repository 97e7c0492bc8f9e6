//! By what reservations are found for their owners, for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::uid::Uid;
use serde_json::{Map, Value, json};

use super::ReservationCache;

impl ReservationCache {
    /// How many reservations are found by labels and names of their owners, and how many are looked at for every pod; with
    /// `detail` which.
    pub fn index(&self, has_detail: bool) -> Value {
        let names = |uids: &BTreeSet<Uid>| -> Vec<&str> {
            uids.iter().filter_map(|uid| self.info(uid)).map(|info| &*info.name).collect()
        };
        let mut index = json!({
            "reservations": self.infos.len(),
            "selectors": self.by_mark.values().map(BTreeMap::len).sum::<usize>(),
            "unindexed": self.unmarked.len(),
        });
        if has_detail {
            let by_value = |of_key: &BTreeMap<Arc<str>, BTreeSet<Uid>>| -> Map<String, Value> {
                of_key.iter().map(|(value, uids)| (value.to_string(), json!(names(uids)))).collect()
            };
            index["bySelector"] =
                self.by_mark.iter().map(|(key, of_key)| (key.to_string(), Value::from(by_value(of_key)))).collect();
            index["unindexedReservations"] = json!(names(&self.unmarked));
        }
        index
    }
}
