//! The templates by which GPUs are divided.

use koord_scheduler_framework::{AttemptState, Filter as _};

use super::*;

#[test]
fn templates_are_those_of_the_config_map() {
    let mut scheduler = Scheduler::new(DeviceShare::default());
    scheduler.labelled(
        "n1",
        FOUR,
        &json!({"node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": "M"}),
    );
    scheduler.report("n1", FOUR);
    let npu = list("gpu.shared=1 huawei.com/npu-core=2 huawei.com/npu-cpu=1 gpu-memory=6Gi");
    let mut offered = json!({"cpu": "64", "pods": "9", "koordinator.sh/gpu-memory": "320Gi"});
    for name in ["koordinator.sh/gpu.shared", "huawei.com/npu-core", "huawei.com/npu-cpu"] {
        offered[name] = json!("400");
    }
    let labels = json!({"node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": "M"});
    let node = koord_scheduler_testing::node(
        "n1",
        &json!({"metadata": {"labels": labels}, "status": {"allocatable": offered}}),
    );
    scheduler.engine.set_node(node, scheduler.now);
    assert_eq!(scheduler.schedule("p", &npu), unavailable("p", "no matched GPU shared resource template"));
    let resources = "{huawei.com/npu-core: 2, huawei.com/npu-cpu: 1, koordinator.sh/gpu-memory: 6Gi}";
    let templates = format!("huawei-M:\n  vir02: {resources}\n");
    let map: ConfigMap = serde_json::from_value(json!({"data": {"data.yaml": templates}})).unwrap();
    let key = ObjectKey::new("koordinator-system", "gpu-shared-resource-templates");
    scheduler.engine.set_object(Object::new(key, Uid::from("map"), false, Arc::new(map)), scheduler.now);
    assert_eq!(scheduler.next().unwrap(), "p on n1: gpu0:7");
    let placed = scheduler.engine.cluster().pod(&Uid::from("p")).unwrap();
    let allocation = placed.holds.get::<AllocatedDevices>().unwrap();
    assert_eq!(allocation.of(Kind::Gpu)[0].template.as_deref(), Some("vir02"));
}

#[test]
fn each_profile_has_the_templates_of_its_own_config_map() {
    let plugins = ["one", "two"].map(|map| {
        let args = json!({"gpuSharedResourceTemplatesConfig": {"configMapName": map}});
        DeviceShare::new(&serde_json::from_value(args).unwrap())
    });
    let mut cluster = Cluster::default();
    plugins.iter().map(PluginState::state).for_each(|state| cluster.add_state(state));
    let labels = json!({"node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": "M"});
    cluster.set_node(koord_scheduler_testing::node("n1", &json!({"metadata": {"labels": labels}})));
    let object = Object::new(ObjectKey::cluster("n1"), Uid::from("n1"), false, Arc::new(report(FOUR)));
    cluster.set_object(object);
    let row = cluster.row("n1").unwrap();
    let npu = list("gpu.shared=1 huawei.com/npu-core=2 huawei.com/npu-cpu=1 gpu-memory=6Gi");
    let incoming = pod("p", &json!({"requests": npu}));
    let class = cluster.class(&incoming.template);
    let request = Request { pod: &incoming, class: &class, plugins: &[], state: &AttemptState::default() };
    let mut taken = |name: &str, cores: u32| {
        let resources =
            format!("{{huawei.com/npu-core: {cores}, huawei.com/npu-cpu: 1, koordinator.sh/gpu-memory: 6Gi}}");
        let templates = format!("huawei-M:\n  vir02: {resources}\n");
        let map: ConfigMap = serde_json::from_value(json!({"data": {"data.yaml": templates}})).unwrap();
        let key = ObjectKey::new("koordinator-system", name);
        cluster.set_object(Object::new(key, Uid::from(name), false, Arc::new(map)));
        plugins.each_ref().map(|plugin| {
            let PreparedFilter::Nodes(filter) = plugin.prepare_filter(&request, &cluster) else {
                panic!("nothing is asked")
            };
            filter.filter(&cluster, row).is_ok()
        })
    };
    assert_eq!([taken("three", 2), taken("two", 2)], [[false, false], [false, true]]);
    assert_eq!([taken("one", 2), taken("two", 4)], [[true, true], [true, false]]);
}
