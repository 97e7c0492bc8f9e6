use koord_resource::Convert;

#[derive(Convert)]
#[koord(removed(since = "v1", added = "v1", name = "mode", type = Option<String>))]
struct Spec {
    size: i32,
}

fn main() {}
