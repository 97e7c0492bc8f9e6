use koord_resource::Schema;

#[derive(Schema)]
#[koord(XValidation(rule = "true"))]
struct Spec {}

fn main() {}
