use koord_resource::Convert;

#[derive(Convert)]
struct Spec {
    #[koord(changed(since = "v1", from = String, up = parse))]
    count: i32,
}

fn main() {}
