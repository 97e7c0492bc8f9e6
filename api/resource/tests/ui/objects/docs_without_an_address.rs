use koord_resource::Schema;

#[derive(Schema)]
struct Spec {
    #[koord(external_docs(description = "more"))]
    count: i32,
}

fn main() {}
