//! What is kept of a workload between two attempts is what is found anew.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Reserve(u32, usize),
    Pod(u32, usize),
    RemovePod(usize),
    RemoveReservation(usize),
    Update(usize, bool),
}

const SPECS: [&str; 6] = [
    "{}",
    r#"{"allocateOnce": false}"#,
    r#"{"allocateOnce": false, "allocatePolicy": "Restricted"}"#,
    r#"{"allocatePolicy": "Aligned", "labels": {"k": "v", "scheduling.koordinator.sh/reservation-order": "3"}}"#,
    r#"{"owners": [{"object": {"name": "p3"}}]}"#,
    r#"{"allocateOnce": false, "nodeName": "n2"}"#,
];

/// Labels and the affinity of pods.
type Workload = (&'static [(&'static str, &'static str)], &'static str);

const WORKLOADS: [Workload; 4] = [
    (&[("app", "x")], ""),
    (&[("app", "x")], r#"{"reservationSelector":{"k":"v"}}"#),
    (&[("app", "y")], ""),
    (&[("app", "y"), ("scheduling.koordinator.sh/reservation-ignored", "true")], ""),
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1..5_u32, 0..SPECS.len()).prop_map(|(cpus, spec)| Step::Reserve(cpus, spec)),
        6 => (1..4_u32, 0..WORKLOADS.len()).prop_map(|(cpus, workload)| Step::Pod(cpus, workload)),
        2 => (0..20_usize).prop_map(Step::RemovePod),
        1 => (0..10_usize).prop_map(Step::RemoveReservation),
        1 => (0..10_usize, any::<bool>()).prop_map(|(at, is_off)| Step::Update(at, is_off)),
    ];
    proptest::collection::vec(step, 0..40)
}

/// What becomes of all pods and Reservations; with templates of their own nothing is kept of one for the next.
fn play(steps: &[Step], shares_templates: bool) -> Vec<String> {
    let mut world = World::new(&[8, 6, 12, 4]);
    let mut templates = BTreeMap::<(u32, usize, usize), Arc<Template>>::new();
    let (mut said, mut pods, mut reservations) = (Vec::new(), 0, 0);
    for step in steps {
        match step {
            Step::Reserve(cpus, spec) => {
                reservations += 1;
                let spec = serde_json::from_str(SPECS[*spec]).unwrap();
                said.push(world.reserve(&format!("r{reservations}"), *cpus, &spec));
            }
            Step::Pod(cpus, workload) => {
                pods += 1;
                let (labels, affinity) = WORKLOADS[*workload];
                let pod = World::of(&format!("p{pods}"), *cpus, labels, affinity);
                let key = (*cpus, *workload, if shares_templates { 0 } else { pods });
                let template = Arc::clone(templates.entry(key).or_insert_with(|| Arc::clone(&pod.template)));
                world.engine.set_pod(Arc::new(Pod { template, ..pod }), world.now);
                said.push(world.attempt());
            }
            Step::RemovePod(at) => world.engine.remove_pod(&Uid::from(&*format!("p{at}")), world.now),
            Step::RemoveReservation(at) => {
                let name = format!("r{at}");
                world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), &name, world.now);
                world.objects.remove(&name);
            }
            Step::Update(at, is_off) => {
                let name = format!("r{at}");
                if world.objects.contains_key(&name) {
                    world.update(&name, &|object| object["spec"]["unschedulable"] = json!(is_off));
                }
            }
        }
        world.used();
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn owners_of_one_workload_are_placed_as_if_each_was_the_first(steps in steps()) {
        prop_assert_eq!(play(&steps, true), play(&steps, false));
    }
}
