//! Arguments of plugins: typed, checked, completed.

use std::fmt;

use koord_configuration::{Problem, Problems, Setting, Step, check_schema, published, schema, typed, unknown_fields};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// The arguments of a plugin: a type with `derive(Configuration)`.
pub trait Args: Setting + Serialize + DeserializeOwned + JsonSchema + Default {
    /// The plugin's name; the kind is this with `Args`.
    const PLUGIN: &'static str;
    /// Whether unknown fields are ignored, with a warning, and `null` empties a field: so are the arguments of plugins decoded that come from
    /// kubernetes-sigs/descheduler.
    const IS_LENIENT: bool = false;
}

/// Complete arguments, and what is wrong with them.
type Completed = Result<(Value, Vec<Problem>), serde_json::Error>;

/// A type of arguments, for tables.
#[derive(Clone, Copy)]
pub struct PluginArgs {
    /// The plugin's name.
    pub plugin: &'static str,
    is_lenient: bool,
    schema: fn() -> Value,
    complete: fn(&Value) -> Completed,
    warn: fn(&Value, &mut Problems),
}

impl fmt::Debug for PluginArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginArgs").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

impl PluginArgs {
    /// The row of a type.
    pub const fn of<T: Args>() -> Self {
        Self {
            plugin: T::PLUGIN,
            is_lenient: T::IS_LENIENT,
            schema: schema::<T>,
            complete: |value| {
                let args: T = decoded(value)?;
                let mut problems = Problems::default();
                args.validate(&mut problems);
                Ok((serde_json::to_value(args)?, problems.into_vec()))
            },
            warn: |value, problems| {
                if let (Ok(args), Ok(unset)) = (decoded::<T>(value), decoded(&unset())) {
                    args.warn(&unset, problems);
                }
            },
        }
    }

    /// The JSON Schema.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// What is wrong with the arguments of a document at this path. `api_version` is the one that they may state.
    pub fn problems(&self, args: &Value, api_version: &str, at: &[Step]) -> Vec<Problem> {
        self.checked((args, api_version), at, true)
    }

    /// What of the arguments at this path cannot be decoded, whatever the rules are.
    pub(crate) fn mistakes_of_form(&self, args: &Value, api_version: &str, at: &[Step]) -> Vec<Problem> {
        self.checked((args, api_version), at, false)
    }

    /// What is wrong with their form, and with their values where rules hold for them.
    fn checked(&self, (args, api_version): (&Value, &str), at: &[Step], rules_hold: bool) -> Vec<Problem> {
        let (args, mut problems) = self.untyped(args, api_version, at);
        let (root, check) = (self.schema(), if rules_hold { check_schema } else { unknown_fields });
        problems.extend(check(&root, &root, &args, at));
        if problems.is_empty() {
            match (self.complete)(&args) {
                Ok((_, found)) if rules_hold => problems.extend(found.into_iter().map(|found| below(at, found))),
                Ok(_) => {}
                Err(error) => {
                    problems.push(Problem { path: at.to_vec(), message: error.to_string(), suggestion: None });
                }
            }
        }
        problems
    }

    /// The arguments with all that is not set.
    pub fn complete(&self, args: &Value, api_version: &str) -> Result<Value, serde_json::Error> {
        let (args, _) = self.untyped(args, api_version, &[]);
        (self.complete)(&args).map(|(complete, _)| complete)
    }

    /// The fields of arguments at this path that have no effect, and ask for something else than by default, and those that are ignored.
    pub(crate) fn warnings(&self, written: &Value, api_version: &str, at: &[Step]) -> Vec<Problem> {
        let (args, _) = self.untyped(written, api_version, at);
        let mut found = Problems::default();
        (self.warn)(&args, &mut found);
        let mut warnings: Vec<Problem> = found.into_vec().into_iter().map(|found| below(at, found)).collect();
        if self.is_lenient {
            let root = self.schema();
            warnings.extend(unknown_fields(&root, &root, written, at));
        }
        warnings
    }

    /// What a complete document shows of arguments. Lenient ones stay as they are written, but for `null`, which has a value.
    pub(crate) fn shown(&self, args: &Value, api_version: &str) -> Result<Value, serde_json::Error> {
        if !self.is_lenient {
            return self.complete(args, api_version);
        }
        Ok(emptied(&self.schema(), args.clone()))
    }

    /// Whether a complete document shows the arguments of a plugin that is enabled without any.
    pub(crate) fn are_shown_unset(&self) -> bool {
        !self.is_lenient
    }

    /// The JSON Schema of arguments that stand alone. `api_version` is the one that they may state.
    pub fn published_schema(&self, api_version: &str) -> Result<Value, serde_json::Error> {
        let complete = self.complete(&Value::Null, api_version)?;
        Ok(published(self.schema(), &complete, api_version, &format!("{}Args", self.plugin)))
    }

    /// The arguments as they are decoded: without their version and kind, which must be right where they are stated, and lenient ones without
    /// what is ignored.
    fn untyped(&self, args: &Value, api_version: &str, at: &[Step]) -> (Value, Vec<Problem>) {
        let mut problems = Problems::below(at);
        let mut args = if args.is_null() { unset() } else { args.clone() };
        if self.is_lenient {
            return (tolerated(&self.schema(), args), Vec::new());
        }
        for (key, wanted) in [("apiVersion", api_version.to_owned()), ("kind", format!("{}Args", self.plugin))] {
            let stated = args.as_object_mut().and_then(|args| args.remove(key));
            if stated.is_some_and(|stated| stated != wanted.as_str()) {
                problems.add(&[key], format!("must be {wanted:?}"));
            }
        }
        (args, problems.into_vec())
    }
}

/// Arguments with all that is not set.
///
/// # Errors
///
/// They have another form than the type.
pub fn arguments<T: Args>(args: &Value) -> Result<T, serde_json::Error> {
    if T::IS_LENIENT { decoded(&tolerated(&schema::<T>(), args.clone())) } else { decoded(args) }
}

/// The same of arguments of which nothing is to be ignored any more.
fn decoded<T: Args>(args: &Value) -> Result<T, serde_json::Error> {
    let mut args: T = typed(args)?;
    args.set_defaults();
    Ok(args)
}

/// Lenient arguments without unknown fields, and without `null`.
fn tolerated(schema: &Value, mut args: Value) -> Value {
    let unknown = unknown_fields(schema, schema, &args, &[]);
    for Problem { path, .. } in unknown {
        remove(&mut args, &path);
    }
    emptied(schema, args)
}

/// Arguments in which a field that is `null` has the value of an empty one.
fn emptied(schema: &Value, mut args: Value) -> Value {
    for (name, value) in args.as_object_mut().into_iter().flatten().filter(|(_, value)| value.is_null()) {
        let of_field = &schema["properties"][name];
        *value = match of_field["type"].as_str() {
            Some("integer" | "number") => json!(0),
            Some("boolean") => json!(false),
            _ => Value::Null,
        };
    }
    args
}

/// Takes a field out of a document.
fn remove(document: &mut Value, path: &[Step]) {
    let Some((Step::Key(last), parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(*index),
    });
    if let Some(members) = parent.and_then(Value::as_object_mut) {
        members.remove(last);
    }
}

/// Arguments of which nothing is set.
fn unset() -> Value {
    Value::Object(serde_json::Map::new())
}

fn below(at: &[Step], problem: Problem) -> Problem {
    Problem { path: at.iter().cloned().chain(problem.path).collect(), ..problem }
}
