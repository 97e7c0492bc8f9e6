use koord_resource::Projection;

#[derive(Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD)]
struct PodView {
    owner_references: Vec<String>,
    uid: String,
    metadata: String,
}

fn main() {}
