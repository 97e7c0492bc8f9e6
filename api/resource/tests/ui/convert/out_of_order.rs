use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(renamed(since = "v1", from = "b"), renamed(since = "v1alpha2", from = "a"))]
    count: i32,
}

fn main() {}
