use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(embedded_resource)]
    count: i32,
}

fn main() {}
