use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(renamed(since = "1.0", from = "b"))]
    count: i32,
}

fn main() {}
