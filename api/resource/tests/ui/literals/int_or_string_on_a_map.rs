use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(int_or_string)]
    ratio: std::collections::BTreeMap<String, String>,
}

fn main() {}
