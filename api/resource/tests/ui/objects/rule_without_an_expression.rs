use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(message = "no"))]
struct Spec {}

fn main() {}
