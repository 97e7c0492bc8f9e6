//! What is switched on: what is shipped, or everything.

use std::{path::Path, sync::LazyLock};

use koord_program::gates::Gates;
use koord_scheduler::{BUILD, Options};
use koord_scheduler_assembly::Configuration;

/// A configuration and feature gates.
pub(super) struct Switches {
    pub(super) configuration: Configuration,
    pub(super) gates: Gates,
}

/// As the scheduler is shipped.
pub(super) static SHIPPED: LazyLock<Switches> = LazyLock::new(|| Switches {
    configuration: Configuration::shipped_for_all_pods().expect("it is shipped"),
    gates: Gates::new(BUILD.gates),
});

/// With every gate on that changes what is decided, and arguments other than those that are shipped.
pub(super) static ALL_ON: LazyLock<Switches> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scheduling/all-on.yaml");
    let arguments = ["koord-scheduler".to_owned(), format!("--config={}", file.display())];
    let options = Options::from_arguments(arguments).expect("they are flags");
    // Those who would take something away from what is looked at stay off.
    let is_on = |name: &&str| !name.starts_with("Disable") && !name.starts_with("Compatible");
    let gates: Vec<String> =
        BUILD.gates.iter().map(|gate| gate.name).filter(is_on).map(|name| format!("{name}=true")).collect();
    Switches {
        configuration: koord_scheduler::configuration(&options).expect("it is right"),
        gates: Gates::parse(BUILD.gates, &gates.join(",")).expect("they are gates"),
    }
});
