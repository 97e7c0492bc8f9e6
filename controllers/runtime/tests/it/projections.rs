//! What a derived projection reads of the metadata.

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
