use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(enumeration(1, 2))]
    name: String,
}

fn main() {}
