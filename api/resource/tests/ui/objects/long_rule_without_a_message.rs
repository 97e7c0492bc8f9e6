use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(rule = "true &&\ntrue"))]
struct Spec {}

fn main() {}
