use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(rule = "true", reason = "FieldValueWrong"))]
struct Spec {}

fn main() {}
