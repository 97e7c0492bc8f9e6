use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_items = 1)]
    names: std::collections::BTreeMap<String, String>,
}

fn main() {}
