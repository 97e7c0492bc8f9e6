use koord_resource::Convert;

#[derive(Convert)]
#[koord(removed(since = "v1", name = "mode"))]
struct Spec {
    size: i32,
}

fn main() {}
