use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(minimun = 1)]
    count: i32,
    #[koord(min_length = 1)]
    size: i32,
    #[koord(maximum = "x")]
    weight: i32,
}

fn main() {}
