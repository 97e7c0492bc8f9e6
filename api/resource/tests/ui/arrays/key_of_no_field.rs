use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(list_type = "map", list_map_key = "nam")]
    ports: Vec<Port>,
    #[koord(items(list_type = "map", list_map_key = "number"))]
    rows: Vec<Vec<Port>>,
    #[koord(hardened(list_type = "map", list_map_key("name", "host")))]
    more: Vec<Box<Port>>,
}

#[derive(Schema)]
#[koord(list_type = "map", list_map_key = "id")]
struct Ports(Vec<Port>);

#[derive(Schema)]
struct Port {
    name: String,
}

#[derive(Schema)]
struct Rack<T> {
    #[koord(list_type = "map", list_map_key = "zone")]
    ports: Vec<Port>,
    rest: T,
}

fn main() {}
