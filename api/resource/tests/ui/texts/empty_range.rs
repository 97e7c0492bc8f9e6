use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_length = 5, max_length = 2)]
    name: String,
}

fn main() {}
