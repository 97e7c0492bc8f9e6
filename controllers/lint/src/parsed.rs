//! Files as documents with objects, and the lines at which things stand.

use koord_program::files::{File, names_next_page};
use koord_resource::yaml::place::{self, Step, line_of};
use serde_json::Value;

/// A document with the objects in it.
pub struct Parsed<'t> {
    pub(crate) file: &'t str,
    /// The line of the file, from 0, at which the document starts.
    pub(crate) start: usize,
    pub(crate) text: &'t str,
    pub objects: Result<Vec<Value>, String>,
    /// It stands after another document in a file with the configuration of a component, which reads files of one document.
    pub(crate) is_surplus: bool,
    /// It is one page of a list, as the API server answers a request with a limit.
    pub(crate) is_page: bool,
}

impl Parsed<'_> {
    /// The line of the file, from 1, at which a field stands.
    pub fn line_of(&self, path: &[Step]) -> usize {
        self.start + line_of(&place::lines(self.text), path) + 1
    }
}

/// The documents of a file.
pub fn parse(file: &File) -> Vec<Parsed<'_>> {
    let parse = |(start, text)| {
        let read = koord_resource::yaml::parse(text);
        let is_page = read.as_ref().is_ok_and(|document| document["items"].is_array() && names_next_page(document));
        let objects = match read {
            Ok(Value::Null) => Ok(Vec::new()),
            Ok(mut value) if value["kind"] == "List" => {
                Ok(value["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
            }
            Ok(value) if !file.is_named && value["apiVersion"].is_null() && value["kind"].is_null() => Ok(Vec::new()),
            Ok(value) => Ok(vec![value]),
            Err(error) => Err(error.to_string()),
        };
        Parsed { file: &file.name, start, text, objects, is_surplus: false, is_page }
    };
    let mut parsed: Vec<Parsed<'_>> = documents(&file.text).into_iter().map(parse).collect();
    let mut objects = parsed.iter().filter_map(|document| document.objects.as_ref().ok()).flatten();
    if objects.any(|object| koord_config::Kind::of(object).is_some()) {
        let with_content = parsed.iter_mut().filter(|document| !document.objects.as_ref().is_ok_and(Vec::is_empty));
        with_content.skip(1).for_each(|document| document.is_surplus = true);
    }
    parsed
}

/// The documents of a file with the line at which each starts.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push((start_line, &text[start..offset]));
            (start, start_line) = (offset + line.len(), number + 1);
        }
        offset += line.len();
    }
    documents.push((start_line, &text[start..]));
    documents
}
