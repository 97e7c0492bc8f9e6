//! The labels of a node or pod, as a sorted list that is shared.

use std::{collections::BTreeMap, sync::Arc};

/// Labels, by key. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| &**value)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All labels, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl FromIterator<(Arc<str>, Arc<str>)> for Labels {
    /// The last of several values of one key counts.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Arc<str>)>>(labels: I) -> Self {
        let labels: BTreeMap<_, _> = labels.into_iter().collect();
        if labels.is_empty() { Self::default() } else { Self(labels.into_iter().collect()) }
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(labels: I) -> Self {
        labels.into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_by_their_key() {
        let labels: Labels = [("zone", "b"), ("arch", "arm64"), ("zone", "a")].into_iter().collect();
        assert_eq!((labels.get("zone"), labels.get("arch"), labels.get("zon")), (Some("a"), Some("arm64"), None));
        assert_eq!(labels.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["arch", "zone"]);
        assert!(!labels.is_empty() && Labels::default().is_empty());
    }
}
