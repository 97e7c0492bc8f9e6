use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(enumeration())]
    name: String,
}

fn main() {}
