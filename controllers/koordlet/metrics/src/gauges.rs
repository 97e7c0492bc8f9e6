//! Values of gauges that follow from samples and predictions, as data.

use std::{borrow::Cow, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_types::node_slo::HostApplicationSpec;

use crate::{
    collect::{PressureReading, ResctrlReading},
    predict::{Amounts, ProdForecast},
    store::{Measure, Store, Subject},
};

/// A value of a gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    /// The name without the prefix `koordlet_`.
    pub name: &'static str,
    /// The labels besides `node`, which all gauges have.
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    pub value: f64,
}

impl Gauge {
    pub fn new(name: &'static str, labels: Vec<(&'static str, Cow<'static, str>)>, value: f64) -> Self {
        Self { name, labels, value }
    }
}

/// What the node uses: `node_used_cpu_cores` and `node_used_memory_bytes`, of samples that are not older than `within`.
pub fn node_usage_gauges(store: &Store, now: Moment, within: Duration) -> Vec<Gauge> {
    let measures = [("node_used_cpu_cores", Measure::Cpu), ("node_used_memory_bytes", Measure::Memory)];
    let last = |measure| store.last(Subject::Node, measure, now, within).map(|sample| sample.value);
    measures.into_iter().filter_map(|(name, measure)| Some(Gauge::new(name, Vec::new(), last(measure)?))).collect()
}

/// What applications outside of pods use: `host_application_resource_usage`.
pub fn host_application_gauges(
    store: &Store,
    applications: &[HostApplicationSpec],
    now: Moment,
    within: Duration,
) -> Vec<Gauge> {
    let gauges = applications.iter().flat_map(|application| {
        [("cpu", Measure::Cpu), ("memory", Measure::Memory)].map(|(resource, measure)| {
            let sample = store.last(Subject::HostApplication(&application.name), measure, now, within)?;
            let qos = application.qos.as_ref().map(|qos| qos.as_str().to_owned()).unwrap_or_default();
            let labels = vec![
                ("host_application_name", application.name.clone().into()),
                ("resource", resource.into()),
                ("priority_class", application.priority.clone().into()),
                ("qos", qos.into()),
            ];
            Some(Gauge::new("host_application_resource_usage", labels, sample.value))
        })
    });
    gauges.flatten().collect()
}

/// Cycles and instructions of containers: `container_cpi`, of counts that are not older than `within`.
pub fn cycle_gauges(store: &Store, pods: &[Arc<Pod>], now: Moment, within: Duration) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for (pod, container) in pods.iter().flat_map(|pod| pod.regular_containers().map(move |container| (pod, container)))
    {
        let Some(id) = container.id.as_ref().map(ToString::to_string) else { continue };
        for (field, measure) in [("cycles", Measure::Cycles), ("instructions", Measure::Instructions)] {
            let Some(sample) = store.last(Subject::Container(&id), measure, now, within) else { continue };
            let mut labels = pod_labels(pod);
            labels.extend(container_labels(&id, &container.name));
            labels.push(("cpi_field", field.into()));
            gauges.push(Gauge::new("container_cpi", labels, sample.value));
        }
    }
    gauges
}

/// Pressure in percent: `container_psi` and `pod_psi`, of ten seconds, one minute and five minutes. Kernels without `full` pressure of CPUs have no series of
/// it, and say so at the others of CPUs.
pub fn pressure_gauges<'a>(readings: impl IntoIterator<Item = PressureReading<'a>>) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for reading in readings {
        let name = if reading.container.is_some() { "container_psi" } else { "pod_psi" };
        let mut common = pod_labels(reading.pod);
        if let Some((id, container)) = reading.container {
            common.extend(container_labels(id, container));
        }
        for (resource, pressure) in ["cpu", "mem", "io"].into_iter().zip(reading.of) {
            let Some(pressure) = pressure else { continue };
            let is_full_known = pressure.full.is_some();
            for (degree, stalls) in [("some", Some(pressure.some)), ("full", pressure.full)] {
                let Some(stalls) = stalls else { continue };
                let averages = [
                    ("avg10", stalls.avg10_percent),
                    ("avg60", stalls.avg60_percent),
                    ("avg300", stalls.avg300_percent),
                ];
                for (precision, percent) in averages {
                    let mut labels = common.clone();
                    labels.extend([
                        ("cpu_full_supported", if is_full_known { "true" } else { "false" }.into()),
                        ("psi_resource_type", resource.into()),
                        ("psi_precision", precision.into()),
                        ("psi_degree", degree.into()),
                    ]);
                    gauges.push(Gauge::new(name, labels, percent));
                }
            }
        }
    }
    gauges
}

/// L3 cache and memory bandwidth of QoS classes, in bytes: `resctrl_llc_occupancy` and `resctrl_memory_bandwidth`.
pub fn resctrl_gauges(readings: &[ResctrlReading]) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for reading in readings {
        let common = vec![("cache_id", reading.cache.to_string().into()), ("qos", reading.group.into())];
        if let Some(bytes) = reading.occupancy_bytes {
            gauges.push(Gauge::new("resctrl_llc_occupancy", common.clone(), bytes as f64));
        }
        for (kind, bytes) in [("mbm_local_bytes", reading.local_bytes), ("mbm_total_bytes", reading.total_bytes)] {
            let Some(bytes) = bytes else { continue };
            let labels = common.iter().cloned().chain([("mb_type", kind.into())]).collect();
            gauges.push(Gauge::new("resctrl_memory_bandwidth", labels, bytes as f64));
        }
    }
    gauges
}

/// What is forecast of prod pods: `node_predicted_resource_reclaimable` and `node_predicted_resource_peak` of each predictor, and what of it is reported:
/// `node_priority_resource_reclaimable`, with `node_resource_priority_reclaimable_status` 0, or 1 where there is no forecast.
pub fn forecast_gauges(forecast: Option<&ProdForecast>) -> Vec<Gauge> {
    let priority = || ("priority", Cow::Borrowed("koord-prod"));
    let status = if forecast.is_some() { 0.0 } else { 1.0 };
    let mut gauges = vec![Gauge::new("node_resource_priority_reclaimable_status", vec![priority()], status)];
    let Some(ProdForecast { pods, classes, minimum }) = forecast else { return gauges };
    let mut amounts = |name, labels: Vec<(&'static str, Cow<'static, str>)>, amounts: Amounts| {
        let cpu = amounts.milli_cpu as f64 / 1000.0;
        for (resource, unit, value) in [("cpu", "core", cpu), ("memory", "byte", amounts.memory_bytes as f64)] {
            let labels = labels.iter().cloned().chain([("resource", resource.into()), ("unit", unit.into())]);
            gauges.push(Gauge::new(name, labels.collect(), value));
        }
    };
    let predictors =
        [("podReclaimablePredictor", pods), ("priorityReclaimablePredictor", classes), ("minPredictor", minimum)];
    for (predictor, forecast) in predictors {
        let labels = vec![("predictor", Cow::Borrowed(predictor))];
        amounts("node_predicted_resource_reclaimable", labels.clone(), forecast.reclaimable);
        amounts("node_predicted_resource_peak", labels, forecast.peak);
    }
    amounts("node_priority_resource_reclaimable", vec![priority()], minimum.reclaimable);
    gauges
}

fn pod_labels(pod: &Pod) -> Vec<(&'static str, Cow<'static, str>)> {
    vec![
        ("pod_uid", pod.uid.to_string().into()),
        ("pod_name", pod.name.to_string().into()),
        ("pod_namespace", pod.namespace.to_string().into()),
    ]
}

fn container_labels(id: &str, name: &str) -> [(&'static str, Cow<'static, str>); 2] {
    [("container_id", id.to_owned().into()), ("container_name", name.to_owned().into())]
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{Pressure, PressureResource};

    use super::*;
    use crate::{
        collect::tree::{at, plain_pods},
        predict::Forecast,
    };

    const WITHIN: Duration = Duration::from_secs(2);

    fn texts(gauges: &[Gauge]) -> Vec<String> {
        let text = |gauge: &Gauge| {
            let labels: Vec<String> = gauge.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{}{{{}}} {}", gauge.name, labels.join(","), gauge.value)
        };
        gauges.iter().map(text).collect()
    }

    #[test]
    fn gauges_have_the_names_and_labels_of_the_recorded_ones() {
        let pods = plain_pods(&["a LS Burstable {}"]);
        let mut store = Store::default();
        store.append(Subject::Node, Measure::Cpu, at(1), 3.5);
        store.append(Subject::Node, Measure::Memory, at(1), 1024.0);
        store.append(Subject::Container("containerd://a"), Measure::Cycles, at(1), 7.0);
        store.append(Subject::HostApplication("app"), Measure::Cpu, at(1), 0.5);
        assert_eq!(
            texts(&node_usage_gauges(&store, at(2), WITHIN)),
            ["node_used_cpu_cores{} 3.5", "node_used_memory_bytes{} 1024"]
        );
        assert!(node_usage_gauges(&store, at(4), WITHIN).is_empty(), "too old");
        assert_eq!(
            texts(&cycle_gauges(&store, &pods, at(2), WITHIN)),
            [
                "container_cpi{pod_uid=a,pod_name=a,pod_namespace=shop,container_id=containerd://a,container_name=main,cpi_field=cycles} 7"
            ]
        );
        let app = serde_json::from_str(r#"{"name":"app","qos":"LS","priority":"koord-prod"}"#).unwrap();
        assert_eq!(
            texts(&host_application_gauges(&store, &[app], at(2), WITHIN)),
            [
                "host_application_resource_usage{host_application_name=app,resource=cpu,priority_class=koord-prod,qos=LS} 0.5"
            ]
        );
        let reading =
            ResctrlReading { group: "LS", cache: 1, occupancy_bytes: Some(5), local_bytes: None, total_bytes: Some(6) };
        assert_eq!(
            texts(&resctrl_gauges(&[reading])),
            [
                "resctrl_llc_occupancy{cache_id=1,qos=LS} 5",
                "resctrl_memory_bandwidth{cache_id=1,qos=LS,mb_type=mbm_total_bytes} 6"
            ]
        );
    }

    #[test]
    fn pressure_has_eighteen_gauges_for_each_pod_and_container() {
        let pods = plain_pods(&["a LS Burstable {}"]);
        let text =
            b"some avg10=1.50 avg60=0.50 avg300=0.25 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        let pressure = Some(Pressure::parse(PressureResource::Memory, text).unwrap());
        let (id, name) = ("containerd://a".into(), "main".into());
        let of = [pressure; 3];
        let readings =
            [None, Some((&id, &name))].map(|container| PressureReading { pod: &pods[0], container, of: &of });
        let gauges = pressure_gauges(readings);
        assert_eq!(gauges.len(), 36);
        assert_eq!(
            texts(&gauges)[0],
            "pod_psi{pod_uid=a,pod_name=a,pod_namespace=shop,cpu_full_supported=true,psi_resource_type=cpu,psi_precision=avg10,psi_degree=some} 1.5"
        );
        assert_eq!(gauges.iter().filter(|gauge| gauge.name == "container_psi").count(), 18);
    }

    #[test]
    fn a_kernel_without_full_pressure_of_cpus_has_no_gauges_of_it() {
        let pods = plain_pods(&["a LS Burstable {}"]);
        let cpu = Pressure::parse(PressureResource::Cpu, b"some avg10=3.50 avg60=0.00 avg300=0.00 total=1\n").unwrap();
        let of = [Some(cpu), None, None];
        let gauges = texts(&pressure_gauges([PressureReading { pod: &pods[0], container: None, of: &of }]));
        assert_eq!(gauges.len(), 3);
        assert_eq!(
            gauges[0],
            "pod_psi{pod_uid=a,pod_name=a,pod_namespace=shop,cpu_full_supported=false,psi_resource_type=cpu,psi_precision=avg10,psi_degree=some} 3.5"
        );
    }

    #[test]
    fn a_forecast_has_gauges_by_predictor() {
        let amounts = |milli_cpu, memory_bytes| Amounts { milli_cpu, memory_bytes };
        let forecast = |cpu| Forecast { reclaimable: amounts(cpu, 1), peak: amounts(cpu + 500, 2) };
        let forecast = ProdForecast { pods: forecast(1270), classes: forecast(0), minimum: forecast(0) };
        let gauges = texts(&forecast_gauges(Some(&forecast)));
        assert_eq!(gauges.len(), 15);
        assert_eq!(gauges[0], "node_resource_priority_reclaimable_status{priority=koord-prod} 0");
        assert_eq!(
            gauges[1],
            "node_predicted_resource_reclaimable{predictor=podReclaimablePredictor,resource=cpu,unit=core} 1.27"
        );
        assert_eq!(gauges[14], "node_priority_resource_reclaimable{priority=koord-prod,resource=memory,unit=byte} 1");
        assert_eq!(texts(&forecast_gauges(None)), ["node_resource_priority_reclaimable_status{priority=koord-prod} 1"]);
    }
}
