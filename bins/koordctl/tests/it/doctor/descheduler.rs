//! What is found of deschedulers.

use super::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/koordinator-system/deployments";

fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "restartPolicy": "Always",
            "containers": [{"name": "main", "image": image}],
            "volumes": [{"name": "config", "configMap": {"name": format!("{name}-config")}}],
        },
    })
}

fn deployment(cluster: &Cluster, name: &str, configuration: &str) {
    let labels = json!({"app": name});
    cluster.create(
        "/api/v1/namespaces/koordinator-system/configmaps",
        &json!({"metadata": {"name": format!("{name}-config")}, "data": {"config": configuration, "other": ": ["}}),
    );
    cluster.create(
        DEPLOYMENTS,
        &json!({
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod(name, &format!("registry/{name}:v1"))},
        }),
    );
}

#[test]
fn two_deschedulers_and_thresholds_that_contradict_the_schedulers_are_found() {
    let cluster = Cluster::installed("doctor-descheduler");
    assert_eq!(findings(&cluster, &["--only=descheduler"]), (vec![], 0));
    deployment(
        &cluster,
        "koord-scheduler",
        "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  plugins: {filter: {enabled: [{name: LoadAwareScheduling}]}}
",
    );
    let low_node_load = |cpu: u8| {
        format!(
            "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
profiles:
- name: default
  plugins: {{balance: {{enabled: [{{name: LowNodeLoad}}]}}}}
  pluginConfig: [{{name: LowNodeLoad, args: {{highThresholds: {{cpu: {cpu}}}, lowThresholds: {{cpu: 20}}}}}}]
"
        )
    };
    deployment(&cluster, "koord-descheduler", &low_node_load(50));
    let config_map = "ConfigMap koordinator-system/koord-descheduler-config";
    finds(&cluster, "descheduler", "warning", config_map, "highThresholds.cpu 50 is below usageThresholds.cpu 65");
    let path = "/api/v1/namespaces/koordinator-system/configmaps/koord-descheduler-config";
    cluster.patch(path, &json!({"data": {"config": low_node_load(80)}}));
    assert_eq!(findings(&cluster, &["--only=descheduler"]), (vec![], 0));

    let job = "/apis/batch/v1/namespaces/default/cronjobs";
    let template = json!({"spec": {"template": pod("descheduler", "registry.k8s.io/descheduler/descheduler:v0.35.1")}});
    let mut cron_job =
        json!({"metadata": {"name": "descheduler"}, "spec": {"schedule": "* * * * *", "jobTemplate": template}});
    cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    cluster.create(job, &cron_job);
    let both = "CronJob default/descheduler, Deployment koordinator-system/koord-descheduler";
    finds(&cluster, "descheduler", "warning", both, "2 deschedulers evict independently of each other");
    cluster.patch(&format!("{job}/descheduler"), &json!({"spec": {"suspend": true}}));
    assert_eq!(findings(&cluster, &["--only=descheduler"]), (vec![], 0));

    let lease = lease("descheduler", Timestamp::now());
    cluster.create("/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease);
    finds(&cluster, "descheduler", "warning", "Lease default/descheduler, held by one", "independently");
}
