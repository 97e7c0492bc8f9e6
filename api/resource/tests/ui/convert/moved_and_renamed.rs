use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(renamed(since = "v1beta1", from = "bytes"), moved(since = "v1", from = "disk.size"))]
    size: i32,
}

fn main() {}
