use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(rule = "true", mesage = "no"))]
struct Spec {}

fn main() {}
