//! What a derived projection reads of an object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use koord_resource::{Projection, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection as _},
};

#[derive(Debug, PartialEq, Projection)]
#[koord(kind = ResourceKind::POD)]
struct PodView {
    creation_timestamp: Option<Timestamp>,
    labels: Labels,
    spec: Option<String>,
}

fn projected(text: &str) -> Result<PodView, DecodeError> {
    PodView::project(serde_json::from_str(text).unwrap(), &mut Interner::default())
}

#[test]
fn the_time_of_creation_stands_beside_what_else_is_read() {
    let text = r#"{"metadata":{"creationTimestamp":"1970-01-01T00:01:00Z","labels":{"a":"b"}},"spec":"s"}"#;
    let pod = projected(text).unwrap();
    assert_eq!(pod.creation_timestamp, Some(Timestamp::from_second(60).unwrap()));
    assert_eq!((pod.labels.get("a"), pod.spec.as_deref()), (Some("b"), Some("s")));
}

#[test]
fn an_object_without_a_time_has_none_and_one_whose_time_is_none_is_refused() {
    assert_eq!(projected(r#"{"metadata":{"name":"a"}}"#).unwrap().creation_timestamp, None);
    let error = projected(r#"{"metadata":{"creationTimestamp":"soon"}}"#).unwrap_err();
    assert_eq!(error.field, "metadata.creationTimestamp");
}

// === members of several words ===

#[derive(Debug, PartialEq, Projection)]
#[koord(kind = ResourceKind::SECRET)]
struct SecretView {
    r#type: Option<String>,
    string_data: Option<BTreeMap<String, String>>,
}

#[test]
fn a_member_is_named_in_snake_case_as_fields_are() {
    let project = |text: &str| SecretView::project(serde_json::from_str(text).unwrap(), &mut Interner::default());
    let secret = project(r#"{"metadata":{},"type":"Opaque","stringData":{"a":"b"}}"#).unwrap();
    assert_eq!(secret.r#type.as_deref(), Some("Opaque"));
    assert_eq!(secret.string_data, Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])));
    let field = |text: &str| project(text).unwrap_err().field;
    assert_eq!(field(r#"{"metadata":{},"type":1}"#), "type");
    assert_eq!(field(r#"{"metadata":{},"stringData":1}"#), "stringData");
}

// === inside of a macro_rules ===

macro_rules! view {
    ($name:ident, $kind:path, $text:ty, $number:ty) => {
        #[derive(Debug, PartialEq, Projection)]
        #[koord(kind = $kind)]
        struct $name {
            labels: Labels,
            spec: $text,
            status: $number,
        }
    };
}

view!(Shared, ResourceKind::POD, std::sync::Arc<str>, Option<u8>);

#[test]
fn types_that_a_macro_passes_on_are_read_as_they_are() {
    let text = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"b": 1},"status":7}"#;
    let shared = Shared::project(serde_json::from_str(text).unwrap(), &mut Interner::default()).unwrap();
    assert_eq!((&*shared.spec, shared.status, shared.labels.get("a")), (r#"{"b": 1}"#, Some(7), Some("b")));
}
