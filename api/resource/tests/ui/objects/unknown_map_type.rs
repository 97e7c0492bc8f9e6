use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(map_type = "set")]
    names: std::collections::BTreeMap<String, String>,
}

fn main() {}
