use koord_resource::Projection;

#[derive(Projection)]
#[koord(kind = "Pod")]
struct PodView {
    spec: String,
}

fn main() {}
