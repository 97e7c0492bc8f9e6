//! What a node and its zones offer (§4.1).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    config::Config,
    entry,
    pods::{self, Class},
    quantity::{MILLI, ONE, cut, nano, up},
};
use crate::people::name_of;

const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// What goes when a node has no GPU that works.
const OF_GPUS: [&str; 8] = [
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-core",
    "huawei.com/npu-core",
    "huawei.com/npu-cpu",
    "huawei.com/npu-dvpp",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/gpu.shared",
];

/// Everything that the amounts of one node follow from.
pub(super) struct Sight<'a> {
    pub(super) config: &'a Config,
    pub(super) node: &'a Value,
    pub(super) pods: Vec<&'a Value>,
    pub(super) metric: &'a Value,
    pub(super) device: &'a Value,
    pub(super) topology: &'a Value,
    pub(super) now: Timestamp,
}

/// The whole node, or one of so many zones.
#[derive(Clone, Copy)]
enum Place {
    Node,
    Zone(usize, usize),
}

impl Sight<'_> {
    pub(super) fn check(&self) -> Result<(), String> {
        let status = &self.node["status"];
        if !status["capacity"].is_object() || !status["allocatable"].is_object() {
            return Ok(());
        }
        let (strategy, is_on) = self.config.strategy(self.node);
        let is_believable = is_on && self.is_believable(&strategy);
        self.check_mid(&strategy, is_believable)?;
        self.check_batch(&strategy, is_believable)?;
        if is_on {
            self.check_ratios()?;
            self.check_devices()
        } else {
            // QUIRK: the ratios of CPUs and the devices stay where colocation is off, the factors go.
            self.check_annotation("resource-amplification-ratio", None)
        }
    }

    fn is_believable(&self, strategy: &Value) -> bool {
        let status = &self.metric["status"];
        let updated = status["updateTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
        let minutes = strategy["degradeTimeMinutes"].as_i64().unwrap_or_default();
        let expires = updated.map(|updated| updated.as_second() + minutes * 60);
        expires.is_some_and(|expires| self.now.as_second() <= expires) && !status["nodeMetric"].is_null()
    }

    fn check_mid(&self, strategy: &Value, is_believable: bool) -> Result<(), String> {
        for resource in RESOURCES {
            let expected = is_believable.then(|| self.mid(strategy, resource));
            self.check_amount(
                &format!("kubernetes.io/mid-{resource}"),
                expected.map(|amount| count(resource, amount)),
            )?;
        }
        Ok(())
    }

    fn check_batch(&self, strategy: &Value, is_believable: bool) -> Result<(), String> {
        // As precise as it is written.
        let ratio = self.normalization().ok().and_then(|ratio| format!("{ratio:.2}").parse().ok()).unwrap_or(1.0);
        // In thousandths: zones are that exact.
        let amount = |resource: &str, place: Place| {
            let left = self.batch(strategy, resource, place);
            match resource {
                "cpu" if ratio > 1.0 => (((up(left, MILLI) * 1000) as f64) * ratio) as i128,
                "cpu" => up(left, MILLI) * 1000,
                _ => up(left, MILLI),
            }
        };
        let origin: Value = self
            .annotation("originExtendedAllocatable")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        for resource in RESOURCES {
            let name = format!("kubernetes.io/batch-{resource}");
            let whole = is_believable.then(|| up(amount(resource, Place::Node), 1000));
            let left = whole.map(|whole| (whole - self.taken_by_others(&name)).max(0));
            self.check_amount(&name, left)?;
            let stated = nano(&origin["resources"][&name]);
            if !self.node["metadata"]["annotations"].is_null() && stated != whole.unwrap_or_default() * ONE {
                return self.wrong(&format!("the origin of {name} is {origin} instead of {whole:?}"));
            }
        }
        let zones = self.zones();
        for (index, zone) in zones.iter().enumerate() {
            for resource in RESOURCES {
                let name = format!("kubernetes.io/batch-{resource}");
                let found = in_zone(zone, &name);
                // A zone that never had any does not get a zero.
                if !is_believable && found.is_null() {
                    continue;
                }
                let place = Place::Zone(index, zones.len());
                let expected = if is_believable { amount(resource, place) } else { 0 };
                // Smaller differences are never written.
                let share = strategy["resourceDiffThreshold"].as_f64().filter(|_| is_believable).unwrap_or_default();
                for field in ["capacity", "allocatable", "available"] {
                    let stated = nano(&found[field]);
                    if found[field].is_null() || (stated - expected * MILLI).abs() as f64 > stated as f64 * share {
                        return self
                            .wrong(&format!("{field} of {name} in zone {index} is {found} instead of {expected}m"));
                    }
                }
            }
        }
        Ok(())
    }

    /// What batch pods may use (§4.1.3).
    fn batch(&self, strategy: &Value, resource: &str, place: Place) -> i128 {
        let percent = |field: String| strategy[field].as_i64();
        let (short, policy) = match resource {
            "cpu" => ("CPU", &strategy["cpuCalculatePolicy"]),
            _ => ("Memory", &strategy["memoryCalculatePolicy"]),
        };
        let capacity = match place {
            Place::Node => nano(&self.node["status"]["capacity"][resource]),
            Place::Zone(index, _) => nano(&in_zone(self.zones()[index], resource)["allocatable"]),
        };
        let reclaimed = percent(format!("{resource}ReclaimThresholdPercent")).unwrap_or_default();
        let margin = cut(resource, capacity, (100 - reclaimed) as f64 / 100.0);
        let system = nano(&self.metric["status"]["nodeMetric"]["systemUsage"]["resources"][resource])
            + self.applications(resource, |class| matches!(class, Class::Prod | Class::Mid));
        let (reserved, system) = (share(self.reserved(resource), place), share(system, place));
        let (mut used, mut requested, mut larger) = (0, 0, 0);
        let mut reported = self.reported();
        for pod in self.pods.iter().filter(|pod| pods::is_active(pod)) {
            let key = format!("{}/{}", pod["metadata"]["namespace"].as_str().unwrap_or_default(), name_of(pod));
            let report = reported.remove(&key);
            if Class::of(pod).is_best_effort() {
                continue;
            }
            let request = pods::request(pod, resource);
            let usage = report.map(|report| nano(&report["podUsage"]["resources"][resource]));
            let here = |amount: i128| match place {
                Place::Node => amount,
                Place::Zone(index, count) => {
                    let given = pods::zones(pod, count);
                    if given.contains(&index) { part(amount, given.len()) } else { 0 }
                }
            };
            requested += here(request);
            let Some(usage) = usage else {
                used += here(request);
                larger += here(request);
                continue;
            };
            larger += here(usage.max(request));
            used += here(if pods::qos(pod) == "LSE" && resource == "cpu" { request } else { usage });
        }
        for report in reported.values() {
            if !Class::named(report["priority"].as_str().unwrap_or_default()).is_best_effort() {
                let usage = share(nano(&report["podUsage"]["resources"][resource]), place);
                used += usage;
                larger += usage;
            }
        }
        let taken = match (resource, policy.as_str()) {
            (_, Some("maxUsageRequest")) => system.max(reserved) + larger,
            ("memory", Some("request")) => reserved + requested,
            _ => system.max(reserved) + used,
        };
        let left = (capacity - margin - taken).max(0);
        match percent(format!("batch{short}ThresholdPercent")) {
            Some(percent) => left.min(cut(resource, capacity, percent as f64 / 100.0)),
            None => left,
        }
    }

    /// What mid pods may use (§4.1.4).
    fn mid(&self, strategy: &Value, resource: &str) -> i128 {
        let short = if resource == "cpu" { "CPU" } else { "Memory" };
        let of_capacity = |field: String| {
            let percent = strategy[field].as_i64().unwrap_or_default();
            cut(resource, nano(&self.node["status"]["capacity"][resource]), percent as f64 / 100.0)
        };
        let most = of_capacity(format!("mid{short}ThresholdPercent"));
        if strategy["midReclaimMode"] == "static" {
            return of_capacity(format!("midStatic{short}ReservedPercent")).min(most);
        }
        let status = &self.metric["status"];
        let capacity = nano(&self.node["status"]["capacity"][resource]);
        let usage = &status["nodeMetric"]["nodeUsage"]["resources"];
        let is_whole = RESOURCES.iter().all(|resource| !usage[resource].is_null());
        let unused = if is_whole { capacity - nano(&usage[resource]) } else { 0 };
        let reclaimable = nano(&status["prodReclaimableMetric"]["resource"]["resources"][resource]);
        let system = nano(&status["nodeMetric"]["systemUsage"]["resources"][resource])
            + self.applications(resource, |class| class == Class::Prod);
        let requested: i128 = self
            .pods
            .iter()
            .filter(|pod| pods::is_active(pod))
            .filter(|pod| !matches!(Class::of(pod), Class::Mid | Class::Batch | Class::Free))
            .map(|pod| pods::request(pod, resource))
            .sum();
        let unallocated = (capacity - self.reserved(resource).max(system) - requested).max(0);
        let percent = strategy["midUnallocatedPercent"].as_i64().unwrap_or_default();
        let base = reclaimable.min(unused).max(0);
        (base + cut(resource, unallocated, percent as f64 / 100.0)).min(most)
    }

    /// What is kept from pods: by the kubelet, or by the annotation, in which named CPUs go before an amount.
    fn reserved(&self, resource: &str) -> i128 {
        let status = &self.node["status"];
        let kept = nano(&status["capacity"][resource]) - nano(&status["allocatable"][resource]);
        let settings: Value =
            self.annotation("reservation").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let cpus = settings["reservedCPUs"].as_str().filter(|cpus| !cpus.is_empty() && resource == "cpu");
        let annotated = match cpus {
            Some(cpus) => cpus.split(',').map(range).sum::<i128>() * ONE,
            None => nano(&settings["resources"][resource]),
        };
        kept.max(annotated).max(0)
    }

    fn applications(&self, resource: &str, counts: impl Fn(Class) -> bool) -> i128 {
        let applications = self.metric["status"]["hostApplicationMetric"].as_array().into_iter().flatten();
        let counted = applications.filter(|of| counts(Class::named(of["priority"].as_str().unwrap_or_default())));
        counted.map(|of| nano(&of["usage"]["resources"][resource])).sum()
    }

    /// What koordlet says of pods, by `namespace/name`.
    fn reported(&self) -> BTreeMap<String, &Value> {
        let reports = self.metric["status"]["podsMetric"].as_array().into_iter().flatten();
        let key = |report: &Value| {
            let text = |field: &str| report[field].as_str().unwrap_or_default().to_owned();
            format!("{}/{}", text("namespace"), text("name"))
        };
        reports.map(|report| (key(report), report)).collect()
    }

    fn taken_by_others(&self, name: &str) -> i128 {
        let settings: Value = self
            .annotation("thirdPartyAllocations")
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let allocations = settings["allocations"].as_array().into_iter().flatten();
        let batch = allocations.filter(|of| of["priority"] == "koord-batch");
        up(batch.map(|of| nano(&of["resources"][name])).sum(), ONE)
    }

    /// The zones, unless none of them says what it has.
    fn zones(&self) -> Vec<&Value> {
        let zones: Vec<&Value> = self.topology["zones"].as_array().into_iter().flatten().collect();
        let says = |zone: &&Value| RESOURCES.iter().any(|resource| !in_zone(zone, resource).is_null());
        if zones.iter().any(says) { zones } else { Vec::new() }
    }

    /// The ratio of the node's CPUs (§4.1.5); an error where it cannot be computed.
    fn normalization(&self) -> Result<f64, ()> {
        let strategy = self.config.normalization(self.node);
        let label = entry(self.node, "labels", "node.koordinator.sh/cpu-normalization-enabled");
        let is_on = match label {
            Some(text) => text == "true",
            None => strategy["enable"] == true,
        };
        if !is_on {
            return Ok(1.0);
        }
        let text = entry(self.topology, "annotations", "node.koordinator.sh/cpu-basic-info").ok_or(())?;
        let cpu: Value = serde_json::from_str(text).map_err(drop)?;
        let model = &strategy["ratioModel"][cpu["cpuModel"].as_str().unwrap_or_default()];
        let field = match (cpu["hyperThreadEnabled"] == true, cpu["turboEnabled"] == true) {
            (true, true) => "hyperThreadTurboEnabledRatio",
            (true, false) => "hyperThreadEnabledRatio",
            (false, true) => "turboEnabledRatio",
            (false, false) => "baseRatio",
        };
        let ratio = model[field].as_f64().or(strategy["defaultRatio"].as_f64()).ok_or(())?;
        if (1.0..=5.0).contains(&ratio) { Ok(ratio) } else { Err(()) }
    }

    fn check_ratios(&self) -> Result<(), String> {
        if let Ok(ratio) = self.normalization() {
            self.check_annotation("cpu-normalization-ratio", Some(&format!("{ratio:.2}")))?;
        }
        let strategy = self.config.amplification(self.node);
        let mut ratios: BTreeMap<String, f64> = BTreeMap::new();
        if strategy["enable"] == true {
            let named = strategy["resourceAmplificationRatio"].as_object().into_iter().flatten();
            ratios.extend(named.filter_map(|(resource, ratio)| Some((resource.clone(), ratio.as_f64()?))));
        }
        let faster = self.annotation("cpu-normalization-ratio").and_then(|text| text.parse::<f64>().ok());
        let cpu = ratios.get("cpu").copied().filter(|ratio| *ratio > 0.0).unwrap_or(1.0) * faster.unwrap_or(1.0);
        if cpu > 1.0 {
            ratios.insert("cpu".to_owned(), cpu);
        }
        if ratios.values().any(|ratio| *ratio < 1.0) {
            return Ok(());
        }
        let texts: Vec<String> = ratios.iter().map(|(resource, ratio)| format!("\"{resource}\":{ratio:.2}")).collect();
        let expected = (!texts.is_empty()).then(|| format!("{{{}}}", texts.join(",")));
        self.check_annotation("resource-amplification-ratio", expected.as_deref())
    }

    /// What the node's devices make it have (§4.1.7).
    fn check_devices(&self) -> Result<(), String> {
        let devices = self.device["spec"]["devices"].as_array().into_iter().flatten();
        let (gpus, others): (Vec<_>, Vec<_>) =
            devices.filter(|device| device["health"] == true).partition(|device| device["type"] == "gpu");
        let rdma = others.iter().filter(|device| device["type"] == "rdma").count();
        self.check_amount("koordinator.sh/rdma", (rdma > 0).then_some(rdma as i128 * 100))?;
        if gpus.is_empty() {
            return OF_GPUS.iter().try_for_each(|name| self.check_amount(name, None));
        }
        let sum = |name: &str| -> Option<i128> {
            let amounts: Vec<&Value> =
                gpus.iter().map(|gpu| &gpu["resources"][name]).filter(|amount| !amount.is_null()).collect();
            (!amounts.is_empty()).then(|| up(amounts.into_iter().map(nano).sum(), ONE))
        };
        for name in &OF_GPUS[1..7] {
            if let Some(amount) = sum(name) {
                self.check_amount(name, Some(amount))?;
            }
        }
        let vendor = entry(self.device, "labels", "node.koordinator.sh/gpu-vendor").unwrap_or_default();
        if let (Some(cores), "" | "nvidia") = (sum("koordinator.sh/gpu-core"), vendor) {
            self.check_amount("koordinator.sh/gpu", Some(cores))?;
        }
        self.check_amount("koordinator.sh/gpu.shared", Some(gpus.len() as i128 * 100))?;
        for label in
            ["gpu-vendor", "gpu-model", "gpu-driver-version"].map(|label| format!("node.koordinator.sh/{label}"))
        {
            let expected = entry(self.device, "labels", &label);
            if expected.is_some() && entry(self.node, "labels", &label) != expected {
                return self.wrong(&format!("its label {label} is not the Device's {expected:?}"));
            }
        }
        Ok(())
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        entry(self.node, "annotations", &format!("node.koordinator.sh/{name}"))
    }

    fn check_annotation(&self, name: &str, expected: Option<&str>) -> Result<(), String> {
        match self.annotation(name) {
            found if found == expected => Ok(()),
            found => self.wrong(&format!("its annotation {name} is {found:?} instead of {expected:?}")),
        }
    }

    /// An amount stands in capacity and allocatable alike, or in neither.
    fn check_amount(&self, name: &str, expected: Option<i128>) -> Result<(), String> {
        for field in ["capacity", "allocatable"] {
            let found = &self.node["status"][field][name];
            let is_right = match expected {
                None => found.is_null(),
                Some(expected) => !found.is_null() && nano(found) == expected * ONE,
            };
            if !is_right {
                return self.wrong(&format!("its {field} of {name} is {found} instead of {expected:?}"));
            }
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> Result<(), String> {
        Err(format!("node {}: {what}", name_of(self.node)))
    }
}

/// What a zone says of a resource.
fn in_zone<'a>(zone: &'a Value, name: &str) -> &'a Value {
    let mut resources = zone["resources"].as_array().into_iter().flatten();
    resources.find(|resource| resource["name"] == name).unwrap_or(&Value::Null)
}

/// The number by which what batch and mid pods use is counted: thousandths of cores, or bytes.
fn count(resource: &str, amount: i128) -> i128 {
    up(amount, if resource == "cpu" { MILLI } else { ONE })
}

/// What a place has of what is spread over the node.
fn share(amount: i128, place: Place) -> i128 {
    match place {
        Place::Node => amount,
        Place::Zone(_, count) => part(amount, count),
    }
}

/// One of so many equal parts, up to the next thousandth.
fn part(amount: i128, parts: usize) -> i128 {
    up(amount, MILLI * parts as i128) * MILLI
}

/// How many CPUs `3` or `0-3` are.
fn range(text: &str) -> i128 {
    let number = |text: &str| text.trim().parse::<i128>().unwrap_or_default();
    text.split_once('-').map_or(1, |(first, last)| number(last) - number(first) + 1)
}
