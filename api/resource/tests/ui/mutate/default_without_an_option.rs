use koord_resource::Mutate;

#[derive(Mutate)]
struct Spec {
    #[koord(admission(default = 3))]
    count: i32,
}

fn main() {}
