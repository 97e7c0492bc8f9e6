use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(example = true)]
    name: String,
}

fn main() {}
