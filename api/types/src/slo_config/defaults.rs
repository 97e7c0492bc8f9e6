//! What holds where nothing is configured.

use koord_resource::{Duration, IntOrString, Quantity};

use super::colocation::{CalculatePolicy, ColocationStrategy, MetricAggregatePolicy};
use crate::{
    extensions::Extensions,
    node_metric::NodeMemoryCollectPolicy,
    node_slo::{
        BlkIoQosCfg, CpuBurstPolicy, CpuBurstStrategy, CpuEvictPolicy, CpuPolicy, CpuQosCfg, CpuSuppressPolicy,
        MemoryQosCfg, NetQosPolicy, NetworkQosCfg, NodeSLOSpec, ResctrlQosCfg, ResourceQos, ResourceQosPolicies,
        ResourceQosStrategy, ResourceThresholdStrategy, SystemStrategy,
    },
};

/// The defaults of `colocation-config`.
pub fn colocation_strategy() -> ColocationStrategy {
    ColocationStrategy {
        enable: Some(false),
        metric_aggregate_duration_seconds: Some(300),
        metric_report_interval_seconds: Some(60),
        metric_aggregate_policy: Some(MetricAggregatePolicy {
            durations: [300, 600, 1800].map(Duration::from_secs).to_vec(),
        }),
        metric_memory_collect_policy: Some(NodeMemoryCollectPolicy::UsageWithoutPageCache),
        cpu_reclaim_threshold_percent: Some(60),
        cpu_calculate_policy: Some(CalculatePolicy::Usage),
        memory_reclaim_threshold_percent: Some(65),
        memory_calculate_policy: Some(CalculatePolicy::Usage),
        degrade_time_minutes: Some(15),
        update_time_threshold_seconds: Some(300),
        resource_diff_threshold: Some(0.1),
        mid_reclaim_mode: None,
        mid_cpu_threshold_percent: Some(100),
        mid_memory_threshold_percent: Some(100),
        mid_unallocated_percent: Some(0),
        mid_static_cpu_reserved_percent: Some(0),
        mid_static_memory_reserved_percent: Some(0),
        batch_cpu_threshold_percent: None,
        batch_memory_threshold_percent: None,
        extensions: serde_json::Map::new(),
    }
}

/// The defaults of `resource-threshold-config`.
pub fn resource_threshold_strategy() -> ResourceThresholdStrategy {
    ResourceThresholdStrategy {
        enable: Some(false),
        cpu_suppress_threshold_percent: Some(65),
        cpu_suppress_policy: Some(CpuSuppressPolicy::Cpuset),
        memory_evict_threshold_percent: Some(70),
        cpu_evict_policy: Some(CpuEvictPolicy::EvictByRealLimit),
        ..ResourceThresholdStrategy::default()
    }
}

/// The defaults of `cpu-burst-config`.
pub fn cpu_burst_strategy() -> CpuBurstStrategy {
    CpuBurstStrategy {
        policy: Some(CpuBurstPolicy::None),
        cpu_burst_percent: Some(1000),
        cfs_quota_burst_percent: Some(300),
        cfs_quota_burst_period_seconds: Some(-1),
        share_pool_threshold_percent: Some(50),
    }
}

/// The defaults of `system-config`.
pub fn system_strategy() -> SystemStrategy {
    SystemStrategy { total_network_bandwidth: Some(Quantity::ZERO), ..SystemStrategy::default() }
}

/// What the manager writes where nothing is configured. `resource-qos-config` has no defaults of its own here: koordlet
/// fills in [`full_resource_qos_strategy`].
pub fn node_slo_spec() -> NodeSLOSpec {
    NodeSLOSpec {
        resource_used_threshold_with_be: Some(resource_threshold_strategy()),
        resource_qos_strategy: Some(ResourceQosStrategy::default()),
        cpu_burst_strategy: Some(cpu_burst_strategy()),
        system_strategy: Some(system_strategy()),
        extensions: Some(Extensions::empty()),
        host_applications: Vec::new(),
    }
}

/// What koordlet assumes of each QoS class where a NodeSLO says nothing.
pub fn full_resource_qos_strategy() -> ResourceQosStrategy {
    ResourceQosStrategy {
        policies: Some(ResourceQosPolicies {
            cpu_policy: Some(CpuPolicy::GroupIdentity),
            net_qos_policy: Some(NetQosPolicy::Tc),
        }),
        lsr_class: Some(class(cpu(2, true), resctrl(100), memory(95, 20, -25))),
        ls_class: Some(class(cpu(2, true), resctrl(100), memory(95, 20, -25))),
        be_class: Some(class(cpu(-1, false), resctrl(30), memory(95, 20, 50))),
        system_class: Some(class(cpu(0, false), resctrl(100), memory(0, 50, 0))),
        cgroup_root: Some(ResourceQos { blkio_qos: Some(disabled_blkio()), ..ResourceQos::default() }),
    }
}

/// What undoes everything: the state of a node without koordlet.
pub fn none_resource_qos() -> ResourceQos {
    class(cpu(0, false), resctrl(100), memory(0, 50, 0))
}

fn class(cpu: CpuQosCfg, resctrl: ResctrlQosCfg, memory: MemoryQosCfg) -> ResourceQos {
    let none = Some(IntOrString::Int(0));
    ResourceQos {
        cpu_qos: Some(cpu),
        memory_qos: Some(memory),
        blkio_qos: Some(disabled_blkio()),
        resctrl_qos: Some(resctrl),
        network_qos: Some(NetworkQosCfg {
            enable: Some(false),
            ingress_request: none.clone(),
            ingress_limit: none.clone(),
            egress_request: none.clone(),
            egress_limit: none,
        }),
    }
}

fn cpu(group_identity: i64, core_expeller: bool) -> CpuQosCfg {
    CpuQosCfg {
        enable: Some(false),
        group_identity: Some(group_identity),
        sched_idle: Some(0),
        core_expeller: Some(core_expeller),
    }
}

fn resctrl(end_percent: i64) -> ResctrlQosCfg {
    ResctrlQosCfg {
        enable: Some(false),
        cat_range_start_percent: Some(0),
        cat_range_end_percent: Some(end_percent),
        mba_percent: Some(100),
    }
}

fn memory(wmark_ratio: i64, wmark_scale_permill: i64, wmark_min_adj: i64) -> MemoryQosCfg {
    MemoryQosCfg {
        enable: Some(false),
        min_limit_percent: Some(0),
        low_limit_percent: Some(0),
        throttling_percent: Some(0),
        wmark_ratio: Some(wmark_ratio),
        wmark_scale_permill: Some(wmark_scale_permill),
        wmark_min_adj: Some(wmark_min_adj),
        priority_enable: Some(0),
        priority: Some(0),
        oom_kill_group: Some(0),
        ..MemoryQosCfg::default()
    }
}

fn disabled_blkio() -> BlkIoQosCfg {
    BlkIoQosCfg { enable: Some(false), blocks: Vec::new() }
}

#[cfg(test)]
mod tests {
    use koord_resource::go_json;

    use super::*;

    #[test]
    fn the_default_node_slo_is_written_as_the_original_writes_it() {
        let expected = r#"{"resourceUsedThresholdWithBE":{"enable":false,"cpuSuppressThresholdPercent":65,"cpuSuppressPolicy":"cpuset","memoryEvictThresholdPercent":70,"cpuEvictPolicy":"evictByRealLimit"},"resourceQOSStrategy":{},"cpuBurstStrategy":{"policy":"none","cpuBurstPercent":1000,"cfsQuotaBurstPercent":300,"cfsQuotaBurstPeriodSeconds":-1,"sharePoolThresholdPercent":50},"systemStrategy":{"totalNetworkBandwidth":"0"},"extensions":{"Object":{}}}"#;
        assert_eq!(go_json::to_string(&node_slo_spec()).unwrap(), expected);
    }

    #[test]
    fn koordlet_assumes_these_numbers() {
        let strategy = full_resource_qos_strategy();
        let be = strategy.be_class.unwrap();
        assert_eq!(be.cpu_qos.unwrap().group_identity, Some(-1));
        assert_eq!(be.resctrl_qos.unwrap().cat_range_end_percent, Some(30));
        assert_eq!(be.memory_qos.unwrap().wmark_min_adj, Some(50));
        assert_eq!(strategy.system_class.unwrap(), none_resource_qos());
    }
}
