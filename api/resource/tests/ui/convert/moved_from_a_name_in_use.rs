use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(moved(since = "v1", from = "size", member = "bytes"))]
    disk: Disk,
    size: i32,
}

#[derive(Convert)]
struct Disk {
    bytes: i32,
}

fn main() {}
