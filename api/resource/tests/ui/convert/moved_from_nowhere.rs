use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(moved(since = "v1"))]
    size: i32,
}

fn main() {}
