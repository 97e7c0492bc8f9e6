use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(short_name = "s")]
    count: i32,
}

fn main() {}
