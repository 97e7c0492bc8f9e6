use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    name: Option<String>,
}

fn main() {}
