use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::Resource;

#[derive(Clone, Resource)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
#[koord(admission(validate(path = "/v", name = "v.example.com", on = [Create], scope = "Namespace")))]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
