use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    size: i32,
    #[koord(renamed(since = "v1", from = "size"))]
    megabytes: i32,
}

fn main() {}
