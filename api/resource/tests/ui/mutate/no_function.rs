use koord_resource::Mutate;

#[derive(Mutate)]
struct Spec {
    #[koord(normalize)]
    count: i32,
}

fn main() {}
