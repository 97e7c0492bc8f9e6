use koord_resource::{Convert, Schema};

#[derive(Schema, Convert)]
#[koord(validate(rule = "self.megabytes > 0"))]
#[koord(validate(rule = "self.size > 0 && oldSelf.megabytes > 0", until = "v1"))]
struct Spec {
    #[koord(renamed(since = "v1", from = "size"))]
    megabytes: i32,
}

fn main() {}
