//! Lists of gangs as long as an annotation may be.

use rustix::time::{ClockId, clock_gettime};

use super::*;

/// Twenty pods, each a gang of its own, name 27 000 others each: 256 KiB, the most that annotations may have. What they cost grows with
/// what they are, and the pod after them is placed.
#[test]
fn lists_of_tens_of_thousands_of_gangs_do_not_hold_up_others() {
    let mut world = World::new(&[64]);
    let others: Vec<String> = (0..27_000).map(|number| format!("ns/{number:05}")).collect();
    // How busy the machine is does not count.
    let cpu = || clock_gettime(ClockId::ThreadCPUTime);
    let began = cpu();
    for number in 0..20 {
        let name = format!("z{number}");
        // They differ at their ends only.
        let groups = serde_json::to_string(&others[..27_000 - number]).unwrap();
        let gang = json!({"name": name, "min-available": "1", "groups": groups});
        // Each is told of several times: it is created, gets a condition, and its labels change.
        for _ in 0..3 {
            world.put(&name, 1, &gang);
        }
    }
    world.create(&["plain"], 1, &json!({}));
    let took = cpu() - began;
    assert_eq!(world.bound.keys().collect::<Vec<_>>(), ["plain"], "gangs of the others are not there");
    assert!(took.tv_sec < 8, "{took:?}");
}
