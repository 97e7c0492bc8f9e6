//! Which representation a client asked for.

use crate::status::ApiError;

/// The text form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    #[default]
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What the answer is made into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The object or list itself.
    #[default]
    Object,
    /// A `Table` of `meta.k8s.io` in this version.
    Table(&'static str),
    /// `PartialObjectMetadata` of one object, in this version.
    Metadata(&'static str),
    /// `PartialObjectMetadataList`, in this version.
    MetadataList(&'static str),
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Representation {
    /// Text form.
    pub format: Format,
    /// Shape.
    pub shape: Shape,
}

/// What a route can write, before the parameters of the media types are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A page that is only ever JSON.
    Json,
    /// One object.
    Object,
    /// A list, or a watch of it.
    Collection,
}

// === impl Route ===

impl Route {
    /// The media types, in the order of messages.
    pub fn media_types(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Object => "application/json, application/yaml, application/vnd.kubernetes.protobuf",
            Self::Collection => {
                "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
            }
        }
    }

    /// Whether the client accepts any media type of the route; parameters do not count, `application/*` is not understood.
    pub fn accepts(self, accept: &str) -> Result<(), ApiError> {
        let media_types = self.media_types();
        let is_served = |clause: &str| {
            let asked = clause.split(';').next().unwrap_or_default().trim();
            asked == "*/*" || media_types.split(", ").any(|served| served == asked)
        };
        if accept.trim().is_empty() || accept.split(',').any(is_served) {
            return Ok(());
        }
        Err(ApiError::no_representation(media_types))
    }
}

/// The clauses of an `Accept` header in the order in which kube-apiserver looks at them: by preference, and what is named before
/// what is left open. Clauses that name no media type are left out.
pub fn clauses(accept: &str) -> Vec<&str> {
    let quality = |clause: &str| parameter(clause, "q").map_or(1.0, |q| q.parse::<f32>().unwrap_or_default());
    let comes_before = |one: &str, other: &str| {
        let ((type_, subtype), (other_type, other_subtype)) = (types(one), types(other));
        quality(one) > quality(other) || (type_ != "*" && other_type == "*") || (subtype != "*" && other_subtype == "*")
    };
    let mut clauses: Vec<&str> = accept.split(',').map(str::trim).filter(|clause| names_type(clause)).collect();
    // The comparison is no order: a named type goes before an open one whatever the client prefers. So the steps count,
    // and they are those of Go's sort.
    for end in 1..clauses.len() {
        let mut place = end;
        while place > 0 && comes_before(clauses[place], clauses[place - 1]) {
            clauses.swap(place, place - 1);
            place -= 1;
        }
    }
    clauses
}

fn names_type(clause: &str) -> bool {
    let name = media_type(clause);
    name.split_once('/').is_some_and(|(_, subtype)| !subtype.is_empty() && !subtype.contains('/'))
}

/// The type and the subtype of a clause that names both.
fn types(clause: &str) -> (&str, &str) {
    media_type(clause).split_once('/').unwrap_or_default()
}

/// The media type of a clause, without parameters.
pub fn media_type(clause: &str) -> &str {
    match clause.split(';').next().unwrap_or_default().trim() {
        "*" => "*/*",
        name => name,
    }
}

/// Whether a clause takes this media type.
pub fn takes(clause: &str, served: &str) -> bool {
    let ((type_, subtype), (served_type, served_subtype)) = (types(clause), types(served));
    (type_ == "*" || type_ == served_type) && (subtype == "*" || subtype == served_subtype)
}

/// The text form that a clause asks for. Protobuf is not served.
pub fn format(clause: &str) -> Option<Format> {
    match media_type(clause) {
        "application/json" | "*/*" | "application/*" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        _ => None,
    }
}

/// Picks the first acceptable representation, in the client's order of preference.
pub fn representation(accept: &str) -> Result<Representation, ApiError> {
    if accept.is_empty() {
        return Ok(Representation::default());
    }
    clauses(accept).into_iter().find_map(clause_representation).ok_or_else(|| {
        ApiError::not_acceptable(format!(
            "only the following media types are accepted: {}",
            Route::Object.media_types()
        ))
    })
}

fn clause_representation(clause: &str) -> Option<Representation> {
    let format = format(clause)?;
    let is_open = |name: &str, known: &str| parameter(clause, name).is_none_or(|value| value == known);
    if !is_open("stream", "watch") || !is_open("sv", "") {
        return None;
    }
    let shape = match parameter(clause, "as") {
        None if is_transformed(clause) => return None,
        None => Shape::Object,
        Some(kind) => {
            if parameter(clause, "g") != Some("meta.k8s.io") {
                return None;
            }
            let version = match parameter(clause, "v") {
                Some("v1") => "v1",
                Some("v1beta1") => "v1beta1",
                _ => return None,
            };
            match kind {
                "Table" => Shape::Table(version),
                "PartialObjectMetadata" => Shape::Metadata(version),
                "PartialObjectMetadataList" => Shape::MetadataList(version),
                _ => return None,
            }
        }
    };
    Some(Representation { format, shape })
}

/// Whether a clause asks for another kind than the endpoint's own.
pub fn is_transformed(clause: &str) -> bool {
    ["as", "g", "v"].iter().any(|name| parameter(clause, name).is_some())
}

/// A parameter of a clause, such as `as`; the last of those with the name. What has no value, or two, is none.
pub fn parameter<'a>(clause: &'a str, name: &str) -> Option<&'a str> {
    let pairs = clause.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let pairs = pairs.filter(|(key, value)| key.trim() == name && !value.is_empty() && !value.contains('='));
    pairs.last().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_order_decide() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(representation(kubectl).unwrap().shape, Shape::Table("v1"));
        assert_eq!(representation("application/json;q=0.5, application/yaml").unwrap().format, Format::Yaml);
        assert_eq!(
            representation("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Representation::default()
        );
        assert_eq!(representation("").unwrap(), Representation::default());
    }

    #[test]
    fn what_is_named_goes_before_what_is_left_open() {
        let order = |accept| clauses(accept).join(" ");
        assert_eq!(order("*/*, application/yaml"), "application/yaml */*");
        assert_eq!(order("application/*, text/csv;q=0.1"), "text/csv;q=0.1 application/*");
        assert_eq!(order("a/b;q=0.2, c/d;q=0.9, e/f"), "e/f c/d;q=0.9 a/b;q=0.2");
        assert_eq!(order("garbage, */*, a/b/c, a/"), "*/*");
        assert_eq!(order("*;q=0.5"), "*;q=0.5");
        assert_eq!(representation("*/*, application/yaml").unwrap().format, Format::Yaml);
        assert_eq!(representation("*").unwrap(), Representation::default());
    }

    #[test]
    fn a_kind_needs_all_of_its_parameters() {
        for accept in ["garbage", "application/json;g=meta.k8s.io", "application/json;stream=other", "text/json;v=v1"] {
            assert_eq!(representation(accept).unwrap_err().code(), 406, "{accept}");
        }
        assert!(representation("application/json;stream=watch;as=").is_ok());
    }

    #[test]
    fn what_nobody_serves_is_not_acceptable() {
        assert_eq!(representation("text/csv").unwrap_err().code(), 406);
        let refused = |route: Route, accept| route.accepts(accept).unwrap_err().to_string();
        assert!(refused(Route::Object, "text/csv").ends_with("application/vnd.kubernetes.protobuf"));
        assert!(refused(Route::Collection, "application/*").ends_with("protobuf;stream=watch"));
        assert!(Route::Object.accepts("text/csv, application/json;as=Other").is_ok());
        assert_eq!(representation("application/json;as=Other;v=v1;g=meta.k8s.io").unwrap_err().code(), 406);
    }
}
