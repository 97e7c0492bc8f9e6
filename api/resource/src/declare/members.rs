//! The members of an object as far as they are known while compiling, and the checks of list map keys and of the paths
//! of a root: derived code calls them in constants, so that a failed assertion is a compiler error there.
#![expect(clippy::missing_panics_doc, reason = "evaluated while compiling, never at run time")]

use super::{Schema, Shape};

/// The members of an object, as far as they are known while compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Members may have any name, or their names are known only when the schema is built.
    Unknown,
    /// These and no others.
    Known(&'static [Member]),
}

/// One member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name in JSON, in the newest version that has the member.
    pub name: &'static str,
    /// What kind of JSON it is.
    pub shape: Shape,
    /// Whether objects have it once defaults are filled in: it is required or has a default, or its type may have one.
    pub is_certain: bool,
    /// Whether only versions before the newest have it.
    pub is_removed: bool,
}

/// Fails to compile where the members of the type and theirs are known and the newest version has none at this path, or, where a field selector
/// shall name it, one that it may not name. The messages say, in order, that there is no such member, and that it is no text, boolean or integer.
///
/// ```
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # use koord_resource::{Resource, Schema};
/// #[derive(Clone, serde::Deserialize, Resource, Schema)]
/// #[koord(group = "example.com", version = "v1", scope = "Namespaced", selectable(".spec.pool.size"))]
/// struct Shop {
///     metadata: ObjectMeta,
///     spec: ShopSpec,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct ShopSpec {
///     #[serde(skip_serializing_if = "Option::is_none")]
///     pool: Option<Pool>,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct Pool {
///     size: i32,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # use koord_resource::{Resource, Schema};
/// #[derive(Clone, serde::Deserialize, Resource, Schema)]
/// #[koord(group = "example.com", version = "v1", scope = "Namespaced", selectable(".spec.pool.size"))]
/// struct Shop {
///     metadata: ObjectMeta,
///     spec: ShopSpec,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct ShopSpec {
///     #[serde(skip_serializing_if = "Option::is_none")]
///     pool: Option<Pool>,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct Pool {
///     size: Vec<i32>,
/// }
/// # fn main() {}
/// ```
pub const fn needs_path<T: Schema>(path: &[&str], is_selectable: bool, [absent, unfit]: [&str; 2]) {
    let (mut known, mut at) = (T::MEMBERS, 0);
    while at < path.len() {
        let Members::Known(members) = known else { return };
        let found = find_index(members, path[at], false);
        assert!(found.is_some(), "{}", absent);
        let Some(index) = found else { return };
        if at + 1 == path.len() && is_selectable {
            assert!(may_be_selected(members[index].shape), "{}", unfit);
        }
        // Types may contain each other, so that the members of members are as far as constants can look.
        known = if at == 0 && index < T::INSIDE.len() { T::INSIDE[index] } else { Members::Unknown };
        at += 1;
    }
}

/// Whether a field selector may name a field of this kind.
const fn may_be_selected(shape: Shape) -> bool {
    matches!(shape, Shape::String | Shape::Boolean | Shape::Integer | Shape::Anything)
}

/// Fails to compile where the members of the type are known and the newest version has none of this name.
///
/// ```
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # use koord_resource::{Resource, Schema};
/// #[derive(Clone, serde::Deserialize, Resource, Schema)]
/// #[koord(group = "example.com", version = "v1", scope = "Namespaced")]
/// #[koord(column(name = "Size", type = "integer", path = ".spec.size"))]
/// struct Shop {
///     metadata: ObjectMeta,
///     spec: ShopSpec,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct ShopSpec {
///     size: i32,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # use koord_resource::{Resource, Schema};
/// #[derive(Clone, serde::Deserialize, Resource, Schema)]
/// #[koord(group = "example.com", version = "v1", scope = "Namespaced")]
/// #[koord(column(name = "Size", type = "integer", path = ".spec.sice"))]
/// struct Shop {
///     metadata: ObjectMeta,
///     spec: ShopSpec,
/// }
/// #[derive(Clone, serde::Deserialize, serde::Serialize, Schema)]
/// struct ShopSpec {
///     size: i32,
/// }
/// # fn main() {}
/// ```
pub const fn needs_member<T: Schema>(name: &str, message: &str) {
    if let Members::Known(members) = T::MEMBERS {
        assert!(find(members, name, false).is_some(), "{}", message);
    }
}

/// Fails to compile where the members of the type are known and no version has one of this name.
pub const fn needs_member_of_any_version<T: Schema>(name: &str, message: &str) {
    if let Members::Known(members) = T::MEMBERS {
        assert!(find(members, name, false).is_some() || find(members, name, true).is_some(), "{}", message);
    }
}

/// Fails to compile where the members of the type are known and no field selector may name this one.
///
/// The messages say, in order, that there is no such member, and that it is no text, boolean or integer.
pub const fn needs_selectable<T: Schema>(name: &str, [absent, unfit]: [&str; 2]) {
    needs_member::<T>(name, absent);
    if let Members::Known(members) = T::MEMBERS
        && let Some(member) = find(members, name, false)
    {
        let fits = may_be_selected(member.shape);
        assert!(fits, "{}", unfit);
    }
}

/// Fails to compile where the members of the type are known and items of a list cannot be known by this one.
///
/// The messages say, in order, that there is no such member, that items may lack it, and that it is no scalar.
///
/// ```
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Port { name: String }
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(list_type = "map", list_map_key = "name")]
///     ports: Vec<Port>,
/// }
/// # fn main() {}
/// ```
///
/// ```compile_fail,E0080
/// # use koord_resource::Schema;
/// #[derive(Schema)]
/// struct Port { name: String }
/// #[derive(Schema)]
/// struct Spec {
///     #[koord(list_type = "map", list_map_key = "number")]
///     ports: Vec<Port>,
/// }
/// # fn main() {}
/// ```
pub const fn needs_key<T: Schema>(name: &str, [absent, uncertain, unfit]: [&str; 3]) {
    needs_member::<T>(name, absent);
    if let Members::Known(members) = T::MEMBERS
        && let Some(member) = find(members, name, false)
    {
        assert!(member.is_certain, "{}", uncertain);
        assert!(!matches!(member.shape, Shape::Array | Shape::Object), "{}", unfit);
    }
}

/// The member of a name, among those that were removed or among the others.
const fn find(members: &[Member], name: &str, is_removed: bool) -> Option<Member> {
    match find_index(members, name, is_removed) {
        Some(index) => Some(members[index]),
        None => None,
    }
}

const fn find_index(members: &[Member], name: &str, is_removed: bool) -> Option<usize> {
    let mut at = 0;
    while at < members.len() {
        if members[at].is_removed == is_removed && is_same(members[at].name, name) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether two texts are the same; `==` cannot be called in constants.
pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{Member, Shape, find, is_same};

    #[test]
    fn a_member_is_found_by_its_whole_name() {
        let table = [("", "", true), ("name", "name", true), ("name", "names", false), ("é", "è", false)];
        for (one, other, expected) in table {
            assert_eq!(is_same(one, other), expected, "{one} {other}");
        }
        let member = |name, is_removed| Member { name, shape: Shape::String, is_certain: true, is_removed };
        let members = [member("mode", true), member("mode", false), member("legacy", true)];
        assert_eq!(find(&members, "mode", false), Some(members[1]));
        assert_eq!(find(&members, "mode", true), Some(members[0]));
        assert_eq!(find(&members, "legacy", false), None);
    }
}
