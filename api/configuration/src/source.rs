//! The text of a configuration, and the lines in which its mistakes stand.

use std::{error::Error, fmt};

use koord_resource::yaml::{parse, place};
use serde_json::Value;

use crate::{Configuration, Problem, read};

/// A text in YAML or JSON, and the name by which messages refer to it, such as that of its file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    name: &'t str,
    text: &'t str,
}

/// What is wrong with a text. Its message has a line for each problem: name and line of the text, the field, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationError {
    /// The name of the text.
    pub name: String,
    /// The problems, each with its line of the text, from 1; 0 for one that has no place.
    pub problems: Vec<(usize, Problem)>,
}

impl<'t> Source<'t> {
    /// The text of this name.
    pub const fn new(name: &'t str, text: &'t str) -> Self {
        Self { name, text }
    }

    /// The document of the text.
    ///
    /// # Errors
    ///
    /// The text is neither YAML nor JSON, or has several documents.
    pub fn parse(&self) -> Result<Value, ConfigurationError> {
        parse(self.text).map_err(|error| {
            let line = usize::try_from(error.line).unwrap_or_default();
            ConfigurationError {
                name: self.name.to_owned(),
                problems: vec![(line, Problem::of_document(error.to_string()))],
            }
        })
    }

    /// The configuration of the text, with all that is not set.
    ///
    /// # Errors
    ///
    /// The text is neither YAML nor JSON, or [`read`] refuses its document.
    pub fn read<T: Configuration>(&self) -> Result<T, ConfigurationError> {
        read(&self.parse()?).map_err(|problems| self.error(problems))
    }

    /// The error that reports these problems of the document.
    pub fn error(&self, problems: Vec<Problem>) -> ConfigurationError {
        let lines = place::lines(self.text);
        let placed = |problem: Problem| (place::line_of(&lines, &problem.path) + 1, problem);
        ConfigurationError { name: self.name.to_owned(), problems: problems.into_iter().map(placed).collect() }
    }
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (line, problem)) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", self.name)?;
            if *line > 0 {
                write!(f, ":{line}")?;
            }
            write!(f, ": {problem}")?;
            if let Some(suggestion) = &problem.suggestion {
                write!(f, "; {suggestion}")?;
            }
        }
        Ok(())
    }
}

impl Error for ConfigurationError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problems;

    fn error(text: &str, fields: &[(&[&str], Option<&str>)]) -> String {
        let mut problems = Problems::default();
        for (keys, suggestion) in fields {
            problems.suggest(keys, "is wrong", suggestion.map(str::to_owned));
        }
        Source::new("f.yaml", text).error(problems.into_vec()).to_string()
    }

    #[test]
    fn every_problem_has_its_line() {
        let text = "# a comment\na: 1\nb:\n- c: 1\n- d: 2\n";
        assert_eq!(error(text, &[(&["a"], None)]), "f.yaml:2: a: is wrong");
        assert_eq!(
            error(text, &[(&["b", "1", "d"], Some("write 3")), (&[], None)]),
            "f.yaml:5: b[1].d: is wrong; write 3\nf.yaml:2: is wrong"
        );
        assert_eq!(error("", &[(&["a"], None)]), "f.yaml:1: a: is wrong");
    }

    #[test]
    fn a_text_that_is_no_yaml_is_refused_with_its_line() {
        let error = Source::new("f.yaml", "a: 1\na: 2\n").parse().unwrap_err();
        assert!(error.to_string().starts_with("f.yaml:2: "), "{error}");
        assert_eq!(Source::new("f.json", r#"{"a": 1}"#).parse().unwrap(), serde_json::json!({"a": 1}));
    }
}
