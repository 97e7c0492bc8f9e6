use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(column(name = "To", type = "string", path = ".spec.to"))]
    to: String,
}

fn main() {}
