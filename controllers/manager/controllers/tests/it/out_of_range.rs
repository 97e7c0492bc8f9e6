//! Values in slo-controller-config that the API server would refuse in what is made of them. The original makes nothing
//! then, and says nothing.

use serde_json::{Value, json};

use crate::stage::Stage;

#[test]
fn a_value_that_no_object_may_have_is_told_and_another_one_is_used() {
    let mut stage = Stage::new("");
    let threshold = json!({"clusterStrategy": {"enable": true, "cpuSuppressThresholdPercent": 150}});
    let colocation = json!({"enable": true, "metricMemoryCollectPolicy": "everything"});
    let data = json!({"resource-threshold-config": threshold.to_string(), "colocation-config": colocation.to_string()});
    let metadata = json!({"name": "slo-controller-config", "namespace": "koordinator-system"});
    stage.put(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
    stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    stage.settle();

    let mut spec = |kind: &str| -> Value {
        let object = json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": kind, "metadata": {"name": "n"}});
        stage.observe(&object)["spec"].take()
    };
    let threshold = &spec("NodeSLO")["resourceUsedThresholdWithBE"];
    assert_eq!((&threshold["enable"], &threshold["cpuSuppressThresholdPercent"]), (&json!(true), &json!(100)));
    assert_eq!(spec("NodeMetric")["metricCollectPolicy"]["nodeMemoryCollectPolicy"], "usageWithoutPageCache");
    let mut reasons = stage.reasons("slo-controller-config");
    reasons.sort_unstable();
    assert_eq!(reasons, ["ColocationCfgOutOfRange", "SLOCfgOutOfRange"]);
}

#[test]
fn a_strategy_that_nobody_can_work_with_is_told_and_the_last_good_one_holds() {
    let mut stage = Stage::new("");
    let metadata = json!({"name": "slo-controller-config", "namespace": "koordinator-system"});
    let configure = |stage: &mut Stage, colocation: Value| {
        let data = json!({"colocation-config": colocation.to_string()});
        stage.put(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
        stage.settle();
        let object =
            json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n"}});
        let spec = stage.observe(&object)["spec"]["metricCollectPolicy"]["reportIntervalSeconds"].clone();
        (spec, stage.reasons("slo-controller-config"))
    };
    stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    let mut strategy = json!({"enable": true, "metricReportIntervalSeconds": 20});
    assert_eq!(configure(&mut stage, strategy.clone()), (json!(20), vec![]));
    strategy["nodeConfigs"] = json!([{"nodeSelector": {}, "metricReportIntervalSeconds": 0}]);
    let out_of_range = "ColocationCfgOutOfRange";
    assert_eq!(
        configure(&mut stage, strategy.clone()),
        (json!(20), vec![out_of_range; 2]),
        "each controller reports it"
    );
    strategy["degradeTimeMinutes"] = 0.into();
    assert_eq!(configure(&mut stage, strategy), (json!(20), vec![out_of_range; 4]));
}
