use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(pattern = "(a)\\1")]
    name: String,
}

fn main() {}
