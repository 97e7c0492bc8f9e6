use koord_resource::Validate;

#[derive(Validate)]
struct Spec {
    #[koord(check("text"))]
    count: i32,
}

fn main() {}
