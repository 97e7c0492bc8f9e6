use koord_resource::Schema;

macro_rules! named {
    ($name:ident, $pattern:expr) => {
        #[derive(Schema)]
        struct $name {
            #[koord(pattern = $pattern)]
            name: String,
        }
    };
}

named!(Spec, "^(a$");

fn main() {}
