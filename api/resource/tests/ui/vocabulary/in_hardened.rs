use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(hardened(max_lenght = 3))]
    name: String,
}

fn main() {}
