//! Paths into objects, and lists of what is wrong there, worded as the API server words it.

use std::fmt;

use serde_json::Value;

use crate::go_text;

/// The path of a field, built from the root outwards without copying.
///
/// ```
/// use koord_schema::field::Path;
/// let spec = Path::root("spec");
/// let owners = spec.child("owners");
/// assert_eq!(owners.index(0).child("object").to_string(), "spec.owners[0].object");
/// assert_eq!(Path::root("labels").key("a/b").to_string(), "labels[a/b]");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// A path of one field. An empty name stands for the object itself.
    pub fn root(name: &'a str) -> Self {
        Path { parent: None, step: Step::Field(name) }
    }

    /// A field of what this path names.
    pub fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// An item of the array that this path names.
    pub fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// An entry of the map that this path names.
    pub fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// Writes the path as a JSON pointer (RFC 6901).
    ///
    /// ```
    /// use koord_schema::field::Path;
    /// let (mut text, spec) = (String::new(), Path::root("spec"));
    /// spec.child("owners").index(0).key("a/b~c").write_pointer(&mut text)?;
    /// assert_eq!(text, "/spec/owners/0/a~1b~0c");
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    pub fn write_pointer(&self, out: &mut impl fmt::Write) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.write_pointer(out)?;
        }
        let text = match self.step {
            Step::Field("") if self.parent.is_none() => return Ok(()),
            Step::Index(index) => return write!(out, "/{index}"),
            Step::Field(text) | Step::Key(text) => text,
        };
        out.write_char('/')?;
        for part in text.split_inclusive(['~', '/']) {
            match part.strip_suffix(['~', '/']) {
                None => out.write_str(part)?,
                Some(plain) => {
                    out.write_str(plain)?;
                    out.write_str(if part.ends_with('~') { "~0" } else { "~1" })?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at_start = true;
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
            at_start = matches!(parent, Path { parent: None, step: Step::Field("") });
        }
        match self.step {
            Step::Field(name) if at_start => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// What kind of mistake a field error is; the names are those of a Status cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A required field is absent.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value occurs twice.
    Duplicate,
    /// The field may not be set here.
    Forbidden,
    /// More items than allowed.
    TooMany,
    /// Longer than allowed.
    TooLong,
    /// Refers to something that does not exist.
    NotFound,
    /// The JSON type is wrong.
    TypeInvalid,
    /// The check itself could not be made.
    Internal,
}

impl Mistake {
    /// The `reason` of a Status cause, such as `FieldValueRequired`.
    pub fn reason(self) -> &'static str {
        match self {
            Mistake::Required => "FieldValueRequired",
            Mistake::Invalid => "FieldValueInvalid",
            Mistake::NotSupported => "FieldValueNotSupported",
            Mistake::Duplicate => "FieldValueDuplicate",
            Mistake::Forbidden => "FieldValueForbidden",
            Mistake::TooMany => "FieldValueTooMany",
            Mistake::TooLong => "FieldValueTooLong",
            Mistake::NotFound => "FieldValueNotFound",
            Mistake::TypeInvalid => "FieldValueTypeInvalid",
            Mistake::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Mistake::Required => "Required value",
            Mistake::Invalid | Mistake::TypeInvalid => "Invalid value",
            Mistake::NotSupported => "Unsupported value",
            Mistake::Duplicate => "Duplicate value",
            Mistake::Forbidden => "Forbidden",
            Mistake::TooMany => "Too many",
            Mistake::TooLong => "Too long",
            Mistake::NotFound => "Not found",
            Mistake::Internal => "Internal error",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub mistake: Mistake,
    /// The field, such as `spec.owners[0].object`.
    pub field: String,
    /// The refused value as the user is shown it; empty when there is none to show.
    pub value: String,
    /// What would be right.
    pub detail: String,
}

impl FieldError {
    /// The text after the field path, which is also the `message` of a Status cause.
    pub fn body(&self) -> String {
        let words = self.mistake.words();
        match (self.value.is_empty(), self.detail.is_empty()) {
            (true, true) => words.to_owned(),
            (true, false) => format!("{words}: {}", self.detail),
            (false, true) => format!("{words}: {}", self.value),
            (false, false) => format!("{words}: {}: {}", self.value, self.detail),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// The mistakes found in one object, in the order of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// No mistakes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A required field is absent.
    pub fn required(&mut self, at: &Path<'_>, detail: impl Into<String>) {
        self.push(Mistake::Required, at, String::new(), detail.into());
    }

    /// The value breaks a rule.
    pub fn invalid(&mut self, at: &Path<'_>, value: impl serde::Serialize, detail: impl Into<String>) {
        self.push(Mistake::Invalid, at, shown(&value), detail.into());
    }

    /// The value is not one of `allowed`.
    pub fn not_supported(&mut self, at: &Path<'_>, value: impl serde::Serialize, allowed: &[&str]) {
        let quoted: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        self.push(Mistake::NotSupported, at, shown(&value), format!("supported values: {}", quoted.join(", ")));
    }

    /// The value occurs twice.
    pub fn duplicate(&mut self, at: &Path<'_>, value: impl serde::Serialize) {
        self.push(Mistake::Duplicate, at, shown(&value), String::new());
    }

    /// The JSON type of the value is not the declared one.
    pub fn type_invalid(&mut self, at: &Path<'_>, value: impl serde::Serialize, detail: impl Into<String>) {
        self.push(Mistake::TypeInvalid, at, shown(&value), detail.into());
    }

    /// `found` items, where at most `max` are allowed.
    pub fn too_many(&mut self, at: &Path<'_>, found: usize, max: usize) {
        let noun = if max == 1 { "item" } else { "items" };
        self.push(Mistake::TooMany, at, found.to_string(), format!("must have at most {max} {noun}"));
    }

    /// Longer than `max_bytes`.
    pub fn too_long(&mut self, at: &Path<'_>, max_bytes: usize) {
        let noun = if max_bytes == 1 { "byte" } else { "bytes" };
        self.push(Mistake::TooLong, at, String::new(), format!("may not be more than {max_bytes} {noun}"));
    }

    /// The field may not be set here.
    pub fn forbidden(&mut self, at: &Path<'_>, detail: impl Into<String>) {
        self.push(Mistake::Forbidden, at, String::new(), detail.into());
    }

    /// Adds a mistake made elsewhere.
    pub fn add(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Adds all mistakes of another list.
    pub fn extend(&mut self, other: Errors) {
        self.0.extend(other.0);
    }

    /// Adds all mistakes of another list this often, as checks that run more than once report them.
    pub fn extend_repeatedly(&mut self, other: &Errors, times: usize) {
        for _ in 0..times {
            self.0.extend_from_slice(&other.0);
        }
    }

    /// Takes away the mistakes for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&FieldError) -> bool) {
        self.0.retain(keep);
    }

    /// How many mistakes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.0.iter()
    }

    fn push(&mut self, mistake: Mistake, at: &Path<'_>, value: String, detail: String) {
        self.0.push(FieldError { mistake, field: at.to_string(), value, detail });
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One mistake stands alone; several are joined as `[a, b]`.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        f.write_str("[")?;
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            error.fmt(f)?;
        }
        f.write_str("]")
    }
}

fn shown(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .map_or_else(|_| "(not representable as JSON)".to_owned(), |value: Value| go_text::shown(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_the_api_server_words_them() {
        let mut errors = Errors::new();
        let spec = Path::root("spec");
        errors.required(&spec.child("owners").index(0), "");
        assert_eq!(errors.to_string(), "spec.owners[0]: Required value");
        errors.invalid(&spec.child("ttl"), "1x", "must be a duration such as 24h");
        assert_eq!(
            errors.to_string(),
            r#"[spec.owners[0]: Required value, spec.ttl: Invalid value: "1x": must be a duration such as 24h]"#
        );
    }

    #[test]
    fn values_are_shown_as_go_prints_them() {
        let mut errors = Errors::new();
        errors.invalid(&Path::root("a"), "x<\u{1}", "");
        errors.invalid(&Path::root("b"), serde_json::json!({"k": "x<"}), "");
        errors.invalid(&Path::root("c"), 1.0, "");
        assert_eq!(
            errors.to_string(),
            r#"[a: Invalid value: "x<\x01", b: Invalid value: {"k":"x\u003c"}, c: Invalid value: 1]"#
        );
    }

    #[test]
    fn unsupported_values_list_what_is_allowed() {
        let mut errors = Errors::new();
        errors.not_supported(&Path::root("spec").child("mode"), "Later", &["Now", "Never"]);
        assert_eq!(errors.to_string(), r#"spec.mode: Unsupported value: "Later": supported values: "Now", "Never""#);
    }
}
