use koord_resource::{Schema, Validate};
use serde::Serialize;

#[derive(Serialize, Schema, Validate)]
struct Spec {
    #[koord(admission(items(immutable)))]
    names: Vec<String>,
    #[koord(items(validate(rule = "self >= oldSelf")))]
    counts: Vec<i32>,
}

fn main() {}
