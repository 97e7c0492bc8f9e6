use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(admission(title = "Name"))]
    name: String,
}

fn main() {}
