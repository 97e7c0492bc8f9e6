use koord_resource::Convert;

#[derive(Convert)]
#[koord(removed(since = "v1", name = "size", type = Option<i32>))]
struct Spec {
    size: i32,
}

fn main() {}
