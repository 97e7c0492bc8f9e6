use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord("minimum" = 1)]
    count: i32,
}

fn main() {}
