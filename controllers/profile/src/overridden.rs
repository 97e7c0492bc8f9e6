//! What somebody wrote and a profile overwrites: it has no effect, and whoever wrote it may wonder.

use std::{collections::BTreeMap, fmt};

use koord_types::{priority::SUB_PRIORITY_LABEL, qos::QOS_LABEL};
use serde_json::Value;

use crate::Profile;

/// A value of a pod that profiles write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A label, by its key.
    Label(String),
    /// An annotation, by its key.
    Annotation(String),
    /// A field of the spec, by its name.
    Spec(&'static str),
}

/// `metadata.labels[KEY]`, `metadata.annotations[KEY]`, `spec.NAME`.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "metadata.labels[{key}]"),
            Self::Annotation(key) => write!(f, "metadata.annotations[{key}]"),
            Self::Spec(name) => write!(f, "spec.{name}"),
        }
    }
}

/// Who wrote a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author<'a> {
    /// Whoever made the object.
    Object,
    /// The profile of this name.
    Profile(&'a str),
}

impl fmt::Display for Author<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => f.write_str("the object"),
            Self::Profile(name) => write!(f, "ClusterColocationProfile {name:?}"),
        }
    }
}

/// A value without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overridden<'a> {
    pub field: Field,
    pub value: String,
    /// Who wrote it.
    pub author: Author<'a>,
    /// The value that counts.
    pub by_value: String,
    /// The profile that wrote that.
    pub by: &'a str,
}

impl fmt::Display for Overridden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, author, by_value, by } = self;
        write!(f, "{field}: {value:?} of {author} has no effect, ClusterColocationProfile {by:?} sets {by_value:?}")
    }
}

/// What profiles, applied in this order to an object with these values, overwrite. A value that several overwrite is
/// reported once for each of them.
pub fn overridden<'a>(
    object: impl IntoIterator<Item = (Field, String)>,
    profiles: impl IntoIterator<Item = &'a Profile>,
) -> Vec<Overridden<'a>> {
    let written = object.into_iter().map(|(field, value)| (field, (value, Author::Object)));
    let mut ledger = Ledger { written: written.collect(), overridden: Vec::new() };
    for profile in profiles {
        ledger.apply(profile);
    }
    ledger.overridden
}

struct Ledger<'a> {
    written: BTreeMap<Field, (String, Author<'a>)>,
    overridden: Vec<Overridden<'a>>,
}

impl<'a> Ledger<'a> {
    /// In the order of [`crate::apply`].
    fn apply(&mut self, profile: &'a Profile) {
        let (spec, by) = (&profile.spec, profile.name.as_str());
        for (key, value) in &spec.labels {
            self.set(Field::Label(key.clone()), value, by);
        }
        for (key, value) in &spec.annotations {
            self.set(Field::Annotation(key.clone()), value, by);
        }
        for (old, new) in &spec.label_keys_mapping {
            self.copy(&Field::Label(old.clone()), Field::Label(new.clone()), by);
        }
        for (old, new) in &spec.annotation_keys_mapping {
            self.copy(&Field::Annotation(old.clone()), Field::Annotation(new.clone()), by);
        }
        for (key, suffix) in &spec.label_suffixes {
            if let Some((value, _)) = self.written.get_mut(&Field::Label(key.clone())) {
                value.push_str(suffix);
            }
        }
        if let Some(qos) = spec.qos_class.as_ref().filter(|qos| !qos.as_str().is_empty()) {
            self.set(Field::Label(QOS_LABEL.to_owned()), qos.as_str(), by);
        }
        if let Some(priority) = spec.koordinator_priority {
            self.set(Field::Label(SUB_PRIORITY_LABEL.to_owned()), &priority.to_string(), by);
        }
        for (field, value) in
            [("schedulerName", &spec.scheduler_name), ("priorityClassName", &spec.priority_class_name)]
        {
            if !value.is_empty() {
                self.set(Field::Spec(field), value, by);
            }
        }
        let metadata = spec.patch.as_ref().map(|patch| &patch["metadata"]);
        let texts = |part: &str| metadata.and_then(|metadata| metadata[part].as_object()).into_iter().flatten();
        for (key, value) in texts("labels").filter_map(text) {
            self.set(Field::Label(key), &value, by);
        }
        for (key, value) in texts("annotations").filter_map(text) {
            self.set(Field::Annotation(key), &value, by);
        }
    }

    fn copy(&mut self, from: &Field, to: Field, by: &'a str) {
        let value = self.written.get(from).map(|(value, _)| value.clone());
        self.set(to, &value.unwrap_or_default(), by);
    }

    fn set(&mut self, field: Field, value: &str, by: &'a str) {
        let before = self.written.insert(field.clone(), (value.to_owned(), Author::Profile(by)));
        if let Some((before, author)) = before
            && before != value
        {
            self.overridden.push(Overridden { field, value: before, author, by_value: value.to_owned(), by });
        }
    }
}

fn text((key, value): (&String, &Value)) -> Option<(String, String)> {
    value.as_str().map(|value| (key.clone(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use koord_core::cache::Cache;
    use serde_json::json;

    use super::*;

    fn warnings(object: &[(&str, &str)], profiles: &[(&str, Value)]) -> Vec<String> {
        let mut cache = Cache::<Profile>::default();
        for (name, spec) in profiles {
            let object = json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "spec": spec});
            cache.upsert(&object.to_string()).unwrap();
        }
        let object = object.iter().map(|(key, value)| (Field::Label((*key).to_owned()), (*value).to_owned()));
        overridden(object, cache.iter().map(|(_, entry)| &*entry.value)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_value_that_a_later_profile_replaces_is_told_with_both_names() {
        let profiles = [
            ("p", json!({"qosClass": "LS", "labels": {"a": "1", "b": "1"}})),
            ("q", json!({"qosClass": "BE", "labels": {"a": "1"}})),
        ];
        assert_eq!(
            warnings(&[], &profiles),
            [
                r#"metadata.labels[koordinator.sh/qosClass]: "LS" of ClusterColocationProfile "p" has no effect, ClusterColocationProfile "q" sets "BE""#
            ]
        );
    }

    #[test]
    fn a_value_of_the_pod_that_a_profile_replaces_is_told() {
        let patch = json!({"patch": {"metadata": {"labels": {"a": "2", "gone": null}, "annotations": {"c": "3"}}}});
        assert_eq!(
            warnings(&[("a", "1"), ("gone", "x")], &[("p", patch)]),
            [r#"metadata.labels[a]: "1" of the object has no effect, ClusterColocationProfile "p" sets "2""#]
        );
        let mapping = json!({"labelKeysMapping": {"missing": "a"}, "labelSuffixes": {"b": "-s"}});
        assert_eq!(
            warnings(&[("a", "1"), ("b", "v")], &[("p", mapping)]),
            [r#"metadata.labels[a]: "1" of the object has no effect, ClusterColocationProfile "p" sets """#]
        );
    }

    #[test]
    fn what_nobody_contradicts_is_not_told() {
        let spec =
            json!({"labels": {"a": "1"}, "schedulerName": "s", "labelSuffixes": {"a": "-x"}, "koordinatorPriority": 7});
        assert_eq!(warnings(&[("a", "1"), ("koordinator.sh/priority", "7")], &[("p", spec)]), [""; 0]);
    }
}
