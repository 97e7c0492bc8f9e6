use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(zebra)]
    count: i32,
}

fn main() {}
