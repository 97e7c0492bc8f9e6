//! LeastFragmented on public traces, against what fragmentation gradient descent (FGD) reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, missing_docs)]

mod openb;

use std::time::Duration;

/// The whole cluster and one seed; `cargo bench -p koord-scheduler-assembly --bench quality` plays ten.
#[test]
fn more_gpus_are_given_out_and_fewer_are_lost_than_with_fgd() {
    let Some(folder) = openb::there(openb::beside()) else { return };
    for fgd in openb::FGD {
        let nodes = openb::nodes(&folder, fgd.cpu_percent);
        let pods = openb::requests(&folder, fgd.trace);
        let (outcomes, _) = openb::replay(&nodes, &pods, 42, "LeastFragmented", || Duration::ZERO);
        assert!(outcomes.attempts >= pods.len(), "{fgd:?}: {outcomes:?}");
        assert!(fgd.is_reached(outcomes.allocated, outcomes.fragmented), "{fgd:?}: {outcomes:?}");
    }
}
