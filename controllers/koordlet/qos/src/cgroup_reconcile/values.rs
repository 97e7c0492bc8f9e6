//! The values of memory QoS, as functions of requests, limits and settings.

use koord_koordlet_system::{Resource, Value};
use koord_types::node_slo::MemoryQosCfg;

/// Memory that is not reclaimed, in bytes; `None` where it is not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Protection {
    /// Never.
    pub min: Option<i64>,
    /// Only when nothing else is left.
    pub low: Option<i64>,
}

/// Limits of memory are whole pages.
const PAGE_BYTES: i64 = 4096;

impl Protection {
    /// The sum of no pods.
    pub(super) const NONE: Self = Self { min: Some(0), low: Some(0) };

    /// Adds that of a pod to the sum of its class.
    pub(super) fn add(&mut self, of_pod: &Self) {
        for (sum, amount) in [(&mut self.min, of_pod.min), (&mut self.low, of_pod.low)] {
            *sum = Some(sum.unwrap_or_default().saturating_add(amount.unwrap_or_default()));
        }
    }
}

/// ⌊request × percent⌋ each; what is reclaimed last is at least what is never reclaimed.
pub(super) fn protection(request: i64, memory: &MemoryQosCfg) -> Protection {
    let share = |percent: Option<i64>| percent.map(|percent| percent_of(request.max(0), percent.max(0)));
    let (min, low) = (share(memory.min_limit_percent), share(memory.low_limit_percent));
    let low = low.map(|low| if low > 0 { low.max(min.unwrap_or_default()) } else { low });
    Protection { min, low }
}

/// Use from which allocations are slowed down: request + (ceiling − request) × percent in whole pages, and at least what is protected. 0 % is no limit.
pub(super) fn throttling(request: i64, ceiling: i64, min: Option<i64>, memory: &MemoryQosCfg) -> Option<Value> {
    let percent = memory.throttling_percent?;
    if percent == 0 {
        return Some(Value::Unlimited);
    }
    let room = ceiling.saturating_sub(request);
    let high = request.saturating_add(percent_of(room, percent));
    let high = high.div_euclid(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    let high = if high > 0 { high.max(min.unwrap_or_default()) } else { high };
    Some(Value::Amount(high.max(0)))
}

/// The limit of the page cache of a pod: its size, at most the pod's limit, or a share of that limit.
pub(super) fn page_cache(limit: i64, memory: &MemoryQosCfg) -> Vec<(Resource, Value)> {
    let size = match (memory.page_cache_limit_size, memory.page_cache_limit_percent) {
        (Some(size), _) => Some(if limit > 0 { size.min(limit) } else { size }),
        (None, Some(percent)) if limit > 0 => Some(percent_of(limit, percent)),
        _ => None,
    };
    let switch = |is_on: bool| Value::Amount(i64::from(is_on));
    let is_on = memory.page_cache_enable.or(size.map(|size| size > 0));
    let mut values = Vec::new();
    values.extend(is_on.map(|is_on| (Resource::PageCacheLimitEnable, switch(is_on))));
    if let Some(size) = size {
        values.push((Resource::PageCacheLimitSize, Value::Amount(size.max(0))));
        if size > 0 {
            let is_sync = memory.page_cache_reclaim_sync.unwrap_or_default();
            values.push((Resource::PageCacheLimitSync, switch(is_sync)));
        }
    }
    values
}

fn percent_of(amount: i64, percent: i64) -> i64 {
    i64::try_from(i128::from(amount) * i128::from(percent) / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GI: i64 = 1 << 30;

    fn memory(min: i64, low: i64, throttling: i64) -> MemoryQosCfg {
        MemoryQosCfg {
            min_limit_percent: Some(min),
            low_limit_percent: Some(low),
            throttling_percent: Some(throttling),
            ..MemoryQosCfg::default()
        }
    }

    #[test]
    fn protection_is_a_share_of_the_request() {
        for (request, min, low, expected) in [
            (GI, 50, 0, (536_870_912, 0)),
            (GI, 90, 90, (966_367_641, 966_367_641)),
            (GI, 40, 60, (429_496_729, 644_245_094)),
            (GI, 10, 20, (107_374_182, 214_748_364)),
            (GI, 60, 40, (644_245_094, 644_245_094)),
            (0, 50, 50, (0, 0)),
            (-5, 50, 50, (0, 0)),
        ] {
            let Protection { min, low } = protection(request, &memory(min, low, 0));
            assert_eq!((min, low), (Some(expected.0), Some(expected.1)));
        }
        assert_eq!(protection(GI, &MemoryQosCfg::default()), Protection::default());
    }

    #[test]
    fn throttling_begins_between_request_and_limit() {
        for (request, ceiling, min, percent, expected) in [
            (GI, 2 * GI, 0, 70, Value::Amount(1_825_357_824)),
            (2 * GI, 2 * GI, 0, 80, Value::Amount(2 * GI)),
            (GI, 16 * GI, 0, 50, Value::Amount(9_126_805_504)),
            (GI / 2, 16 * GI, 0, 50, Value::Amount(8_858_370_048)),
            (2 * GI, 2 * GI, 2 * GI, 1, Value::Amount(2_147_483_648)),
            (GI, 2 * GI, 0, 60, Value::Amount(1_717_985_280)),
            (0, 100 * PAGE_BYTES, 60 * PAGE_BYTES, 50, Value::Amount(60 * PAGE_BYTES)),
            (GI, 2 * GI, 0, 0, Value::Unlimited),
        ] {
            assert_eq!(throttling(request, ceiling, Some(min), &memory(0, 0, percent)), Some(expected), "{percent}");
        }
        assert_eq!(throttling(GI, GI, None, &MemoryQosCfg::default()), None);
    }

    #[test]
    fn the_page_cache_is_limited_by_size_or_share() {
        use Resource::{PageCacheLimitEnable as Enable, PageCacheLimitSize as Size, PageCacheLimitSync as Sync};
        let amounts = |limit, size, percent, enable, sync| {
            let memory = MemoryQosCfg {
                page_cache_limit_size: size,
                page_cache_limit_percent: percent,
                page_cache_enable: enable,
                page_cache_reclaim_sync: sync,
                ..MemoryQosCfg::default()
            };
            let values = page_cache(limit, &memory).into_iter();
            values.map(|(resource, value)| (resource, value.amount().unwrap())).collect::<Vec<_>>()
        };
        for (limit, size, percent, enable, sync, expected) in [
            (2 * GI, Some(4 * GI), None, None, None, vec![(Enable, 1), (Size, 2 * GI), (Sync, 0)]),
            (2 * GI, None, Some(50), None, Some(true), vec![(Enable, 1), (Size, GI), (Sync, 1)]),
            (0, None, Some(50), None, None, vec![]),
            (0, Some(GI), None, None, None, vec![(Enable, 1), (Size, GI), (Sync, 0)]),
            (2 * GI, Some(0), None, None, None, vec![(Enable, 0), (Size, 0)]),
            (2 * GI, Some(0), None, Some(true), None, vec![(Enable, 1), (Size, 0)]),
            (2 * GI, Some(GI), None, Some(false), None, vec![(Enable, 0), (Size, GI), (Sync, 0)]),
            (2 * GI, None, None, None, None, vec![]),
        ] {
            assert_eq!(amounts(limit, size, percent, enable, sync), expected);
        }
    }
}
