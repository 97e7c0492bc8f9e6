//! Several profiles with arguments of their own.

use super::*;

#[test]
fn each_profile_decides_by_its_own_arguments() {
    let profile = |name: &'static str, args: Value| {
        let args: LoadAwareSchedulingArgs = koord_config::arguments(&args).unwrap();
        let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(LoadAwareScheduling::new(&args))];
        Profile { filters: vec![0], scores: vec![(0, 1)], ..Profile::of(name, plugins) }
    };
    let profiles = vec![
        profile("test", thresholds()),
        profile("loose", json!({"usageThresholds": {"cpu": 90}, "estimatedScalingFactors": {"cpu": 50}})),
        profile("old", json!({"usageThresholds": {"cpu": 90}, "nodeMetricExpirationSeconds": 10})),
        profile("wide", json!({"usageThresholds": {"example.com/x": 1}})),
        profile("again", thresholds()),
    ];
    let engine = Engine::new(profiles, Timings::default(), Random::seeded(1));
    let mut world = World { engine, seconds: 0 };
    world.pass(0);
    world.node("n1", &json!({}));
    world.use_of("n1", "70", "10Gi");
    let mut create = |scheduler: &str, cpu: &str| {
        let pod = with(&sized(scheduler, cpu, "1Gi"), |template| template.scheduler = scheduler.into());
        world.create(pod)
    };
    assert_eq!(["test", "again"].map(|name| create(name, "1")), [OVER_CPU, OVER_CPU]);
    assert_eq!(create("loose", "40"), "n1", "90 of 100 are used, by its estimate of the pod");
    assert_eq!(create("old", "1"), "0/1 nodes are available: 1 node(s) nodeMetric expired.");
    assert_eq!(create("wide", "1"), "n1");
    let state = world.engine.cluster().state::<LoadsBySettings>().unwrap();
    assert!(state.at(3).is_some() && state.at(4).is_none(), "the same arguments share what is kept");
    assert_eq!(world.engine.tick_at().map(Timestamp::as_second), Some(START + 160), "of the default of 180 seconds");
}
