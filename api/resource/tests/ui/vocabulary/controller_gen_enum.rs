use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(Enum("a", "b"))]
    name: String,
}

fn main() {}
