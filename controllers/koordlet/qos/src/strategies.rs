//! All strategies of the agent.

use std::time::Duration;

use koord_core::clock::Moment;

use crate::{
    blkio::BlkIo, cgroup_reconcile::CgroupReconcile, cpu_burst::CpuBurst, cpu_evict::CpuEvict,
    cpu_suppress::CpuSuppress, eviction::EvictionRound, input::Input, memory_evict::MemoryEvict, outcome::Outcome,
    resctrl::ResctrlReconcile, system_config::SystemConfig,
};

/// A strategy, as it is named in metrics, audit and explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    CpuSuppress,
    CpuEvict,
    MemoryEvict,
    CpuBurst,
    CgroupReconcile,
    Resctrl,
    BlkIo,
    SystemConfig,
}

/// What the flags say about strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--cpu-evict-cool-time-seconds`.
    pub cpu_evict_cool_down: Duration,
    /// `--memory-evict-cool-time-seconds`.
    pub memory_evict_cool_down: Duration,
    /// Chooses how many tokens containers begin with.
    pub seed: u64,
}

/// All strategies with their state.
#[derive(Debug)]
pub struct Strategies {
    pub cpu_suppress: CpuSuppress,
    pub cpu_evict: CpuEvict,
    pub memory_evict: MemoryEvict,
    pub cpu_burst: CpuBurst,
    pub cgroup_reconcile: CgroupReconcile,
    pub resctrl: ResctrlReconcile,
    pub blkio: BlkIo,
    pub system_config: SystemConfig,
}

impl Default for Options {
    fn default() -> Self {
        let [cpu_evict_cool_down, memory_evict_cool_down] = [20, 4].map(Duration::from_secs);
        Self { cpu_evict_cool_down, memory_evict_cool_down, seed: 0 }
    }
}

impl Strategy {
    pub const ALL: [Self; 8] = [
        Self::CpuSuppress,
        Self::CpuEvict,
        Self::MemoryEvict,
        Self::CpuBurst,
        Self::CgroupReconcile,
        Self::Resctrl,
        Self::BlkIo,
        Self::SystemConfig,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuSuppress => "CPUSuppress",
            Self::CpuEvict => "CPUEvict",
            Self::MemoryEvict => "memoryEvict",
            Self::CpuBurst => "CPUBurst",
            Self::CgroupReconcile => "CgroupReconcile",
            Self::Resctrl => "ResctrlReconcile",
            Self::BlkIo => "BlkioReconcile",
            Self::SystemConfig => "SystemConfigReconcile",
        }
    }
}

impl Strategies {
    /// The strategies of an agent that starts now.
    pub fn new(options: Options, start: Moment) -> Self {
        Self {
            cpu_suppress: CpuSuppress::default(),
            cpu_evict: CpuEvict::new(options.cpu_evict_cool_down, start),
            memory_evict: MemoryEvict::new(options.memory_evict_cool_down),
            cpu_burst: CpuBurst::new(options.seed),
            cgroup_reconcile: CgroupReconcile::default(),
            resctrl: ResctrlReconcile::default(),
            blkio: BlkIo::default(),
            system_config: SystemConfig::default(),
        }
    }

    /// Runs one strategy.
    pub fn run(&mut self, strategy: Strategy, input: &Input<'_>) -> Outcome {
        match strategy {
            Strategy::CpuSuppress => self.cpu_suppress.run(input),
            Strategy::CpuEvict => self.cpu_evict.run(input),
            Strategy::MemoryEvict => self.memory_evict.run(input),
            Strategy::CpuBurst => self.cpu_burst.run(input),
            Strategy::CgroupReconcile => self.cgroup_reconcile.run(input),
            Strategy::Resctrl => self.resctrl.run(input),
            Strategy::BlkIo => self.blkio.run(input),
            Strategy::SystemConfig => self.system_config.run(input),
        }
    }

    /// Takes a round of evictions back when all of it was carried out.
    pub fn finish(&mut self, strategy: Strategy, round: &EvictionRound, now: Moment) {
        match strategy {
            Strategy::CpuEvict => self.cpu_evict.finish(round, now),
            Strategy::MemoryEvict => self.memory_evict.finish(round, now),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
