//! How much of what prod pods request they will not use.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_koordlet_framework::{Node, Pod};
use koord_scheduling::count;
use koord_types::{node_annotations::RAW_ALLOCATABLE, priority::PriorityClass};

use super::models::{Models, Prediction, node_item};

/// CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Thousandths of CPUs.
    pub milli_cpu: i64,
    pub memory_bytes: i64,
}

/// How usage is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForecastSettings {
    /// Added to predicted peaks.
    pub safety_margin_percent: i64,
    /// Younger pods count with their requests.
    pub cold_start: Duration,
}

/// What one predictor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// What is requested and will not be used.
    pub reclaimable: Amounts,
    /// What will be used at most.
    pub peak: Amounts,
}

/// What is forecast of prod pods, and of those without a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProdForecast {
    /// From the models of single pods.
    pub pods: Forecast,
    /// From the models of the classes and of the system.
    pub classes: Forecast,
    /// The less reclaimable, and the higher peak, of both.
    pub minimum: Forecast,
}

/// A model that the forecast needs is not trained yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no model {0} yet; it is trained with the first samples of the node")]
pub struct MissingModel(pub &'static str);

impl Default for ForecastSettings {
    /// As the original agent is set by default.
    fn default() -> Self {
        Self { safety_margin_percent: 10, cold_start: Duration::from_hours(24) }
    }
}

/// Forecasts what prod pods, and pods without a class, will not use.
///
/// From pods: peak of a pod = its 95th percentile of CPU and 98th of memory, with the margin. Reclaimable = min(max(allocatable − Σ peaks, 0), Σ max(request −
/// peak, 0)), peak = Σ peaks + Σ requests of pods that are young or have no model. From classes: peak = (system + prod + none) with the margin, reclaimable =
/// min(max(allocatable − peak, 0), max(Σ requests − peak, 0)). Pods that have ended or are terminating do not count, and pods without a model not for classes.
///
/// # Errors
///
/// The model of the system or of a class is not trained.
pub fn forecast_prod<'a>(
    models: &Models,
    pods: impl IntoIterator<Item = &'a Arc<Pod>>,
    allocatable: Amounts,
    settings: &ForecastSettings,
    at: Timestamp,
) -> Result<ProdForecast, MissingModel> {
    let with_margin = |amounts: Amounts| amounts.each(|amount| margin(amount, settings.safety_margin_percent));
    let mut seen = BTreeSet::new();
    let [mut peaks, mut reclaimable, mut unpredicted, mut requests] = [Amounts::default(); 4];
    for pod in pods {
        let is_prod = matches!(pod.priority_class(), Some(PriorityClass::Prod) | None);
        if !is_prod || !seen.insert(&*pod.uid) {
            continue;
        }
        let request = Amounts { milli_cpu: pod.request("cpu"), memory_bytes: pod.request("memory") };
        let is_done = pod.is_terminating || pod.has_ended();
        let is_young = pod.created.is_some_and(|created| {
            Duration::try_from(at.duration_since(created)).unwrap_or_default() <= settings.cold_start
        });
        if is_young {
            unpredicted = unpredicted.plus(request);
        } else if !is_done {
            let Some(prediction) = models.predict(&pod.uid) else {
                unpredicted = unpredicted.plus(request);
                continue;
            };
            let peak = with_margin(peak(&prediction));
            peaks = peaks.plus(peak);
            reclaimable = reclaimable.plus(request.minus_down_to_zero(peak));
        }
        if !is_done {
            requests = requests.plus(request);
        }
    }
    let pods =
        Forecast { reclaimable: allocatable.minus_down_to_zero(peaks).min(reclaimable), peak: peaks.plus(unpredicted) };
    let mut used = Amounts::default();
    for item in [node_item::SYSTEM, node_item::of_class(Some(PriorityClass::Prod)), node_item::of_class(None)] {
        used = used.plus(peak(&models.predict(item).ok_or(MissingModel(item))?));
    }
    let used = with_margin(used);
    let classes = Forecast {
        reclaimable: allocatable.minus_down_to_zero(used).min(requests.minus_down_to_zero(used)),
        peak: used,
    };
    let minimum =
        Forecast { reclaimable: pods.reclaimable.min(classes.reclaimable), peak: pods.peak.max(classes.peak) };
    Ok(ProdForecast { pods, classes, minimum })
}

/// What of a node can be allocated: what its annotation says that it was before it was amplified, else what its status says.
pub fn raw_allocatable(node: &Node) -> Amounts {
    let raw = node.annotations.as_ref().and_then(|annotations| RAW_ALLOCATABLE.get(annotations).ok()?);
    let list = raw.as_ref().unwrap_or(&node.allocatable);
    let amount = |resource: &str| list.get(resource).map_or(0, |amount| count(resource, amount));
    Amounts { milli_cpu: amount("cpu"), memory_bytes: amount("memory") }
}

fn peak(prediction: &Prediction) -> Amounts {
    Amounts { milli_cpu: prediction.milli_cpu.p95, memory_bytes: prediction.memory_bytes.p98 }
}

fn margin(amount: i64, percent: i64) -> i64 {
    let product = i128::from(amount) * (100 + i128::from(percent.max(-100))) / 100;
    i64::try_from(product).unwrap_or(i64::MAX)
}

impl Amounts {
    fn each(self, change: impl Fn(i64) -> i64) -> Self {
        Self { milli_cpu: change(self.milli_cpu), memory_bytes: change(self.memory_bytes) }
    }

    fn both(self, other: Self, join: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            milli_cpu: join(self.milli_cpu, other.milli_cpu),
            memory_bytes: join(self.memory_bytes, other.memory_bytes),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.both(other, i64::saturating_add)
    }

    fn minus_down_to_zero(self, other: Self) -> Self {
        self.both(other, |one, other| one.saturating_sub(other).max(0))
    }

    fn min(self, other: Self) -> Self {
        self.both(other, i64::min)
    }

    fn max(self, other: Self) -> Self {
        self.both(other, i64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Measure, Store, Subject,
        collect::tree::{at as moment, plain_pods as pods},
        predict::models::ModelSettings,
    };

    const AT: &str = "2026-03-01T12:00:00Z";
    const MIB: f64 = 1_048_576.0;
    const EIGHT_CPUS: Amounts = Amounts { milli_cpu: 8000, memory_bytes: 16 << 30 };

    /// A pod with its usage in CPUs and MiB.
    type Usage = (&'static str, f64, f64);

    /// The models of pods and of the node, whose usage is in CPUs and MiB too.
    fn models(pods: &[Arc<Pod>], usage: &[Usage], node: (f64, f64)) -> Models {
        let mut store = Store::default();
        let mut append = |subject, (cpu, mib): (f64, f64)| {
            store.append(subject, Measure::Cpu, moment(30), cpu);
            store.append(subject, Measure::Memory, moment(30), mib * MIB);
        };
        append(Subject::Node, node);
        for (pod, cpu, mib) in usage {
            append(Subject::Pod(pod), (*cpu, *mib));
        }
        let mut models = Models::new(ModelSettings::default());
        models.train(&store, pods, moment(60), AT.parse().unwrap());
        models
    }

    /// The pods of the recorded cases.
    fn recorded() -> (Vec<Arc<Pod>>, [Usage; 4]) {
        let pods = pods(&[
            r#"lsr-1 LSR Guaranteed {"requests":{"cpu":"2","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}}"#,
            r#"ls-1 LS Burstable {"requests":{"cpu":"1","memory":"1Gi"}}"#,
            "be-1 BE BestEffort {}",
            "none-1 - Burstable {}",
        ]);
        (pods, [("lsr-1", 1.0, 1024.0), ("ls-1", 0.5, 512.0), ("be-1", 0.75, 256.0), ("none-1", 0.25, 128.0)])
    }

    fn settings(safety_margin_percent: i64) -> ForecastSettings {
        ForecastSettings { safety_margin_percent, cold_start: Duration::from_secs(1) }
    }

    #[test]
    fn forecasts_are_those_of_the_recorded_cases() {
        let (pods, usage) = recorded();
        // nodemetric-prediction: mid-1 and none-2 use 0.3 CPUs and 164 MiB of the node besides.
        let node = (4.0 - 0.3, 6144.0 - 164.0);
        let with = |margin, node| {
            let models = models(&pods, &usage, node);
            forecast_prod(&models, &pods, EIGHT_CPUS, &settings(margin), AT.parse().unwrap()).unwrap()
        };
        let plain = with(10, node);
        assert_eq!(plain.minimum.peak.memory_bytes, 6_765_203_767);
        assert_eq!(with(50, node).minimum.peak.memory_bytes, 9_225_277_864);
        assert_eq!(plain.minimum.reclaimable, Amounts::default());
        // metrics-prediction: the predictor of pods.
        assert_eq!(plain.pods.peak, Amounts { milli_cpu: 2032, memory_bytes: 1_977_549_837 });
        assert_eq!(plain.pods.reclaimable, Amounts { milli_cpu: 1270, memory_bytes: 452_562_779 });
        // nodemetric-percentiles, first training: pods use more than the node.
        let full = with(10, (4.0, 1024.0));
        assert_eq!(full.classes.peak.memory_bytes, (2 << 30) - 199_368_803);
        assert_eq!(full.minimum.reclaimable.memory_bytes, 199_368_803);
        assert_eq!(full.minimum.peak.memory_bytes, 1_977_549_837);
    }

    #[test]
    fn young_pods_count_with_their_requests_and_ended_ones_not_at_all() {
        let (mut pods, usage) = recorded();
        let models = models(&pods, &usage, (4.0, 6144.0));
        let at: Timestamp = AT.parse().unwrap();
        let change = |pod: &mut Arc<Pod>, change: &dyn Fn(&mut Pod)| change(Arc::make_mut(pod));
        let forecast = |pods: &[Arc<Pod>]| forecast_prod(&models, pods, EIGHT_CPUS, &settings(0), at).unwrap();
        let before = forecast(&pods);
        change(&mut pods[1], &|pod| pod.created = Some(at));
        let young = forecast(&pods);
        assert_eq!(young.classes, before.classes, "classes know no cold start");
        let peak = models.predict("ls-1").unwrap().milli_cpu.p95;
        assert_eq!(young.pods.peak.milli_cpu, before.pods.peak.milli_cpu - peak + 1000);
        assert_eq!(young.pods.reclaimable.milli_cpu, before.pods.reclaimable.milli_cpu - (1000 - peak));
        change(&mut pods[1], &|pod| pod.created = None);
        change(&mut pods[1], &|pod| pod.is_terminating = true);
        let ended = forecast(&pods);
        assert_eq!(ended.pods.peak.milli_cpu, before.pods.peak.milli_cpu - peak);
        change(&mut pods[1], &|pod| pod.is_terminating = false);
        change(&mut pods[1], &|pod| pod.uid = "without-model".into());
        let unknown = forecast(&pods);
        assert_eq!(unknown.pods.peak, young.pods.peak);
        let twice: Vec<_> = pods.iter().chain(&pods).cloned().collect();
        assert_eq!(forecast(&twice), unknown, "a pod counts once");
    }

    #[test]
    fn without_the_model_of_the_system_there_is_no_forecast() {
        let models = Models::new(ModelSettings::default());
        let forecast = forecast_prod(&models, &[], EIGHT_CPUS, &settings(10), AT.parse().unwrap());
        assert_eq!(forecast, Err(MissingModel("__node-sys__")));
    }

    #[test]
    fn what_was_allocatable_before_amplification_counts() {
        let mut node =
            Node { allocatable: serde_json::from_str(r#"{"cpu":"8","memory":"16Gi"}"#).unwrap(), ..Node::default() };
        assert_eq!(raw_allocatable(&node), EIGHT_CPUS);
        for (text, amounts) in [
            (r#"{"cpu":"6","memory":"12Gi"}"#, Amounts { milli_cpu: 6000, memory_bytes: 12 << 30 }),
            ("much", EIGHT_CPUS),
        ] {
            node.annotations = Some([(RAW_ALLOCATABLE.name().to_owned(), text.to_owned())].into());
            assert_eq!(raw_allocatable(&node), amounts, "{text}");
        }
    }
}
