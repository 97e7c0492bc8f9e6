//! Which profiles match.

use std::sync::Arc;

use koord_core::cache::Cache;
use smallvec::SmallVec;

use crate::{NamespaceLabels, Profile, Texts};

/// Profiles that match an object, in the order of their names.
pub type Matched = SmallVec<[Arc<Profile>; 4]>;

/// The profiles whose object selector selects `labels`.
pub fn matching(profiles: &Cache<Profile>, labels: &Texts<'_>) -> Matched {
    let profiles = profiles.iter().map(|(_, entry)| &entry.value);
    profiles.filter(|profile| profile.objects.selects(|key| labels.get(key))).cloned().collect()
}

/// Of these profiles, keeps those whose namespace selector selects the namespace. What is returned ask for labels of a
/// namespace that nobody knows; they do not apply either.
pub fn retain_of_namespace(matched: &mut Matched, namespaces: &Cache<NamespaceLabels>, namespace: &str) -> Matched {
    let mut unknown = Matched::new();
    if matched.iter().all(|profile| profile.namespaces.is_everything()) {
        return unknown;
    }
    let entry = namespaces.get(namespace);
    matched.retain(|profile| match entry {
        _ if profile.namespaces.is_everything() => true,
        Some(entry) => profile.namespaces.selects(|key| entry.value.0.get(key)),
        None => {
            unknown.push(Arc::clone(profile));
            false
        }
    });
    unknown
}
