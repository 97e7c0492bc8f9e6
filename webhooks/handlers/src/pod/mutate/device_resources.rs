//! Requests for GPUs are completed: whole GPUs become shares, and shares say of how many GPUs they are.

use koord_resource::{Quantity, quantity::Format};
use koord_types::resource_names::{GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED};

use crate::{pod::Parts, resources::Resources};

/// Completes the resources of every container that asks for a GPU.
pub(super) fn complete(pod: &mut Parts<'_>) {
    for container in &mut pod.spec.containers {
        let Resources { requests, limits } = &mut container.resources;
        let asks = |name: &&str| requests.contains(name) || limits.contains(name);
        if ![GPU, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, GPU_SHARED].iter().any(asks) {
            continue;
        }
        let shared_given = requests.contains(GPU_SHARED);
        if let Some(gpu) = requests.get(GPU).map(|gpu| Quantity::new(gpu.value(), Format::DecimalSI)) {
            for list in [&mut *requests, &mut *limits] {
                list.remove(GPU);
                list.set(GPU_CORE, gpu.clone());
                list.set(GPU_MEMORY_RATIO, gpu.clone());
            }
        }
        if !shared_given {
            let share = requests.get(GPU_MEMORY_RATIO).or_else(|| requests.get(GPU_CORE)).map_or(1, gpus);
            for list in [requests, limits] {
                list.set(GPU_SHARED, Quantity::new(share, Format::DecimalSI));
            }
        }
    }
}

/// Of how many GPUs a percentage is: whole multiples of 100 are of several, anything else is of one.
fn gpus(percent: &Quantity) -> i64 {
    match percent.value() {
        percent if percent > 100 && percent % 100 == 0 => percent / 100,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Pod;

    fn completed(resources: &str) -> (String, String) {
        let text = format!(r#"{{"spec":{{"containers":[{{"name":"c","resources":{resources}}}]}}}}"#);
        let mut pod = Pod::read_text(&text).unwrap();
        complete(&mut pod);
        let Resources { requests, limits } = &pod.spec.containers[0].resources;
        (serde_json::to_string(requests).unwrap(), serde_json::to_string(limits).unwrap())
    }

    #[test]
    fn limits_without_requests_are_completed_where_the_original_breaks_off() {
        let share = r#"{"koordinator.sh/gpu.shared":"1"}"#;
        let with_gpu = r#"{"koordinator.sh/gpu":"100","koordinator.sh/gpu.shared":"1"}"#;
        assert_eq!(
            completed(r#"{"limits":{"koordinator.sh/gpu":"100"}}"#),
            (share.to_owned(), with_gpu.to_owned()),
            "the API server makes requests of limits before any webhook is asked"
        );
    }

    #[test]
    fn an_amount_of_gpus_becomes_a_whole_number() {
        for (gpu, whole) in [("1500m", "2"), ("1Ki", "1024"), ("1e2", "100"), ("1k", "1k")] {
            let amount = format!(r#"{{"koordinator.sh/gpu":"{gpu}"}}"#);
            let both = format!(
                r#"{{"koordinator.sh/gpu-core":"{whole}","koordinator.sh/gpu-memory-ratio":"{whole}","koordinator.sh/gpu.shared":"{}"}}"#,
                if gpu == "1k" { "10" } else { "1" }
            );
            let resources = format!(r#"{{"requests":{amount},"limits":{amount}}}"#);
            assert_eq!(completed(&resources), (both.clone(), both), "{gpu}");
        }
    }

    #[test]
    fn requests_without_limits_are_completed_where_the_original_breaks_off() {
        let both = r#"{"koordinator.sh/gpu-core":"200","koordinator.sh/gpu-memory-ratio":"200","koordinator.sh/gpu.shared":"2"}"#;
        assert_eq!(completed(r#"{"requests":{"koordinator.sh/gpu":"200"}}"#), (both.to_owned(), both.to_owned()));
    }
}
