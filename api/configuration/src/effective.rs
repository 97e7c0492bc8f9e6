//! What is in force, and where each value comes from.

use serde_json::Value;

use crate::{Step, decode::remove_nulls};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the document, at this path.
    Document(Vec<Step>),
    /// From the component's defaults.
    Default,
}

/// A complete configuration, value by value.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The configuration.
    pub value: Value,
    /// Every value that is no object and no list with items, in their order: where it stands, and where it comes from.
    pub leaves: Vec<(Vec<Step>, Origin)>,
}

impl Effective {
    /// Finds for every value of a complete configuration whether the document sets it.
    ///
    /// Items of lists are found again by the first of `item_keys` that they have, else by their position.
    pub fn new(mut value: Value, document: &Value, item_keys: &[&str]) -> Self {
        remove_nulls(&mut value);
        let mut trace = Trace { item_keys, at: Vec::new(), leaves: Vec::new() };
        trace.follow(&value, Some((document, Vec::new())));
        Self { leaves: trace.leaves, value }
    }
}

type Place<'d> = (&'d Value, Vec<Step>);

/// What has been found of the values so far.
struct Trace<'k> {
    item_keys: &'k [&'k str],
    at: Vec<Step>,
    leaves: Vec<(Vec<Step>, Origin)>,
}

impl Trace<'_> {
    /// `document`: the same place there, where there is one. Configurations are as deep as their types.
    fn follow(&mut self, value: &Value, document: Option<Place<'_>>) {
        let within = |key: &str| {
            let (document, path) = document.as_ref()?;
            let found = document.get(key).filter(|found| !found.is_null())?;
            Some((found, path.iter().cloned().chain([Step::Key(key.to_owned())]).collect()))
        };
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, member) in members {
                    self.at.push(Step::Key(key.clone()));
                    self.follow(member, within(key));
                    self.at.pop();
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.at.push(Step::Index(index));
                    let same = document.as_ref().and_then(|place| self.same_item(item, index, place));
                    self.follow(item, same);
                    self.at.pop();
                }
            }
            leaf => {
                let set = document.filter(|(found, _)| *found == leaf || !found.is_object());
                let origin = set.map_or(Origin::Default, |(_, path)| Origin::Document(path));
                self.leaves.push((self.at.clone(), origin));
            }
        }
    }

    /// The item of the document's list that became this one.
    fn same_item<'d>(&self, item: &Value, index: usize, (list, path): &Place<'d>) -> Option<Place<'d>> {
        let items = list.as_array()?;
        let named = self.item_keys.iter().find_map(|key| Some((key, item.get(key)?)));
        let found = match named {
            Some((key, name)) => items.iter().position(|one| one.get(key) == Some(name)),
            None => items.get(index).filter(|found| *found == item || found.is_object()).map(|_| index),
        };
        let found = found?;
        Some((&items[found], path.iter().cloned().chain([Step::Index(found)]).collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::path_text;

    #[test]
    fn values_come_from_the_document_by_name_or_from_the_defaults() {
        let document = json!({"a": 1, "list": [{"name": "y", "v": 3}, {"name": "x"}], "texts": ["p"]});
        let complete = json!({"a": 1, "b": 2, "none": null, "list": [{"name": "x", "v": 0}, {"name": "y", "v": 3}], "texts": ["p"]});
        let effective = Effective::new(complete, &document, &["name"]);
        let shown: Vec<String> = effective
            .leaves
            .iter()
            .map(|(path, origin)| match origin {
                Origin::Default => format!("{} default", path_text(path)),
                Origin::Document(from) => format!("{} {}", path_text(path), path_text(from)),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a a",
                "b default",
                "list[0].name list[1].name",
                "list[0].v default",
                "list[1].name list[0].name",
                "list[1].v list[0].v",
                "texts[0] texts[0]",
            ]
        );
    }
}
