//! Writes for which no binding waits: conditions of pods that find no node.

use super::*;

/// The limits of the original's configuration.
const LIMIT: (f32, u32) = (50.0, 100);
const MANY: u64 = 300;

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_is_bound_before_the_conditions_of_many_that_do_not_are_written() {
    let stage = Stage { limit: LIMIT, ..Stage::new() };
    stage.add_node("only", "4");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    for number in 0..MANY {
        stage.add_pod(&format!("large-{number}"), "64");
    }
    // Attempts are made, and conditions and events wait for the limit of requests.
    stage.clock.sleep(Duration::from_millis(200)).await;
    stage.add_pod("plain", "1");
    stage.clock.sleep(Duration::from_millis(300)).await;
    assert_eq!(stage.place("plain"), "only");
    let last = format!("large-{}", MANY - 1);
    assert_eq!(stage.place(&last), "-", "most of the conditions are still to be written");
    stage.pass(2 * MANY / 50 + 10).await;
    assert!(stage.place(&last).starts_with("0/1 nodes are available"), "{}", stage.place(&last));
    stop.cancel();
    running.await.unwrap().unwrap();
}
