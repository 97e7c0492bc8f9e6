use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(added(since = "v1"))]
    count: i32,
}

fn main() {}
