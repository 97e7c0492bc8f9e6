use koord_resource::Schema;

#[derive(Schema)]
#[koord(nullable)]
struct Spec {}

fn main() {}
