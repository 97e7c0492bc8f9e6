use koord_resource::Convert;

#[derive(Convert)]
#[koord(removed(since = "v1", name = "mode", type = Option<String>))]
#[koord(validate(rule = "self.mode != ''"))]
struct Spec {
    size: i32,
}

fn main() {}
