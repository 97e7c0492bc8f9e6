use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(in_versions(since = "v2", validate(rule = "self > 0")))]
    count: i32,
}

fn main() {}
