use k8s_openapi::api::core::v1::Pod;
use koord_resource::{admission::Review, field::Errors};

#[koord_resource::admission(path = "/validate-pod", object_type = "pod", groups = [""], versions = ["v1"],
    resources = ["pods"], name = "v.pod.example.com", on = [Create])]
fn validate(_: &Review<'_, Pod>, _: &(), _: &mut Errors) {}

fn main() {}
