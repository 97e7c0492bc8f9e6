//! What is wrong with a document, and where.

use std::fmt;

pub use koord_resource::yaml::place::Step;

/// A mistake in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field.
    pub path: Vec<Step>,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub suggestion: Option<String>,
}

impl Problem {
    /// A problem of the document as a whole.
    pub(crate) fn of_document(message: String) -> Self {
        Self { path: Vec::new(), message, suggestion: None }
    }
}

/// A path as it is written in messages, such as `profiles[0].schedulerName`.
pub fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            Step::Key(key) if key.contains(['.', '/']) => text.extend(["[", key, "]"]),
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(key);
            }
        }
    }
    text
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", path_text(&self.path), self.message)
    }
}

/// Collects the problems below one field.
#[derive(Debug, Default)]
pub struct Problems {
    at: Vec<Step>,
    found: Vec<Problem>,
}

impl Problems {
    /// Below a field of a document.
    pub fn below(at: &[Step]) -> Self {
        Self { at: at.to_vec(), found: Vec::new() }
    }

    /// A problem of a member, given by its key and those within it. A key that is a number stands for an item of a list.
    pub fn add(&mut self, keys: &[&str], message: impl Into<String>) {
        self.suggest(keys, message, None);
    }

    /// The same with what would be right.
    pub fn suggest(&mut self, keys: &[&str], message: impl Into<String>, suggestion: Option<String>) {
        let keys = keys.iter().map(|key| key.parse().map_or_else(|_| Step::Key((*key).to_owned()), Step::Index));
        let path = self.at.iter().cloned().chain(keys).collect();
        self.found.push(Problem { path, message: message.into(), suggestion });
    }

    /// Adds problems of a member: what is added meanwhile begins there.
    pub fn within(&mut self, key: &str, add: impl FnOnce(&mut Self)) {
        self.below_step(Step::Key(key.to_owned()), add);
    }

    /// Adds problems of an item of a list.
    pub fn within_item(&mut self, index: usize, add: impl FnOnce(&mut Self)) {
        self.below_step(Step::Index(index), add);
    }

    fn below_step(&mut self, step: Step, add: impl FnOnce(&mut Self)) {
        self.at.push(step);
        add(self);
        self.at.pop();
    }

    /// What was found.
    pub fn into_vec(self) -> Vec<Problem> {
        self.found
    }
}

impl Extend<Problem> for Problems {
    /// Adds problems whose paths begin at the document.
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        self.found.extend(problems);
    }
}
