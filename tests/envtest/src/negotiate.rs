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

/// The clauses of an `Accept` header in the client's order of preference.
pub fn clauses(accept: &str) -> Vec<&str> {
    let quality = |clause: &str| parameter(clause, "q").and_then(|q| q.parse().ok()).unwrap_or(1.0_f32);
    let mut clauses: Vec<&str> = accept.split(',').map(str::trim).filter(|clause| !clause.is_empty()).collect();
    clauses.sort_by(|one, two| quality(two).total_cmp(&quality(one)));
    clauses
}

/// The media type of a clause, without parameters.
pub fn media_type(clause: &str) -> &str {
    clause.split(';').next().unwrap_or_default().trim()
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
    let clauses = clauses(accept);
    if clauses.is_empty() {
        return Ok(Representation::default());
    }
    clauses.into_iter().find_map(clause_representation).ok_or_else(|| {
        ApiError::not_acceptable(format!(
            "only the following media types are accepted: {}",
            Route::Object.media_types()
        ))
    })
}

fn clause_representation(clause: &str) -> Option<Representation> {
    let format = format(clause)?;
    let shape = match parameter(clause, "as") {
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

/// A parameter of a clause, such as `as`.
pub fn parameter<'a>(clause: &'a str, name: &str) -> Option<&'a str> {
    clause.split(';').skip(1).find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key.trim() == name).then(|| value.trim())
    })
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
    fn what_nobody_serves_is_not_acceptable() {
        assert_eq!(representation("text/csv").unwrap_err().code(), 406);
        let refused = |route: Route, accept| route.accepts(accept).unwrap_err().to_string();
        assert!(refused(Route::Object, "text/csv").ends_with("application/vnd.kubernetes.protobuf"));
        assert!(refused(Route::Collection, "application/*").ends_with("protobuf;stream=watch"));
        assert!(Route::Object.accepts("text/csv, application/json;as=Other").is_ok());
        assert_eq!(representation("application/json;as=Other;v=v1;g=meta.k8s.io").unwrap_err().code(), 406);
    }
}
