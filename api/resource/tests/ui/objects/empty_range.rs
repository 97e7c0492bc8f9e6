use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(min_properties = 3, max_properties = 2)]
    names: std::collections::BTreeMap<String, String>,
}

fn main() {}
