use koord_resource::Schema;

#[derive(Schema)]
struct Spec(i32, String);

fn main() {}
