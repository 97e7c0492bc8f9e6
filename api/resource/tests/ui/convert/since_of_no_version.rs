use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Convert, Resource, Schema, convert::Conversion};
use serde::{Deserialize, Serialize};

#[derive(Clone, Deserialize, Resource, Schema, Convert)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
struct Thing {
    metadata: ObjectMeta,
    spec: ThingSpec,
}

#[derive(Clone, Deserialize, Serialize, Schema, Convert)]
struct ThingSpec {
    #[koord(renamed(since = "v3", from = "count"))]
    size: i32,
}

const CONVERSIONS: &[Conversion] = &[Conversion::of::<Thing>(&["v1alpha1"])];

fn main() {
    let _ = CONVERSIONS;
}
