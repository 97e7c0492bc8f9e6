use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(renamed(since = "v1"))]
    count: i32,
}

fn main() {}
