//! Types that have a name of their own in Go: a decoder's messages name these.

use std::{collections::HashMap, sync::LazyLock};

/// Made by `tests/kube-assets/go-types`: `STRUCT.FIELD TYPE`.
const TABLE: &str = include_str!("../builtins/go_types.txt");

static TYPES: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let rows = TABLE.lines().filter_map(|line| line.split_once(' '));
    rows.filter_map(|(field, named)| Some((field.split_once('.')?, named))).collect()
});

/// What Go prints instead of `go` for a field of a struct, or for an item of that field when `go` is no list.
pub(super) fn named(owner: &str, field: &str, go: &str) -> Option<&'static str> {
    let named = *TYPES.get(&(owner, field))?;
    let is_whole = go.starts_with("[]") || go.starts_with("map[");
    let item = named.strip_prefix("[]").or_else(|| named.strip_prefix("map[string]"));
    Some(if is_whole { named } else { item.unwrap_or(named) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_a_list_and_its_items_have_their_own_names() {
        assert_eq!(named("ServiceSpec", "type", "string"), Some("v1.ServiceType"));
        assert_eq!(named("Capabilities", "add", "[]string"), Some("[]v1.Capability"));
        assert_eq!(named("Capabilities", "add", "string"), Some("v1.Capability"));
        assert_eq!(named("ResourceRequirements", "limits", "map[string]resource.Quantity"), Some("v1.ResourceList"));
        assert_eq!(named("Container", "name", "string"), None);
    }
}
