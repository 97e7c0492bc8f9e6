//! What a type says of the configuration that it declares, and what follows from it.

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Effective, Problem, Problems, Setting,
    decode::{decode, schema, without_nulls, without_type_meta},
    published,
    strict::form_of,
};

/// The configuration of a component: a document that `derive(Configuration)` implements it for, with `group` and `version`.
///
/// The type has no fields for version and kind. A field that is not set has its default; it is an `Option` only where its absence means
/// something.
pub trait Configuration: Setting + Serialize + DeserializeOwned + JsonSchema + Default {
    /// Group and version, such as `config.example.com/v1`.
    const API_VERSION: &'static str;
    /// The kind, such as `OperatorConfiguration`.
    const KIND: &'static str;
    /// Members by which items of lists are known, wherever they stand in the list: the first of these that an item has.
    const ITEM_KEYS: &'static [&'static str] = &["name"];
}

/// The configuration of a document, with all that is not set.
///
/// # Errors
///
/// What is wrong with the document: another version or kind, what the schema refuses, or else what [`Setting::validate`] finds.
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
    checked(decode(&json!({}))?)
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
    complete.set_defaults();
    let mut schema = published(schema::<T>(), &serde_json::to_value(complete)?, T::API_VERSION, T::KIND);
    let mut required = vec![json!("apiVersion"), json!("kind")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = required.into();
    Ok(schema)
}

fn checked<T: Configuration>(mut configuration: T) -> Result<T, Vec<Problem>> {
    configuration.set_defaults();
    let mut problems = Problems::default();
    configuration.validate(&mut problems);
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
    use crate::{Configuration, Origin, Percent, path_text};

    /// The configuration of a cleaner.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    #[koord(group = "cleaner.example.com", version = "v1", check = Self::check_pauses)]
    struct CleanerConfiguration {
        /// How long an object is kept.
        #[koord(default = "1h")]
        keep: Duration,
        /// How much of the objects may be deleted at once.
        at_once: Percent,
        /// How many objects are deleted side by side.
        #[koord(default = 4, minimum = 1, maximum = 20)]
        workers: u32,
        /// Namespaces that are left alone.
        #[koord(items(pattern = "^[a-z]*$"), check = check_names)]
        except: Vec<String>,
        /// How objects are deleted.
        mode: Mode,
        /// What is logged.
        #[koord(default = "info", zero_is_unset)]
        level: String,
        /// When nothing is deleted.
        pauses: Vec<Pause>,
        /// A name for messages, where there is one.
        label: Option<String>,
        /// How many log lines are kept.
        #[koord(default = 100, no_effect = "lines are written as they come")]
        lines: u32,
    }

    /// How objects are deleted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
    #[serde(rename_all = "kebab-case")]
    enum Mode {
        /// With what they own.
        #[default]
        WithOwned,
        Alone,
    }

    /// A time in which nothing is deleted.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    #[koord(complete = Self::name_it)]
    struct Pause {
        /// Its name.
        name: String,
        /// The hour at which it begins.
        #[koord(required, maximum = 23)]
        hour: u8,
        /// How long it is.
        #[koord(default = "8h")]
        length: Duration,
    }

    impl Pause {
        fn name_it(&mut self) {
            if self.name.is_empty() {
                self.name = format!("from {} o'clock", self.hour);
            }
        }
    }

    impl CleanerConfiguration {
        fn check_pauses(&self, problems: &mut Problems) {
            if self.pauses.iter().any(|pause| pause.length > self.keep) {
                problems.add(&["keep"], "must be longer than each of the pauses");
            }
        }
    }

    fn check_names(names: &[String], problems: &mut Problems) {
        for (index, name) in names.iter().enumerate().filter(|(_, name)| name.is_empty()) {
            problems.add(&[&index.to_string()], format!("{name:?} is no namespace"));
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

    fn of(members: Value) -> CleanerConfiguration {
        read(&cleaner(members)).unwrap()
    }

    #[test]
    fn what_is_not_set_has_its_default_and_null_is_not_set() {
        let complete = of(json!({}));
        assert_eq!((complete.keep, complete.workers, &*complete.level), (Duration::from_secs(3600), 4, "info"));
        assert_eq!((complete.mode, complete.label.clone()), (Mode::WithOwned, None));
        assert_eq!(complete, CleanerConfiguration::default());
        assert_eq!(of(json!({"keep": null, "except": null, "workers": null, "level": ""})), complete);
        assert_eq!(without_document::<CleanerConfiguration>(), Ok(complete));
        assert_eq!(of(json!({"keep": "90s", "mode": "alone"})).keep, Duration::from_secs(90));
    }

    #[test]
    fn parts_of_a_document_have_defaults_and_checks_of_their_own() {
        let pauses =
            of(json!({"keep": "9h", "pauses": [{"hour": 22}, {"hour": 3, "name": "night", "length": "1h"}]})).pauses;
        let shown = pauses.iter().map(|pause| format!("{} {}", pause.name, pause.length));
        assert_eq!(shown.collect::<Vec<_>>(), ["from 22 o'clock 8h0m0s", "night 1h0m0s"]);
        assert_eq!(
            problems(&cleaner(json!({"pauses": [{}, {"hour": 24}]}))),
            ["pauses[0].hour: must be set", "pauses[1].hour: must be 23 or less"]
        );
        assert_eq!(
            problems(&cleaner(json!({"pauses": [{"hour": 1}]}))),
            ["keep: must be longer than each of the pauses"]
        );
    }

    #[test]
    fn what_has_no_effect_is_warned_about_where_it_is_set_to_something_else() {
        let warnings = |members: Value| {
            let mut problems = Problems::default();
            of(members).warn(&CleanerConfiguration::default(), &mut problems);
            problems.into_vec().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(warnings(json!({"lines": 5})), ["lines: has no effect: lines are written as they come"]);
        assert_eq!(warnings(json!({"lines": 100, "workers": 5})), [""; 0]);
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
        assert_eq!(problems(&cleaner(json!({"except": ["A"]}))), ["except[0]: \"A\" does not match ^[a-z]*$"]);
        assert_eq!(
            problems(&cleaner(json!({"workers": 21, "mode": "with"}))),
            ["mode: \"with\" is none of with-owned, alone", "workers: must be 20 or less"]
        );
    }

    #[test]
    fn each_value_in_force_has_its_origin() {
        let document = cleaner(json!({"atOnce": 10}));
        let effective = effective::<CleanerConfiguration>(&document).unwrap();
        let complete = cleaner(json!({
            "atOnce": 10, "keep": "1h0m0s", "workers": 4, "except": [], "mode": "with-owned", "level": "info", "pauses": [],
            "lines": 100,
        }));
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
        assert_eq!(properties["workers"]["default"], 4);
        assert_eq!(
            properties["lines"]["description"],
            "How many log lines are kept. Accepted without an effect: lines are written as they come."
        );
        assert_eq!(schema["$defs"]["Pause"]["required"], json!(["hour"]));
        assert_eq!(schema["$defs"]["Pause"]["properties"]["length"]["default"], "8h0m0s");
        assert_eq!(schema["$defs"]["Mode"]["oneOf"][0]["description"], "With what they own.");
    }
}
