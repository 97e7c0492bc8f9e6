//! What a metric is called, what it counts, and what to do about it: data, from which the metric itself, its reference
//! page, dashboards and alerts are made.

use std::fmt;

use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Result};

/// Which of the registries a metric belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The runtime: `/metrics`.
    Runtime,
    /// The program's components: `/internal-metrics`.
    Internal,
    /// Other systems: `/external-metrics`.
    External,
    /// Those who measure whether the program is up: `/metrics/slis`.
    Slis,
}

impl Audience {
    /// The page that serves these metrics alone; `/all-metrics` serves all.
    pub const fn page(self) -> &'static str {
        match self {
            Self::Runtime => "/metrics",
            Self::Internal => "/internal-metrics",
            Self::External => "/external-metrics",
            Self::Slis => "/metrics/slis",
        }
    }
}

/// How a metric moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only upwards.
    Counter,
    /// Up and down.
    Gauge,
    /// Observations in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        })
    }
}

/// What a value of a metric is an amount of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// 1 for yes, 0 for no.
    YesNo,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Bytes.
    Bytes,
    /// Seconds since 1970, of a point in time.
    UnixTime,
    /// What the label `unit` says.
    Labelled,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::YesNo => "0 or 1",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Bytes => "bytes",
            Self::UnixTime => "seconds since 1970",
            Self::Labelled => "see the label `unit`",
        })
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description {
    /// The name of the family.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// Where it is served.
    pub audience: Audience,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What its values are amounts of.
    pub unit: Unit,
    /// What it means.
    pub help: &'static str,
    /// What an operator does when it is not as it should be; empty where nothing is ever wrong with it.
    pub advice: &'static str,
}

impl Description {
    /// A metric that only grows.
    pub const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, audience: Audience::Runtime, labels, unit: Unit::Count, help, advice: "" }
    }

    /// A metric that goes up and down.
    pub const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { kind: Kind::Gauge, ..Self::counter(name, labels, help) }
    }

    /// A distribution.
    pub const fn histogram(
        name: &'static str,
        labels: &'static [&'static str],
        buckets: &'static [f64],
        help: &'static str,
    ) -> Self {
        Self { kind: Kind::Histogram(buckets), unit: Unit::Seconds, ..Self::counter(name, labels, help) }
    }

    /// The same for another audience than [`Audience::Runtime`].
    pub const fn to(self, audience: Audience) -> Self {
        Self { audience, ..self }
    }

    /// The same in another unit than counts (of histograms: seconds).
    pub const fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The same with what to do when it is not as it should be.
    pub const fn advice(self, advice: &'static str) -> Self {
        Self { advice, ..self }
    }

    /// Names of the series in the text format: those of the family, and of a histogram those of its parts.
    pub fn series(&self) -> Vec<String> {
        match self.kind {
            Kind::Counter | Kind::Gauge => vec![self.name.to_owned()],
            Kind::Histogram(_) => ["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", self.name)).to_vec(),
        }
    }

    pub(super) fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    pub(super) fn make_counter(&self) -> Result<IntCounterVec> {
        IntCounterVec::new(self.opts(), self.labels)
    }

    pub(super) fn make_gauge(&self) -> Result<IntGaugeVec> {
        IntGaugeVec::new(self.opts(), self.labels)
    }

    pub(super) fn make_float_gauge(&self) -> Result<GaugeVec> {
        GaugeVec::new(self.opts(), self.labels)
    }

    pub(super) fn make_histogram(&self) -> Result<HistogramVec> {
        let buckets = match self.kind {
            Kind::Histogram(buckets) => buckets.to_vec(),
            Kind::Counter | Kind::Gauge => Vec::new(),
        };
        HistogramVec::new(HistogramOpts::from(self.opts()).buckets(buckets), self.labels)
    }
}

/// `N` bounds of buckets, the first at `start`, each `factor` times the one before.
pub const fn exponential_buckets<const N: usize>(start: f64, factor: f64) -> [f64; N] {
    let mut buckets = [start; N];
    let mut index = 1;
    while index < N {
        buckets[index] = buckets[index - 1] * factor;
        index += 1;
    }
    buckets
}
