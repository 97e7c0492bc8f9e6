//! What is measured, and what it must not exceed.

use crate::cluster::Pods;

/// A cluster, the API server that it is on, and its goals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Whether the API server is kube-apiserver.
    pub(crate) is_real: bool,
    pub(crate) nodes: usize,
    /// Pods that run before the scheduler starts.
    pub(crate) running: usize,
    /// Pods that wait.
    pub(crate) waiting: usize,
    pub(crate) pods: Pods,
    pub(crate) goals: Goals,
}

/// Of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Goals {
    /// Pods a second, from the first binding to the last.
    pub(crate) rate_min: Option<f64>,
    /// CPU time of the program for each pod, its start among it.
    pub(crate) cpu_ms_max: Option<f64>,
    /// Resident memory at the end.
    pub(crate) resident_mb_max: Option<f64>,
    /// From the start of the process to the first binding.
    pub(crate) first_s_max: Option<f64>,
}

/// CPU time for each pod of one row, in that of another: what a pod costs must not grow with the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) of: &'static str,
    pub(crate) to: &'static str,
    /// How many times that of the other it is at most.
    pub(crate) goal: f64,
}

/// Rows that a ratio names.
const SMALL: &str = "plain-1000";
const LARGE: &str = "plain-20000";

pub(crate) const RATIOS: [Ratio; 1] = [Ratio { of: LARGE, to: SMALL, goal: 1.0 }];

const NO_GOAL: Goals = Goals { rate_min: None, cpu_ms_max: None, resident_mb_max: None, first_s_max: None };

/// The rows. A rate of three times the original's is wanted on kube-apiserver: it made 105, 161, 88 and 116 pods a second.
pub(crate) const ROWS: [Row; 10] = [
    Row {
        goals: Goals { rate_min: Some(315.0), cpu_ms_max: Some(0.4), resident_mb_max: Some(40.0), ..NO_GOAL },
        ..real(SMALL, 1_000, Pods::Plain)
    },
    Row {
        goals: Goals { rate_min: Some(483.0), cpu_ms_max: Some(0.4), resident_mb_max: Some(40.0), ..NO_GOAL },
        ..real("plain-5000", 5_000, Pods::Plain)
    },
    Row { goals: Goals { cpu_ms_max: Some(0.4), ..NO_GOAL }, ..real(LARGE, 20_000, Pods::Plain) },
    Row {
        goals: Goals { rate_min: Some(264.0), cpu_ms_max: Some(0.5), ..NO_GOAL },
        ..real("gangs-5000", 5_000, Pods::Gangs)
    },
    Row {
        goals: Goals { rate_min: Some(348.0), cpu_ms_max: Some(0.5), ..NO_GOAL },
        ..real("mixed-5000", 5_000, Pods::Mixed)
    },
    Row { goals: Goals { rate_min: Some(5_000.0), ..NO_GOAL }, ..embedded("embedded-5000", 5_000, 0, 10_000) },
    Row { goals: Goals { resident_mb_max: Some(40.0), ..NO_GOAL }, ..embedded("memory-5000", 5_000, 2_000, 1) },
    Row {
        pods: Pods::Gangs,
        goals: Goals { cpu_ms_max: Some(0.5), ..NO_GOAL },
        ..embedded("embedded-gangs", 5_000, 0, 10_000)
    },
    Row { goals: Goals { first_s_max: Some(2.0), ..NO_GOAL }, ..embedded("cold-150000", 5_000, 150_000, 1) },
    Row { goals: Goals { resident_mb_max: Some(300.0), ..NO_GOAL }, ..embedded("memory-300000", 10_000, 300_000, 1) },
];

const fn real(name: &'static str, nodes: usize, pods: Pods) -> Row {
    Row { name, is_real: true, nodes, running: 0, waiting: 3_000, pods, goals: NO_GOAL }
}

const fn embedded(name: &'static str, nodes: usize, running: usize, waiting: usize) -> Row {
    Row { name, is_real: false, nodes, running, waiting, pods: Pods::Plain, goals: NO_GOAL }
}
