use koord_resource::admission;

#[admission(path = "/validate-pod", name = "v.pod.example.com", on = [Create])]
struct Pods;

fn main() {}
