use koord_resource::Mutate;
use serde::Serialize;

#[derive(Mutate, Serialize)]
struct Spec {
    #[koord(default_fn = compute)]
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

fn compute() -> u32 {
    1
}

fn main() {}
