//! Fields that stood in another object in older versions, as the schemas of these versions have them.

use koord_schema::Schema as Node;

use super::{object, property};

/// Puts a field of the struct where it stood: into `parent`, a field of the struct that is made where it is absent.
pub fn moved(object: &mut Node, newest: &str, [parent, name]: [&str; 2], required: bool, mut schema: Node) {
    schema.newest_name = Some(format!("{IN_PARENT}{newest}"));
    put(object, Some(parent), name, required, schema);
}

/// Puts the field `member` of the struct's field `field` where it stood: into the struct itself, or into `parent`.
///
/// `of` is the schema of `field`, which older versions need not have.
pub fn moved_member(object: &mut Node, [field, member]: [&str; 2], of: &Node, (parent, name): (Option<&str>, &str)) {
    let Some((found, schema)) = by_newest_name(of, member) else {
        let message =
            format!("`moved` names the field `{member}` of `{field}`, which has none that is called so in JSON");
        object.not_structural = Some(message);
        return;
    };
    let (mut schema, required) = (schema.clone(), of.required.contains(found));
    let here = by_newest_name(object, field).map(|(name, _)| name.clone());
    if let Some(holder) = here.and_then(|name| object.properties.get_mut(&name)) {
        holder.properties.shift_remove(found);
        holder.required.retain(|name| name != found);
    }
    let above = if parent.is_some() { IN_PARENT } else { "" };
    schema.newest_name = Some(format!("{above}{field}.{member}"));
    put(object, parent, name, required, schema);
}

/// Begins the newest name of a field that stands in an object beside the place that the name is meant from.
const IN_PARENT: &str = "../";

fn put(node: &mut Node, parent: Option<&str>, name: &str, required: bool, schema: Node) {
    let Some(parent) = parent else {
        property(node, name, required, schema);
        return;
    };
    let here = by_newest_name(node, parent).map_or_else(|| parent.to_owned(), |(name, _)| name.clone());
    let holder = node.properties.entry(here).or_insert_with(|| object(""));
    property(holder, name, required, schema);
}

/// The property that the newest version calls `newest`, with its name in the version of the node.
pub(crate) fn by_newest_name<'n>(node: &'n Node, newest: &str) -> Option<(&'n String, &'n Node)> {
    node.properties.iter().find(|(name, property)| property.newest_name.as_ref().unwrap_or(name) == newest)
}

/// What a path of the newest version begins with, where that was moved: the path in the version of the node, the node at
/// its end, and the rest of the newest path.
pub(crate) fn at_moved<'n, 'p>(node: &'n Node, path: &'p str) -> Option<(String, &'n Node, &'p str)> {
    let rest = |property: &Node, prefix: &str| {
        let newest = property.newest_name.as_deref()?.strip_prefix(prefix)?;
        let moved = !prefix.is_empty() || newest.contains('.');
        let rest = path.strip_prefix(newest).filter(|_| moved)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    for (name, property) in &node.properties {
        if let Some(rest) = rest(property, "") {
            return Some((name.clone(), property, rest));
        }
        for (below, inner) in &property.properties {
            if let Some(rest) = rest(inner, IN_PARENT) {
                return Some((format!("{name}.{below}"), inner, rest));
            }
        }
    }
    None
}
