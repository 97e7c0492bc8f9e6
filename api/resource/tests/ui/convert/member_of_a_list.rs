use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(moved(since = "v1", from = "size", member = "size"))]
    disks: Vec<i32>,
}

fn main() {}
