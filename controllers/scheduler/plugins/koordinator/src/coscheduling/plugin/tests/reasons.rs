//! The codes and details of refusals.

use koord_scheduler_engine::Ending;
use koord_scheduler_framework::Permit as _;

use super::*;

#[test]
fn who_is_refused_for_another_member_names_it_and_what_it_lacks() {
    let mut world = World::new(&[8]);
    world.create(&["p1", "p2", "p3"], 3, &of(3));
    let records = world.engine.verdicts(&ObjectKey::new("ns", "p1"));
    let Ending::Refused { by, .. } = &records[0].ending else { panic!("{records:?}") };
    let reasons = by[0].reasons(world.engine.profile("default-scheduler"), world.engine.cluster());
    let missing = Some("0/1 nodes are available: 1 Insufficient cpu.");
    assert_eq!((reasons[0].code, reasons[0].operand("missing")), (ReasonCode::GangInfeasible, missing));
    assert_eq!(reasons[0].operand("best_node"), Some("n1"));
    let member = reasons[0].operand("member");
    assert!(member.is_some_and(|member| ["ns/p2", "ns/p3"].contains(&member)), "{member:?}");
}

#[test]
fn a_member_that_has_waited_for_too_long_names_its_gang() {
    let mut world = World::new(&[8]);
    world.create(&["p1"], 2, &of(2));
    let pod = Arc::clone(&world.pods["p1"]);
    let reason = Coscheduling::default().timeout_reason(&pod, world.engine.cluster(), "1m0s", "too long".to_owned());
    let operands = ["gang", "elapsed"].map(|name| reason.operand(name).unwrap_or_default());
    assert_eq!((reason.code, &*reason.text, operands), (ReasonCode::GangTimeout, "too long", ["ns/g", "1m0s"]));
}
