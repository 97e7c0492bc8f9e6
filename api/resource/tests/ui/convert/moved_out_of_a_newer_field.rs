use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(moved(since = "v1", from = "disk.size"))]
    size: i32,
    #[koord(added(since = "v1"), nullable)]
    disk: Option<i32>,
}

fn main() {}
