use koord_resource::Mutate;

#[derive(Mutate)]
struct Spec {
    #[koord(default_fn = compute)]
    count: i32,
}

fn main() {}
