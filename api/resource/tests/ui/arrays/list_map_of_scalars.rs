use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "map", list_map_key = "name")]
    names: Vec<String>,
}

fn main() {}
