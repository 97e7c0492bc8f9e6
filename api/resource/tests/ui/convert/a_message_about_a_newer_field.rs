use koord_resource::{Convert, Schema};

#[derive(Schema, Convert)]
#[koord(validate(rule = "self.name != ''", message_expression = "'not ' + string(self.megabytes)"))]
struct Spec {
    name: String,
    #[koord(renamed(since = "v1", from = "size"))]
    megabytes: i32,
}

fn main() {}
