//! What a type says of the configuration that it declares, and what follows from it.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Effective, Problem, Problems,
    decode::{decode, schema, without_nulls, without_type_meta},
    published,
    strict::form_of,
};

/// The configuration of a component.
///
/// The type has no fields for version and kind. For serde it is `rename_all = "camelCase"`, `deny_unknown_fields` and `default`,
/// and what may be left out without having the zero of its type is an `Option` that [`Configuration::complete`] sets.
pub trait Configuration: Serialize + DeserializeOwned + JsonSchema + Default {
    /// Group and version, such as `config.example.com/v1`.
    const API_VERSION: &'static str;
    /// The kind, such as `OperatorConfiguration`.
    const KIND: &'static str;
    /// Members by which items of lists are known, wherever they stand in the list: the first of these that an item has.
    const ITEM_KEYS: &'static [&'static str] = &["name"];

    /// Sets what is not set, as the component does before it runs.
    fn complete(&mut self) {}

    /// Checks of a complete configuration what its schema cannot say.
    fn check(&self, _: &mut Problems) {}
}

/// The configuration of a document, with all that is not set.
///
/// # Errors
///
/// What is wrong with the document: another version or kind, what the schema refuses, or else what [`Configuration::check`] finds.
pub fn read<T: Configuration>(document: &Value) -> Result<T, Vec<Problem>> {
    if let Some(problem) = another_kind::<T>(document) {
        return Err(vec![problem]);
    }
    checked(decode(&without_nulls(&without_type_meta(document)))?)
}

/// The configuration of a component that is given no document.
///
/// # Errors
///
/// What must be set.
pub fn without_document<T: Configuration>() -> Result<T, Vec<Problem>> {
    checked(T::default())
}

/// What is in force with a document, and where each value comes from.
///
/// # Errors
///
/// What is wrong with the document, as for [`read`].
pub fn effective<T: Configuration>(document: &Value) -> Result<Effective, Vec<Problem>> {
    let configuration: T = read(document)?;
    let complete = self::document(&configuration).map_err(|error| vec![Problem::of_document(error.to_string())])?;
    Ok(Effective::new(complete, document, T::ITEM_KEYS))
}

/// A configuration as the document that sets all of it.
///
/// # Errors
///
/// A value of the configuration has no form in JSON.
pub fn document<T: Configuration>(configuration: &T) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(configuration)?;
    if let Some(members) = document.as_object_mut() {
        let stated = [("apiVersion", T::API_VERSION), ("kind", T::KIND)];
        members.extend(stated.map(|(key, text)| (key.to_owned(), text.into())));
    }
    Ok(document)
}

/// The JSON Schema of a document, for editors, pipelines and reference pages.
///
/// # Errors
///
/// A default has no form in JSON.
pub fn published_schema<T: Configuration>() -> Result<Value, serde_json::Error> {
    let mut complete = T::default();
    complete.complete();
    let mut schema = published(schema::<T>(), &serde_json::to_value(complete)?, T::API_VERSION, T::KIND);
    let mut required = vec![json!("apiVersion"), json!("kind")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = required.into();
    Ok(schema)
}

fn checked<T: Configuration>(mut configuration: T) -> Result<T, Vec<Problem>> {
    configuration.complete();
    let mut problems = Problems::default();
    configuration.check(&mut problems);
    let problems = problems.into_vec();
    if problems.is_empty() { Ok(configuration) } else { Err(problems) }
}

/// What is wrong with a document of another version or kind than the type's.
fn another_kind<T: Configuration>(document: &Value) -> Option<Problem> {
    let (kind, version) = (T::KIND, T::API_VERSION);
    if document["kind"] == kind && document["apiVersion"] == version {
        return None;
    }
    let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    let wanted = format!("{article} {kind} of {version}");
    let text = |key: &str| document[key].as_str().filter(|text| !text.is_empty());
    let message = match (document, text("kind"), text("apiVersion")) {
        (Value::Null, ..) => format!("there is nothing in it; write {wanted}"),
        (Value::Object(_), Some(kind), Some(version)) => format!("must be {wanted}, not {kind} of {version}"),
        (Value::Object(_), None, None) => format!("must be {wanted}, but has neither kind nor apiVersion"),
        (Value::Object(_), None, _) => format!("must be {wanted}, but has no kind"),
        (Value::Object(_), ..) => format!("must be {wanted}, but has no apiVersion"),
        (other, ..) => format!("must be {wanted}, not {}", form_of(other)),
    };
    Some(Problem::of_document(message))
}

#[cfg(test)]
mod tests {
    use koord_resource::Duration;
    use serde::Deserialize;

    use super::*;
    use crate::{DurationText, Origin, Percent, path_text};

    /// The configuration of a cleaner.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    struct CleanerConfiguration {
        /// How long an object is kept. Default 1h.
        #[schemars(with = "Option<DurationText>")]
        keep: Option<Duration>,
        /// How much of the objects may be deleted at once.
        at_once: Percent,
        /// Namespaces that are left alone.
        except: Vec<String>,
    }

    impl Configuration for CleanerConfiguration {
        const API_VERSION: &'static str = "cleaner.example.com/v1";
        const KIND: &'static str = "CleanerConfiguration";

        fn complete(&mut self) {
            self.keep.get_or_insert(Duration::from_secs(3600));
        }

        fn check(&self, problems: &mut Problems) {
            for (index, name) in self.except.iter().enumerate().filter(|(_, name)| name.is_empty()) {
                problems.add(&["except", &index.to_string()], format!("{name:?} is no namespace"));
            }
        }
    }

    fn cleaner(mut members: Value) -> Value {
        let mut document = json!({"apiVersion": "cleaner.example.com/v1", "kind": "CleanerConfiguration"});
        document.as_object_mut().unwrap().append(members.as_object_mut().unwrap());
        document
    }

    fn problems(document: &Value) -> Vec<String> {
        let problems = read::<CleanerConfiguration>(document).unwrap_err();
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_set_is_completed_and_null_is_not_set() {
        let of = |members| read::<CleanerConfiguration>(&cleaner(members)).unwrap();
        let hour = Some(Duration::from_secs(3600));
        let complete = CleanerConfiguration { keep: hour, ..CleanerConfiguration::default() };
        assert_eq!(of(json!({})), complete);
        assert_eq!(of(json!({"keep": null, "except": null})), complete);
        assert_eq!(without_document::<CleanerConfiguration>(), Ok(complete));
        assert_eq!(of(json!({"keep": "90s"})).keep, Some(Duration::from_secs(90)));
    }

    #[test]
    fn a_document_of_another_kind_is_refused_before_its_fields() {
        let other = json!({"apiVersion": "v1", "kind": "Pod", "spec": {}});
        let wanted = "CleanerConfiguration of cleaner.example.com/v1";
        assert_eq!(problems(&other), [format!("must be a {wanted}, not Pod of v1")]);
        for (document, found) in [
            (json!({"kind": "CleanerConfiguration"}), "but has no apiVersion"),
            (json!({"apiVersion": "cleaner.example.com/v1", "kind": 5}), "but has no kind"),
            (json!({"atOnce": 5, "kind": ""}), "but has neither kind nor apiVersion"),
            (json!([{}]), "not a list"),
            (json!("kind"), "not a text"),
        ] {
            assert_eq!(problems(&document), [format!("must be a {wanted}, {found}")]);
        }
        assert_eq!(problems(&Value::Null), [format!("there is nothing in it; write a {wanted}")]);
        let older = json!({"apiVersion": "cleaner.example.com/v1alpha1", "kind": "CleanerConfiguration"});
        assert!(problems(&older)[0].ends_with("not CleanerConfiguration of cleaner.example.com/v1alpha1"));
    }

    #[test]
    fn what_the_schema_refuses_is_reported_before_what_it_cannot_say() {
        let document = cleaner(json!({"atOnce": 101, "keep": 5, "except": [""]}));
        assert_eq!(problems(&document), ["atOnce: must be 100 or less", "keep: must be a text, not a whole number"]);
        assert_eq!(problems(&cleaner(json!({"except": ["a", ""]}))), ["except[1]: \"\" is no namespace"]);
    }

    #[test]
    fn each_value_in_force_has_its_origin() {
        let document = cleaner(json!({"atOnce": 10}));
        let effective = effective::<CleanerConfiguration>(&document).unwrap();
        let complete = cleaner(json!({"atOnce": 10, "keep": "1h0m0s", "except": []}));
        assert_eq!(effective.value, complete);
        let set = effective.leaves.iter().filter(|(_, origin)| *origin != Origin::Default);
        assert_eq!(set.map(|(path, _)| path_text(path)).collect::<Vec<_>>(), ["apiVersion", "atOnce", "kind"]);
        // What is in force is right, and stays what it is.
        assert_eq!(self::effective::<CleanerConfiguration>(&complete).unwrap().value, complete);
    }

    #[test]
    fn the_published_schema_has_version_kind_and_the_defaults_that_are_in_force() {
        let schema = published_schema::<CleanerConfiguration>().unwrap();
        assert_eq!(schema["title"], "CleanerConfiguration");
        assert_eq!(schema["required"], json!(["apiVersion", "kind"]));
        assert_eq!(schema["additionalProperties"], false);
        let properties = &schema["properties"];
        assert_eq!(properties["apiVersion"], json!({"const": "cleaner.example.com/v1"}));
        assert_eq!(properties["kind"], json!({"const": "CleanerConfiguration"}));
        assert_eq!(properties["keep"]["default"], "1h0m0s");
        assert_eq!(properties["atOnce"]["maximum"], 100);
        assert_eq!(properties["except"].get("default"), None);
    }
}
