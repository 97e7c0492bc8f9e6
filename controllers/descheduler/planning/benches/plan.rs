//! What it costs to follow the evictions of a pass through the scheduler: `cargo bench -p koord-descheduler-planning --bench plan [PART OF A NAME]`.
//!
//! LowNodeLoad and four strategies evict a hundred pods of 5 000 nodes with 150 000 pods, and each successor is scheduled by the engine with what Koordinator
//! ships. The floor chooses the largest of one number of each node for each of them. The exit code is 1 where a goal was missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "../../assembly/benches/filled/mod.rs"]
mod filled;

use std::{
    fs,
    hint::black_box,
    process::{Command, ExitCode},
    sync::Arc,
    time::Duration,
};

use filled::{FIVE, Filled, Strategies};
use goals::{Chosen, Floor, clock};
use koord_core::clock::Moment;
use koord_descheduler_framework::{History, Input, Memory, Plan, Planning, Step, Successor};
use koord_descheduler_planning::{EvictedAgain, Foresight, plan};
use koord_descheduler_testing::MeasuredCluster;
use koord_program::gates::Gates;
use koord_runtime::{Core, clock::SystemClock, events::NoopSink, metrics::Metrics, random::Random};
use koord_scheduler_assembly::{Configuration, GATES, engine};
use koord_scheduler_engine::Engine;
use koord_scheduler_runtime::{Transformers, feed::Feed};

const EVICTIONS: u32 = 100;
const OF: MeasuredCluster = MeasuredCluster::LARGE;
const LIMITED: Strategies<'static> = Strategies { total: Some(EVICTIONS), ..FIVE };
/// An argument of a process that fills everything and says what it holds then.
const FILL: &str = "fill";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(FILL) {
        let (filled, scheduler) = (Filled::of(OF, &LIMITED, clock).0, Scheduler::filled());
        black_box(planned(&filled, &scheduler));
        println!("{}", resident_bytes());
        return ExitCode::SUCCESS;
    }
    Chosen::run(|chosen| {
        time(chosen);
        memory(chosen);
    })
}

fn time(chosen: &Chosen) {
    const NAME: &str = "100 evictions followed through the scheduler, 5000 nodes";
    if !chosen.has(NAME) {
        return;
    }
    let (filled, scheduler) = (Filled::of(OF, &LIMITED, clock).0, Scheduler::filled());
    let steps = planned(&filled, &scheduler).steps;
    let evictions = steps.iter().filter_map(Step::eviction);
    let placed = evictions.filter(|eviction| matches!(eviction.outlook.successor, Some(Successor::On(_)))).count();
    println!("{} evictions, of {placed} the successor gets another node", steps.len());
    assert!(steps.len() == EVICTIONS as usize && placed > 0);
    let scores: Vec<i64> = (0..100).cycle().take(OF.nodes).collect();
    let start = clock();
    for _ in 0..EVICTIONS {
        black_box(black_box(&scores).iter().zip(0_usize..).max());
    }
    let floor = clock().saturating_sub(start);
    chosen.above(Floor::Measured(floor)).time(Duration::from_millis(200), NAME, 1, || {
        black_box(planned(&filled, &scheduler));
    });
}

/// The pass that [`Filled::pass`] makes, with each eviction followed through.
fn planned(filled: &Filled, scheduler: &Scheduler) -> Plan {
    let mut descheduler = filled.descheduler.clone();
    descheduler.profiles.iter_mut().for_each(|profile| profile.planning = Planning::Report);
    let (memory, history) = (Memory::default(), History::default());
    let now = jiff::Timestamp::from_second(koord_descheduler_testing::REPORTED + 10).unwrap();
    let foresight = Foresight { scheduler: Some(&scheduler.engine), history: &history };
    plan(&descheduler, &Input::new(&filled.cluster, &memory, now), foresight, &mut EvictedAgain::default())
}

/// In a process of its own: memory that was given back may stay resident.
fn memory(chosen: &Chosen) {
    const NAME: &str = "resident with planning, 5000 nodes";
    if chosen.has(NAME) {
        let output = Command::new(std::env::current_exe().unwrap()).arg(FILL).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let bytes: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        chosen.holds(220.0, NAME, bytes / 1e6);
    }
}

/// The scheduler's engine with the measured cluster, and its caches.
struct Scheduler {
    engine: Engine,
    _core: Core,
    _feed: Feed,
}

impl Scheduler {
    fn filled() -> Self {
        let configuration = Configuration::shipped_for_all_pods().unwrap();
        let (time, metrics) = (SystemClock::shared(), Metrics::new().unwrap());
        let mut core = Core::new("bench", time, Random::seeded(1), metrics, Arc::new(NoopSink));
        let mut engine = engine(&configuration, &Gates::new(GATES), core.random().clone()).unwrap();
        engine.tick(jiff::Timestamp::from_second(koord_descheduler_testing::REPORTED).unwrap());
        let feed = Feed::transforming(&mut core, &engine.reads(), Transformers::default());
        for watch in core.watches() {
            watch.sink.begin_list(true);
        }
        for object in OF.objects() {
            for watch in core.watches().iter().filter(|watch| object["kind"] == watch.kind.kind) {
                watch.sink.upsert(&object.to_string()).unwrap();
            }
        }
        for watch in core.watches() {
            watch.sink.end_list();
        }
        feed.fill(&mut engine, Moment::default());
        Self { engine, _core: core, _feed: feed }
    }
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|known| known.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}
