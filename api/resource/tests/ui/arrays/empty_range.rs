use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_items = 2, max_items = 1)]
    names: Vec<String>,
}

fn main() {}
