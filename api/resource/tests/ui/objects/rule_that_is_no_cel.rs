use koord_resource::Schema;

#[derive(Schema)]
#[koord(validate(rule = "self.min <= (self.max", message = "min must not exceed max"))]
#[koord(validate(rule = "self.mim > 0"), validate(rule = "self.min == '3'"), validate(rule = "self.name"))]
struct Spec {
    min: i32,
    max: i32,
    #[koord(validate(rule = "self.first == 'a'"), validate(rule = "slef != ''", message_expression = "1"))]
    name: String,
}

fn main() {}
