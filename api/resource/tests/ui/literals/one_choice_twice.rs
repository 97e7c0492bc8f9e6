use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(enumeration("a", "a"))]
    name: String,
}

fn main() {}
