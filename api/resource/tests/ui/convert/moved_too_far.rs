use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(moved(since = "v1", from = "a.b.size"))]
    size: i32,
}

fn main() {}
