//! The flags of koordlet: those of the original.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
use koord_koordlet_hooks::{FailurePolicy, GpuOptions, Hooks, Options as HookOptions, Stages};
use koord_koordlet_runtime::{
    EvictionSettings, Features, Intervals, KubeletSettings, NodeReaders, PredictionSettings, RuntimeEndpoints,
    Runtimes, Settings,
    audit::AuditSettings,
    delivery::{DeliverySettings, HookServerAddress, NriSettings, PodResourcesSettings},
};
use koord_koordlet_system::Roots;
use koord_program::{
    ControllerSettings, MetricFlags, ShownVersion,
    flags::{FeatureGates, Klog, accepted, from_go, listen_address, span, switch, wrong},
    gates::Gates,
    logs, shown_version,
};
use koord_runtime::{manager::ListenAddress, metrics::Exposition};

use crate::{accepted::ACCEPTED, identity::BUILD};

/// Declares switches as Go writes them: `--name`, `--name=false`.
macro_rules! options {
    ($(#[$of:meta])* pub struct Options {
        $($(#[$meta:meta])* $name:ident: $type:ty $(= switch $default:literal)?,)*
    }) => {
        $(#[$of])*
        pub struct Options {
            $($(#[$meta])* $(#[arg(long, num_args = 0..=1, require_equals = true, default_value = $default, default_missing_value = "true",
                                    action = ArgAction::Set, value_name = "BOOL", value_parser = switch)])? pub(crate) $name: $type,)*
        }
    };
}

options! {
    /// The node agent of Koordinator: measures the node and its pods, reports, and enforces the QoS strategies of the NodeSLO.
    #[derive(Clone, Debug, Parser)]
    #[command(name = "koordlet", disable_help_subcommand = true, disable_version_flag = true, args_override_self = true)]
    pub struct Options {
        /// Show the version, and end; with =raw all that is known of the build.
        #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
              action = ArgAction::Set, value_name = "raw", hide_default_value = true, value_parser = shown_version)]
        version: ShownVersion,
        /// Address on which metrics, health, audit events and to the own node the state of the agent are served; 0 serves none.
        #[arg(long, default_value = ":9316", value_name = "HOST:PORT")]
        addr: String,
        /// Kubeconfig of the API server. Without any, $KUBECONFIG, ~/.kube/config or the pod's service account.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
        /// Requests per second to the API server.
        #[arg(long, default_value_t = 20.0, value_name = "NUMBER")]
        kube_api_qps: f64,
        /// Requests that may come at once.
        #[arg(long, default_value_t = 30, value_name = "NUMBER")]
        kube_api_burst: u32,
        /// Serve the state of the agent, which names pods and files, to everybody who can reach --addr, and not to the own node alone.
        insecure_debug: bool = switch "false",
        /// Write nothing into the files of the node and evict no pod: measure and report alone. The agent needs no privileges then.
        observe_only: bool = switch "false",

        /// Where the hierarchies of cgroups are mounted.
        #[arg(long, value_name = "FOLDER")]
        cgroup_root_dir: Option<PathBuf>,
        /// Where /sys of the node is mounted.
        #[arg(long, value_name = "FOLDER")]
        sys_root_dir: Option<PathBuf>,
        /// Where /sys/fs of the node is mounted.
        #[arg(long, value_name = "FOLDER")]
        sys_fs_root_dir: Option<PathBuf>,
        /// Where /proc of the node is mounted.
        #[arg(long, default_value = "/proc/", value_name = "FOLDER")]
        proc_root_dir: PathBuf,
        /// Where /var/run of the node is mounted.
        #[arg(long, value_name = "FOLDER")]
        var_run_root_dir: Option<PathBuf>,
        /// Where /run of the node is mounted.
        #[arg(long, value_name = "FOLDER")]
        run_root_dir: Option<PathBuf>,
        /// The folder of the kubelet.
        #[arg(long, default_value = "/var/lib/kubelet/", value_name = "FOLDER")]
        var_lib_kubelet_dir: PathBuf,
        /// The socket of containerd, where it is at no usual place.
        #[arg(long, default_value = "", value_name = "SOCKET")]
        containerd_endpoint: String,
        /// The socket of Docker, where it is at no usual place.
        #[arg(long, default_value = "", value_name = "SOCKET")]
        docker_endpoint: String,
        /// The socket of pouch, where it is at no usual place.
        #[arg(long, default_value = "", value_name = "SOCKET")]
        pouch_endpoint: String,
        /// The runtime of containers whose ids do not name one.
        #[arg(long, default_value = "containerd", value_name = "RUNTIME")]
        default_runtime_type: String,
        /// The library that shares GPUs between containers (HAMi-core).
        #[arg(long, default_value = "/usr/local/vgpu/libvgpu.so", value_name = "FILE")]
        hami_core_library_directory_path: String,
        /// The folder of the socket of the pod-resources proxy.
        #[arg(long, default_value = "/var/run/koordlet/pod-resources", value_name = "FOLDER")]
        pod_resources_proxy_path: PathBuf,
        /// The folder of device files of vendors.
        #[arg(long, default_value = "/var/run/koordlet/xpu-device-infos/", value_name = "FOLDER")]
        xpu_device_infos_dir: PathBuf,

        /// The type of the node's address at which the kubelet is asked.
        #[arg(long, default_value = "InternalIP", value_name = "TYPE")]
        kubelet_preferred_address_type: String,
        /// How often the pods of the kubelet are read; 0 for never.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        kubelet_sync_interval: Duration,
        /// Longest wait for an answer of the kubelet.
        #[arg(long, default_value = "3s", value_name = "DURATION", value_parser = span)]
        kubelet_sync_timeout: Duration,
        /// Ask the kubelet by plain HTTP, at its read-only port.
        kubelet_insecure_tls: bool = switch "false",
        /// The read-only port of the kubelet.
        #[arg(long, default_value_t = 10255, value_name = "PORT")]
        kubelet_read_only_port: u16,
        /// How often the NodeResourceTopology is computed; 0 for never.
        #[arg(long, default_value = "3s", value_name = "DURATION", value_parser = span)]
        node_topology_sync_interval: Duration,
        /// Do not ask the kubelet for its configuration.
        disable_query_kubelet_config: bool = switch "false",
        /// Report the usage of the node and its pods in the NodeMetric.
        enable_node_metric_report: bool = switch "true",
        /// Look up the task ids of pods, for resctrl groups of pods.
        enable_pod_taskids: bool = switch "false",
        /// Read devices from the files of vendors alone.
        xpu_enforce_collect_from_device_infos: bool = switch "false",

        /// How often usage is sampled.
        #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = span)]
        collect_res_used_interval: Duration,
        /// The age at which a sample is not combined with others any more.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        collect_sys_metric_outdated_interval: Duration,
        /// How often CPUs and NUMA nodes are looked at.
        #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = span)]
        collect_node_cpu_info_interval: Duration,
        /// How often disks are looked at.
        #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = span)]
        collect_node_storage_info_interval: Duration,
        /// How often cycles and instructions are counted.
        #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = span)]
        cpi_collector_interval: Duration,
        /// For how long cycles and instructions are counted.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        collect_cpi_timewindow: Duration,
        /// How often pressure is read.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        psi_collector_interval: Duration,
        /// How often cold pages are counted.
        #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = span)]
        coldpage_collector_interval: Duration,
        /// Sample memory with the page cache, too.
        enable_pagecache_collector: bool = switch "false",
        /// Sample the caches and memory bandwidth of resctrl groups.
        enable_resctrl_collector: bool = switch "false",
        /// How often resctrl groups are read.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        resctrl_collector_interval: Duration,

        /// The folder of checkpoints of the prediction.
        #[arg(long, default_value = "/prediction-checkpoints", value_name = "FOLDER")]
        prediction_checkpoint_filepath: PathBuf,
        /// Pods younger than this are taken to use what they request.
        #[arg(long, default_value = "24h", value_name = "DURATION", value_parser = span)]
        prediction_cold_start_duration: Duration,
        /// What is added to a predicted peak, in percent.
        #[arg(long, default_value_t = 10, value_name = "PERCENT")]
        prediction_safety_margin_percent: i64,
        /// After this time a sample of memory counts half.
        #[arg(long, default_value = "24h", value_name = "DURATION", value_parser = span)]
        prediction_memory_histogram_decay_halflife: Duration,
        /// After this time a sample of CPU counts half.
        #[arg(long, default_value = "12h", value_name = "DURATION", value_parser = span)]
        prediction_cpu_histogram_decay_halflife: Duration,
        /// How often models are trained.
        #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = span)]
        prediction_training_interval: Duration,
        /// The age at which a model that gets no samples is dropped.
        #[arg(long, default_value = "30m", value_name = "DURATION", value_parser = span)]
        prediction_model_expiration_duration: Duration,
        /// How often a model is written to its checkpoint.
        #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = span)]
        prediction_model_checkpoint_interval: Duration,
        /// Most checkpoints that are written at a time.
        #[arg(long, default_value_t = 12, value_name = "NUMBER")]
        prediction_model_checkpoint_max_per_step: usize,

        /// How often strategies that follow objects alone run, in seconds; 0 for never.
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        reconcile_interval_seconds: u64,
        /// How often BE pods are suppressed, in seconds; 0 for never.
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        cpu_suppress_interval_seconds: u64,
        /// How often pods may be evicted because of CPU, in seconds; 0 for never.
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        cpu_evict_interval_seconds: u64,
        /// How often pods may be evicted because of memory, in seconds; 0 for never.
        #[arg(long, default_value_t = 1, value_name = "SECONDS")]
        memory_evict_interval_seconds: u64,
        /// Pause after an eviction because of memory, in seconds.
        #[arg(long, default_value_t = 4, value_name = "SECONDS")]
        memory_evict_cool_time_seconds: u64,
        /// Pause after an eviction because of CPU, in seconds.
        #[arg(long, default_value_t = 20, value_name = "SECONDS")]
        cpu_evict_cool_time_seconds: u64,
        /// Evict through the API server alone; else containers are stopped directly.
        only_evict_by_api: bool = switch "false",
        /// Suppress BE pods and evict for memory as soon as the kernel reports pressure, not only in their intervals. The kernel needs CAP_SYS_RESOURCE for it.
        pressure_triggers: bool = switch "false",
        /// How often a file is compared with what it shall say though nothing changed, in seconds.
        #[arg(long, default_value_t = 60, value_name = "SECONDS")]
        resource_force_update_seconds: u64,

        /// The folder of audit files.
        #[arg(long, default_value = "/var/log/koordlet", value_name = "FOLDER")]
        audit_log_dir: PathBuf,
        /// Most important events that are audited: 0 all, 1 the most important alone.
        #[arg(long, default_value_t = 3, value_name = "LEVEL")]
        audit_verbose: u32,
        /// Most space of audit files, in MiB.
        #[arg(long, default_value_t = 16, value_name = "MIB")]
        audit_max_disk_space_mb: u64,
        /// Most readers of audit events at a time.
        #[arg(long, default_value_t = 4, value_name = "NUMBER")]
        audit_max_concurrent_readers: usize,
        /// Most events in an answer.
        #[arg(long, default_value_t = 2048, value_name = "NUMBER")]
        audit_max_events_limit: usize,

        /// The network of the hook server.
        #[arg(long, default_value = "unix", value_name = "NETWORK")]
        runtime_hooks_network: String,
        /// The address of the hook server.
        #[arg(long, default_value = "/host-var-run-koordlet/koordlet.sock", value_name = "ADDRESS")]
        runtime_hooks_addr: String,
        /// The address of the hook server as the runtime proxy finds it on the node.
        #[arg(long, default_value = "/var/run/koordlet/koordlet.sock", value_name = "ADDRESS")]
        runtime_hooks_host_endpoint: String,
        /// What becomes of a container when its hooks fail.
        #[arg(long, default_value = "Ignore", value_name = "Fail|Ignore", value_parser = ["Fail", "Ignore"])]
        runtime_hooks_failure_policy: String,
        /// What becomes of the next hooks when one fails.
        #[arg(long, default_value = "Ignore", value_name = "Fail|Ignore", value_parser = ["Fail", "Ignore"])]
        runtime_hooks_plugin_failure_policy: String,
        /// The folder in which the runtime proxy looks for hook servers.
        #[arg(long, value_name = "FOLDER")]
        runtime_hooks_config_path: Option<PathBuf>,
        /// Stages at which no hook runs, separated by commas.
        #[arg(long, default_value = "", value_name = "STAGES")]
        runtime_hooks_disable_stages: String,
        /// Run hooks through NRI.
        enable_nri_runtime_hook: bool = switch "true",
        /// The socket of NRI below /var/run.
        #[arg(long, default_value = "nri/nri.sock", value_name = "PATH")]
        runtime_hooks_nri_socket_path: PathBuf,
        /// The name under which the agent registers with NRI.
        #[arg(long, default_value = "koordlet_nri", value_name = "NAME")]
        runtime_hooks_nri_plugin_name: String,
        /// The index of the agent among the plugins of NRI.
        #[arg(long, default_value = "00", value_name = "INDEX")]
        runtime_hooks_nri_plugin_index: String,
        /// Longest wait for the runtime to answer the registration.
        #[arg(long, default_value = "6s", value_name = "DURATION", value_parser = span)]
        runtime_hooks_nri_connect_timeout: Duration,
        /// First pause before NRI is connected again.
        #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = span)]
        runtime_hooks_nri_backoff_duration: Duration,
        /// Longest pause before NRI is connected again.
        #[arg(long, default_value = "2562047h47m16.854775807s", value_name = "DURATION", value_parser = span)]
        runtime_hooks_nri_backoff_cap: Duration,
        /// How often the pause grows.
        #[arg(long, default_value_t = 2_147_483_647, value_name = "NUMBER")]
        runtime_hooks_nri_backoff_steps: u32,
        /// By what factor the pause grows.
        #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
        runtime_hooks_nri_backoff_factor: f64,
        /// How often hooks are applied to containers that run.
        #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
        runtime_hooks_reconcile_interval: Duration,
        /// Leave the CFS quota of pods with CPUs of their own.
        disable_unset_cpu_quota: bool = switch "false",

        /// The metrics.
        #[command(flatten)]
        metrics: MetricFlags,
        /// Which features are on.
        #[command(flatten)]
        features: FeatureGates,
        /// Logs.
        #[command(flatten)]
        logs: Klog,
        /// Flags of the original that were given and have no effect, each with the reason.
        #[arg(skip)]
        without_effect: Vec<(&'static str, &'static str)>,
    }
}

/// Where the trees of the node are mounted when no flag says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folders {
    /// In a container, into which the chart mounts them.
    Container,
    /// On the node itself: `agent_mode=hostMode`.
    Host,
}

/// Options whose values have been checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The options.
    pub options: Options,
    /// The node that the agent runs on.
    pub node_name: String,
    pub folders: Folders,
    /// Stages at which no hook runs.
    pub disabled_stages: Stages,
    /// Where the hook server listens.
    pub hook_server: HookServerAddress,
    /// Which features are on.
    pub gates: Gates,
    /// Where metrics are served.
    pub address: Option<ListenAddress>,
    /// Which metrics are shown.
    pub exposition: Exposition,
}

impl Folders {
    /// As the environment says it.
    fn of(environment: &BTreeMap<String, String>) -> Self {
        if environment.get("agent_mode").is_some_and(|mode| mode == "hostMode") { Self::Host } else { Self::Container }
    }

    fn or(self, flag: Option<&PathBuf>, container: &str, host: &str) -> PathBuf {
        let default = if self == Self::Host { host } else { container };
        flag.cloned().unwrap_or_else(|| default.into())
    }
}

impl Options {
    /// Reads Go-style arguments, the program's name first.
    ///
    /// # Errors
    ///
    /// An argument is unknown, or its value is no such value.
    pub fn from_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let given = accepted::add(Self::command(), ACCEPTED).try_get_matches_from(from_go(arguments))?;
        Ok(Self { without_effect: accepted::without_effect(ACCEPTED, &given), ..Self::from_arg_matches(&given)? })
    }

    /// Checks values that are more than words, and reads the environment.
    ///
    /// # Errors
    ///
    /// A value is wrong, or the environment does not name the node.
    pub fn check(self) -> Result<Checked, clap::Error> {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        self.check_in(&environment)
    }

    /// Checks values that are more than words in a given environment.
    ///
    /// # Errors
    ///
    /// As of [`Options::check`].
    pub fn check_in(self, environment: &BTreeMap<String, String>) -> Result<Checked, clap::Error> {
        let gates = self.features.check(BUILD.gates)?;
        let exposition = self.metrics.check()?;
        let address = listen_address(&self.addr).map_err(|reason| wrong("addr", reason))?;
        let address = address.map(|address| ListenAddress { address, set_by: "--addr" });
        let node_name = environment.get("NODE_NAME").filter(|name| !name.is_empty()).cloned();
        let is_shown = self.version.line(&BUILD).is_some();
        let node_name = match node_name {
            Some(name) => name,
            None if is_shown => String::new(),
            None => {
                let message = "the environment variable NODE_NAME is not set; set it to the name of the node \
                               (in a pod from spec.nodeName by the downward API)\n";
                return Err(clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, message));
            }
        };
        let folders = Folders::of(environment);
        let disabled_stages = Stages::parse(&self.runtime_hooks_disable_stages)
            .map_err(|error| wrong("runtime-hooks-disable-stages", error))?;
        let hook_server = hook_server(&self.runtime_hooks_network, &self.runtime_hooks_addr)?;
        Ok(Checked { options: self, node_name, folders, disabled_stages, hook_server, gates, address, exposition })
    }

    /// The filter of the logs.
    pub fn log_filter(&self) -> String {
        logs::filter(self.logs.verbosity, &[])
    }
}

/// Where the hook server listens.
fn hook_server(network: &str, address: &str) -> Result<HookServerAddress, clap::Error> {
    match network {
        "unix" => Ok(HookServerAddress::Unix(address.into())),
        "tcp" | "tcp4" | "tcp6" => match listen_address(address) {
            Ok(Some(address)) => Ok(HookServerAddress::Tcp(address)),
            Ok(None) => Err(wrong("runtime-hooks-addr", "a port is needed, such as 127.0.0.1:9527")),
            Err(reason) => Err(wrong("runtime-hooks-addr", reason)),
        },
        _ => Err(wrong("runtime-hooks-network", format!("{network:?} is not known; there are unix and tcp"))),
    }
}

impl Checked {
    /// Where the trees of the node are.
    pub fn roots(&self) -> Roots {
        let Options { cgroup_root_dir, sys_root_dir, sys_fs_root_dir, var_run_root_dir, run_root_dir, .. } =
            &self.options;
        let folders = self.folders;
        Roots {
            cgroup: folders.or(cgroup_root_dir.as_ref(), "/host-cgroup/", "/sys/fs/cgroup/"),
            proc: self.options.proc_root_dir.clone(),
            sys: folders.or(sys_root_dir.as_ref(), "/host-sys/", "/sys/"),
            sys_fs: folders.or(sys_fs_root_dir.as_ref(), "/host-sys-fs/", "/sys/fs/"),
            var_run: folders.or(var_run_root_dir.as_ref(), "/host-var-run/", "/var/run/"),
            run: folders.or(run_root_dir.as_ref(), "/host-run/", "/run/"),
            kubelet: self.options.var_lib_kubelet_dir.clone(),
        }
    }

    /// What flags and gates say for runtime hooks.
    fn hooks(&self) -> HookOptions {
        let options = &self.options;
        let policy = |name: &str| FailurePolicy::named(name).unwrap_or_default();
        HookOptions {
            hooks: Hooks::of_gates(|gate| self.gates.enabled(gate)),
            disabled_stages: self.disabled_stages,
            failure_policy: policy(&options.runtime_hooks_failure_policy),
            plugin_failure_policy: policy(&options.runtime_hooks_plugin_failure_policy),
            lifts_quota: !options.disable_unset_cpu_quota,
            binds_be_to_nodes: self.gates.enabled("BECPUManager"),
            moves_tasks: options.enable_pod_taskids,
            gpu: GpuOptions {
                hami_core_library: options.hami_core_library_directory_path.clone().into(),
                monitors_shared_gpus: self.gates.enabled("HamiCoreVGPUMonitor"),
            },
        }
    }

    /// Where container runtimes are found.
    pub fn runtimes(&self) -> Runtimes {
        let options = &self.options;
        let endpoints = RuntimeEndpoints {
            containerd: options.containerd_endpoint.clone().into(),
            docker: options.docker_endpoint.clone().into(),
            pouch: options.pouch_endpoint.clone().into(),
        };
        Runtimes::new(&self.roots().var_run, endpoints)
    }

    /// How the program around the agent runs.
    pub fn program_settings(&self) -> ControllerSettings {
        ControllerSettings {
            kubeconfig: None,
            namespaces: Vec::new(),
            metrics: self.address,
            health: self.address,
            traces: None,
            lease_namespace: None,
            requests_per_second: self.options.kube_api_qps as f32,
            requests_burst: self.options.kube_api_burst,
            gates: self.gates.clone(),
        }
    }

    /// How the agent runs.
    pub fn settings(&self) -> Settings {
        let options = &self.options;
        let seconds = Duration::from_secs;
        Settings {
            node_name: self.node_name.clone(),
            roots: self.roots(),
            cgroup_version: None,
            features: Features::new(self.gates.iter().filter(|(_, is_on)| *is_on).map(|(gate, _)| gate.name)),
            intervals: Intervals {
                collect: options.collect_res_used_interval,
                outdated: options.collect_sys_metric_outdated_interval,
                node_info: options.collect_node_cpu_info_interval,
                pressure: options.psi_collector_interval,
                cpi: options.cpi_collector_interval,
                cpi_window: options.collect_cpi_timewindow,
                cold_pages: options.coldpage_collector_interval,
                resctrl: options.resctrl_collector_interval,
                reconcile: seconds(options.reconcile_interval_seconds),
                cpu_suppress: seconds(options.cpu_suppress_interval_seconds),
                cpu_evict: seconds(options.cpu_evict_interval_seconds),
                memory_evict: seconds(options.memory_evict_interval_seconds),
                hooks: options.runtime_hooks_reconcile_interval,
                verify: seconds(options.resource_force_update_seconds),
                topology: Some(options.node_topology_sync_interval).filter(|interval| !interval.is_zero()),
            },
            samples_page_cache: options.enable_pagecache_collector,
            samples_resctrl: options.enable_resctrl_collector,
            kubelet: KubeletSettings {
                sync: Some(options.kubelet_sync_interval).filter(|interval| !interval.is_zero()),
                timeout: options.kubelet_sync_timeout,
                is_insecure: options.kubelet_insecure_tls,
                read_only_port: options.kubelet_read_only_port,
                address_type: options.kubelet_preferred_address_type.clone(),
                asks_configuration: !options.disable_query_kubelet_config,
            },
            only_observes: options.observe_only,
            reports_node_metric: options.enable_node_metric_report,
            prediction: PredictionSettings {
                checkpoints: options.prediction_checkpoint_filepath.clone(),
                cold_start: options.prediction_cold_start_duration,
                safety_margin_percent: options.prediction_safety_margin_percent,
                memory_half_life: options.prediction_memory_histogram_decay_halflife,
                cpu_half_life: options.prediction_cpu_histogram_decay_halflife,
                training: options.prediction_training_interval,
                expiration: options.prediction_model_expiration_duration,
                checkpoint_interval: options.prediction_model_checkpoint_interval,
                checkpoints_per_step: options.prediction_model_checkpoint_max_per_step,
            },
            eviction: EvictionSettings {
                cpu_cool_time: seconds(options.cpu_evict_cool_time_seconds),
                memory_cool_time: seconds(options.memory_evict_cool_time_seconds),
                only_by_api: options.only_evict_by_api,
            },
            hooks: self.hooks(),
            serves_audit: self.gates.enabled("AuditEventsHTTPHandler"),
            state_readers: if options.insecure_debug { NodeReaders::All } else { NodeReaders::Local },
            audit: self.gates.enabled("AuditEvents").then(|| AuditSettings {
                folder: options.audit_log_dir.clone(),
                verbosity: options.audit_verbose,
                bytes_max: options.audit_max_disk_space_mb << 20,
                readers_max: options.audit_max_concurrent_readers,
                page_max: options.audit_max_events_limit,
            }),
            delivery: self.delivery(),
            reads_nvidia_gpus: self.gates.enabled("Accelerators") && !options.xpu_enforce_collect_from_device_infos,
            xpu_device_infos: options.xpu_device_infos_dir.clone(),
        }
    }

    /// How hooks are delivered.
    fn delivery(&self) -> DeliverySettings {
        let (options, roots) = (&self.options, self.roots());
        DeliverySettings {
            nri: options.enable_nri_runtime_hook.then(|| NriSettings {
                socket: roots.var_run.join(&options.runtime_hooks_nri_socket_path),
                plugin_name: options.runtime_hooks_nri_plugin_name.clone(),
                plugin_index: options.runtime_hooks_nri_plugin_index.clone(),
                connect_timeout: options.runtime_hooks_nri_connect_timeout,
                first_pause: options.runtime_hooks_nri_backoff_duration,
                pauses_max: options.runtime_hooks_nri_backoff_steps,
                pause_factor: options.runtime_hooks_nri_backoff_factor,
                pause_cap: options.runtime_hooks_nri_backoff_cap,
            }),
            hook_server: self.hook_server.clone(),
            host_endpoint: options.runtime_hooks_host_endpoint.clone(),
            proxy_configuration: self.folders.or(
                options.runtime_hooks_config_path.as_ref(),
                "/host-etc-hookserver/",
                "/etc/runtime/hookserver.d/",
            ),
            terway: self.folders.or(None, "/host-var-lib/terway", "/var/lib/terway"),
            pod_resources: self.gates.enabled("PodResourcesProxy").then(|| PodResourcesSettings {
                folder: options.pod_resources_proxy_path.clone(),
                kubelet: roots.kubelet.join("pod-resources/kubelet.sock"),
            }),
            pressure_triggers: options.pressure_triggers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Checked, clap::Error> {
        let arguments = ["koordlet"].iter().chain(arguments).map(|argument| (*argument).to_owned());
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Options::from_arguments(arguments)?.check_in(&environment)
    }

    #[test]
    fn flags_are_written_as_go_writes_them() {
        let checked = check(
            &[
                "-addr=127.0.0.1:1",
                "--feature-gates=AllAlpha=true,BECPUSuppress=false",
                "-collect-res-used-interval",
                "2s",
                "--only-evict-by-api",
                "--enable-node-metric-report=false",
                "-v=4",
                "--tsdb-path=/x",
                "--cgroup-root-dir=/c",
            ],
            &[("NODE_NAME", "n")],
        )
        .unwrap();
        let settings = checked.settings();
        assert_eq!(settings.intervals.collect, Duration::from_secs(2));
        assert!(settings.features.has("PSICollector") && !settings.features.has("BECPUSuppress"));
        assert!(settings.eviction.only_by_api && !settings.reports_node_metric);
        assert_eq!(settings.roots.cgroup, PathBuf::from("/c"));
        assert_eq!(settings.roots.sys, PathBuf::from("/host-sys/"));
        assert_eq!(checked.options.without_effect.len(), 1);
        assert_eq!(settings.state_readers, NodeReaders::Local, "everybody can reach the port");
        let open = check(&["--insecure-debug"], &[("NODE_NAME", "n")]).unwrap().settings();
        assert_eq!(open.state_readers, NodeReaders::All);
    }

    #[test]
    fn hooks_are_delivered_as_flags_say() {
        let node = [("NODE_NAME", "n")];
        let delivery = |arguments: &[&str]| check(arguments, &node).unwrap().settings().delivery;
        let default = delivery(&[]);
        let nri = default.nri.unwrap();
        assert_eq!(nri.socket, PathBuf::from("/host-var-run/nri/nri.sock"));
        assert_eq!((nri.plugin_index.as_str(), nri.plugin_name.as_str()), ("00", "koordlet_nri"));
        assert_eq!(default.hook_server, HookServerAddress::Unix("/host-var-run-koordlet/koordlet.sock".into()));
        assert_eq!(default.proxy_configuration, PathBuf::from("/host-etc-hookserver/"));
        assert_eq!(default.pod_resources, None);
        let other = delivery(&[
            "--enable-nri-runtime-hook=false",
            "--runtime-hooks-network=tcp",
            "--runtime-hooks-addr=127.0.0.1:9527",
            "--runtime-hooks-config-path=/c",
            "--feature-gates=PodResourcesProxy=true",
        ]);
        assert_eq!(other.nri, None);
        assert_eq!(other.hook_server, HookServerAddress::Tcp(([127, 0, 0, 1], 9527).into()));
        assert_eq!(other.proxy_configuration, PathBuf::from("/c"));
        assert_eq!(other.pod_resources.unwrap().folder, PathBuf::from("/var/run/koordlet/pod-resources"));
    }

    #[test]
    fn folders_are_those_of_the_node_in_host_mode() {
        let checked = check(&[], &[("NODE_NAME", "n"), ("agent_mode", "hostMode")]).unwrap();
        let mut host = Roots::host();
        host.cgroup = "/sys/fs/cgroup/".into();
        assert_eq!(checked.roots(), host);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_remedy() {
        for (arguments, environment, message) in [
            (&[][..], &[][..], "NODE_NAME is not set; set it to the name of the node"),
            (&["--adr=:1"], &[("NODE_NAME", "n")], "unexpected argument '--adr'"),
            (&["--addr=x"], &[("NODE_NAME", "n")], "no address to listen on"),
            (&["--feature-gates=BECPUSupress=true"], &[("NODE_NAME", "n")], "did you mean BECPUSuppress?"),
            (&["--runtime-hooks-failure-policy=Maybe"], &[("NODE_NAME", "n")], "possible values: Fail, Ignore"),
            (&["--runtime-hooks-network=udp"], &[("NODE_NAME", "n")], "there are unix and tcp"),
            (&["--runtime-hooks-network=tcp", "--runtime-hooks-addr=x"], &[("NODE_NAME", "n")], "--runtime-hooks-addr"),
            (&["--kubelet-sync-interval=soon"], &[("NODE_NAME", "n")], "--kubelet-sync-interval"),
        ] {
            let error = check(arguments, environment).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
