use koord_resource::Projection;

#[derive(Projection)]
#[koord(kind = koord_resource::controller::ResourceKind::POD)]
struct PodView {
    #[koord(rename = "spec")]
    what: String,
}

fn main() {}
