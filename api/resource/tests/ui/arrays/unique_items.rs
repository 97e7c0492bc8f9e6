use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(unique_items)]
    names: Vec<String>,
}

fn main() {}
