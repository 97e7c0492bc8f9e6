use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "map", list_map_key = "hosts")]
    ports: Vec<Port>,
}

#[derive(Schema)]
struct Port {
    hosts: Vec<String>,
}

fn main() {}
